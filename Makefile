# `make` lists what there is. Everything sets itself up first; see tools/setup.sh.

SHELL := /bin/sh
# The clone's own programs first; servers live in sbin, which an ordinary user's PATH leaves out.
export PATH := $(CURDIR)/.venv/bin:$(PATH):/usr/local/sbin:/usr/sbin:/sbin
export BENCHBOOK_ROOT := $(CURDIR)
# In the clone, so that `sudo make` and `make` don't meet in one folder under /var.
export DVC_SITE_CACHE_DIR := $(CURDIR)/.dvc/tmp/site
export DVC_NO_ANALYTICS := 1
# The same order of everything each time, on all pages.
export PYTHONHASHSEED := 0
# Root in somebody else's clone, such as a folder mounted into a container: git would refuse to look.
ifndef GIT_CONFIG_COUNT
export GIT_CONFIG_COUNT := 1
export GIT_CONFIG_KEY_0 := safe.directory
export GIT_CONFIG_VALUE_0 := $(CURDIR)
endif
# With the last one set, as images of containers do, each stage and each process of the tests would compile all
# of our modules again; what Python keeps of them lies in folders that git ignores, and `make clean` removes it.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE

STUDY ?= quick
# What verify looks at, and what review compares with.
ARCHIVE ?= $(STUDY).tar.gz
BASE ?= main
# How long `make session` may measure.
MINUTES ?= 60
# More words for dvc, pytest or JupyterLab: make repro ARGS=--force
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup repro pages test test-all test-faults goldens lint tidb doctor plan up down lab report publish export record record-again session verify review new gate logs calibrate strip bench lock clean

help: ## List the targets
	@echo 'make TARGET [STUDY=quick] [ARGS=...]'; echo
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | awk -F'\t' '{printf "  %-10s %s\n", $$1, $$2}'

# What only tests and lint need, 210 MB of it a driver of browsers, is installed when one of them is asked for.
test test-all test-faults goldens lint: SETUP = --tests
lab: SETUP = --lab

setup: ## Install what is missing: system packages, .venv
	@sh tools/setup.sh $(SETUP)

# A study that was named is the one to measure; without one, all that params.yaml lists.
ONLY = $(if $(filter command environment,$(firstword $(origin STUDY))),--study '$(STUDY)')

repro: setup ## Run the pipeline, print the answer and where the report is; STUDY=NAME: that study only
	@python -S tools/as_owner.py benchbook repro $(ONLY) $(ARGS)

# Nothing here connects to a server, so no system package is asked for.
pages: ## Rebuild the measured record and its pages from data/record; no database, no sysbench, no root
	@sh tools/setup.sh --pages
	@python -S tools/as_owner.py benchbook pages
	@sh tools/report.sh where

# How many processes `make test` has: two a core and one over, for tests wait for servers as often as they compute; 0: this one.
WORKERS ?= auto

test: setup ## Fast tests, real servers included, in two processes a core and one over; WORKERS=0: in one
	@BENCHBOOK_REQUIRE_SERVER=1 python -S tools/as_owner.py python -m pytest -n $(WORKERS) -m 'not slow and not browser and not faults' $(ARGS)

test-all: setup ## Every test: the whole pipeline, and the browser where there is one
	@BENCHBOOK_REQUIRE_SERVER=1 BENCHBOOK_DEEP=1 python -S tools/as_owner.py python -m pytest $(ARGS)

test-faults: setup ## Inject every fault there is a way to (some 20 minutes), and write the result down
	@BENCHBOOK_REQUIRE_SERVER=1 BENCHBOOK_DEEP=1 BENCHBOOK_WRITE_FAULTS=1 python -S tools/as_owner.py python -m pytest tests/faults $(ARGS)

goldens: setup ## Write the files anew that tests hold printed tables and sentences against; read them in git
	@BENCHBOOK_WRITE_GOLDENS=1 python -m pytest -q -n 0 $$(grep -rlE --include="test_*.py" "assert_(golden|page|cases)|WRITE_GOLDENS" tests) $(ARGS)

lint: setup ## Style and types of the code, and notebooks stored without outputs
	@ruff check .; style=$$?; mypy || style=1; sh tools/strip.sh --verify && exit $$style

tidb: setup ## Build the TiDB servers that studies need, each once (minutes; needs Go)
	@python -m benchbook.sites.tidb.build $(ARGS)

doctor: setup ## What this machine can do, what it can't and why, and how noisy it is now
	@benchbook doctor --noise

plan: setup ## Schedule of STUDY and how long it takes, before a second is spent
	@benchbook plan $(STUDY)

up: setup ## Bring the arms of STUDY up and hold them until Ctrl-C, for a look by hand
	@benchbook up $(STUDY)

down: setup ## Stop everything we started; remove namespaces, rules and cgroups; ARGS="--loaded NAME": drop what it loaded elsewhere
	@benchbook down $(ARGS)

lab: setup ## JupyterLab on this machine only: browse every effect, run and second
	@sh tools/lab.sh $(ARGS)

report: setup ## Open the report, or say where it is
	@sh tools/report.sh open

publish: setup ## Put the site together in public/, for any static host
	@python -S tools/as_owner.py benchbook publish $(ARGS)

export: setup ## Pack the whole evidence of STUDY into one archive, STUDY.tar.gz
	@python -S tools/as_owner.py benchbook export $(STUDY) $(ARGS)

record: setup ## Put STUDY, measured, into the record in git as a session, with its doubts
	@python -S tools/as_owner.py benchbook record $(STUDY) $(ARGS)

record-again: setup ## After a change of the code that alters findings: make the record again, and say what changed
	@python -S tools/as_owner.py benchbook remake --write

session: setup ## Measure what the record needs most on this machine, what fits into MINUTES, and record it; STUDY=NAME: that study
	@python -S tools/as_owner.py benchbook session $(if $(filter command environment,$(firstword $(origin STUDY))),'$(STUDY)') --minutes $(MINUTES) $(ARGS)

verify: setup ## Check ARCHIVE: every hash, and its findings made again from its raw files
	@benchbook verify "$(ARCHIVE)"

review: setup ## One page on what changed since BASE: notebooks, keys, findings
	@python -S tools/as_owner.py benchbook review "$(BASE)"

logs: setup ## Read logs of sysbench that you have: make logs LOGS=FOLDER [ARGS="--html page.html"]
	@benchbook logs $(LOGS) $(ARGS)

new: setup ## Ask six questions and write a study file
	@python -S tools/as_owner.py benchbook new $(ARGS)

# make ends with 2 whatever the gate's exit code is; a CI calls `benchbook gate` itself.
gate: setup ## Is an arm of STUDY slower than its baseline? ARGS="--slower 3% --minutes 10"
	@benchbook gate $(STUDY) $(ARGS)

calibrate: setup ## Questions whose answer is known, put to real servers; ARGS="same --minutes 30", known, lengths, record or check
	@python -m benchmarks.calibrate $(ARGS)

strip: setup ## Take outputs and run metadata out of the notebooks
	@sh tools/strip.sh

bench: setup ## What precision, a run, parsing and the pipeline cost (about 10 minutes; ARGS=--full: longer)
	@python -m benchmarks $(ARGS)

lock: setup ## Make requirements.lock and environment.yml again, after a change in pyproject.toml
	@sh tools/lock.sh $(ARGS)

clean: ## Remove .venv and caches; what was measured stays
	@sh tools/clean.sh
