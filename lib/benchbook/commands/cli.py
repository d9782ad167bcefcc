"""The command `benchbook`: what the Makefile's targets and the pipeline's stages call."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchbook.commands import calibrate, cluster
from benchbook.commands import new as asking
from benchbook.core import load, paths, pooled, sizes, surroundings
from benchbook.core.errors import BenchbookError, InputErrors


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; print errors without a traceback. Exit codes: 0, 1 failed, 2 an input is wrong."""
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    surroundings.close()
    try:
        if command not in (_repro, _stage):
            surroundings.hide()
        return command(arguments)
    except InputErrors as error:
        print("\n".join(error.errors), file=sys.stderr)
        return 2
    except BenchbookError as error:
        print(f"benchbook: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        said = f"no space left on the disk ({error.filename or 'which one is not known'})"
        print(f"benchbook: {said}; what was complete is kept: free some space, run it again", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


_ABOUT_ALL = {
    "method": "the page on the method",
    "claims": "the page of claims, studies and sources",
    "findings": "the site's first page",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchbook",
        description="Reproducible database benchmarks: study files, six notebooks, one report.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(command=command)
        return made

    repro = commands.add_parser(
        "repro",
        help="run the pipeline, as `dvc repro` does, and see that everything it made was kept",
        prefix_chars="+",
        add_help=False,
    )
    repro.add_argument("arguments", nargs="*", help="[--study NAME] and words for `dvc repro`")
    repro.set_defaults(command=_repro)
    doctor = add("doctor", _doctor, "say what this machine can do, and what it can't and why")
    doctor.add_argument("--noise", action="store_true", help="measure for half a minute how noisy it is now")
    add("check", _check, "check params.yaml and every study file, and start nothing")
    plan = add("plan", _plan, "show the schedule of a study and how long it takes, before a second is spent")
    plan.add_argument("study", help="name of a file in studies/")
    plan.add_argument("--runs", action="store_true", help="list every run in its order")
    plan.add_argument("--manifests", action="store_true", help="print only what a cluster would get, as YAML")
    up = add("up", _up, "bring the arms of a study up and hold them until Ctrl-C, for a look by hand")
    up.add_argument("study", help="name of a file in studies/")
    down = add("down", _down, "stop everything this project started on this machine, remove what it set up")
    down.add_argument("--purge", action="store_true", help="remove the servers' data too")
    cluster.parser(add)
    calibrate.parser(add)
    stage = add("stage", _stage, "run one stage's notebook for a study, as the pipeline does")
    stage.add_argument("stage", help="a stage in dvc.yaml, such as parse, or several as parse,analyze")
    stage.add_argument("study", help="name of a file in studies/")
    stage.add_argument("--here", action="store_true", help="in this process, without a kernel of its own")
    add("code", _code, "say which code each study's measuring runs, as the pipeline does")
    audit = add("audit", _audit, "audit one published source, as the pipeline does")
    audit.add_argument("source", help="name of a folder in data/published/")
    for name, what in _ABOUT_ALL.items():
        add(name, _page, f"render {what}, as the pipeline does").set_defaults(page=name)
    _of_results(add)
    gate = add("gate", _gate, "say by exit code if an arm is slower than the baseline: 0 no, 1 yes, 2 open")
    gate.add_argument("study", help="name of a file in studies/; its first arm is the baseline")
    gate.add_argument("--slower", default="3%", metavar="PERCENT", help="what may be lost (default: 3%%)")
    gate.add_argument("--minutes", default="10", help="how long it may take (default: 10)")
    gate.add_argument("--arm", action="append", metavar="NAME", help="the arm in question (default: each)")
    gate.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML there")
    gate.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write a summary for a pull request there"
    )
    gate.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the evidence in this new folder")
    schema = add("schema", _schema, "write the JSON schemas of study files and sources, for editors")
    schema.add_argument("--check", action="store_true", help="only say whether the file is current")
    reference = add("reference", _reference, "write the pages that are made from code and studies")
    reference.add_argument("--check", action="store_true", help="only say whether the file is current")
    return parser


def _of_results(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands for what was measured: publish, archives, record, series, reviews; and a new study."""
    publish = add("publish", _publish, "put the site together in one folder, for any static host")
    publish.add_argument("--to", type=Path, help="the folder (default: public)")
    export = add("export", _export, "pack a study's whole evidence into one archive")
    export.add_argument("study", help="name of a file in studies/")
    export.add_argument("--to", type=Path, help="the archive to write (default: STUDY.tar.gz)")
    recorded = add("record", _record, "put a measured study into the record, data/record, as evidence in git")
    recorded.add_argument("study", nargs="?", help="name of a file in studies/, measured")
    recorded.add_argument(
        "--archive", nargs="+", type=Path, default=[], metavar="FILE",
        help="sessions measured elsewhere, as `benchbook export` wrote them there",
    )  # fmt: skip
    pages = add(
        "pages", _pages, "rebuild the record and all pages that need no measuring, and measure nothing"
    )
    pages.add_argument("arguments", nargs="*", help="more words for `dvc repro`")
    remake = add("remake", _remake, "make recorded sessions again where something changed")
    remake.add_argument(
        "--write", action="store_true", help="write what the present code finds into the record, and say it"
    )
    verify = add("verify", _verify, "check an archive: its hashes, its findings made again from raw files")
    verify.add_argument("archive", type=Path, help="what export wrote")
    history = add("history", _history, "keep what a study found today in its series, and render every series")
    history.add_argument("study", nargs="?", help="the study to keep; none: only render")
    history.add_argument(
        "--from", dest="folders", type=Path, action="append", default=[], metavar="PLACE",
        help="an archive, or a folder with findings.json and tidy/ (default: data/STUDY); may be given again",
    )  # fmt: skip
    new = add("new", _new, "ask five questions and write a study file")
    asking.options(new)
    review = add("review", _review, "write one page on what changed: notebooks, keys, findings")
    review.add_argument("base", nargs="?", default="main", help="commit or branch to compare with")
    rerun = add("rerun", _rerun, "judge another team's findings of a study by our own")
    rerun.add_argument("place", type=Path, help="their archive, folder or findings.json")
    rerun.add_argument("--keep", metavar="NAME", help="show it on the study's page too, under this name")


def _repro(arguments: argparse.Namespace) -> int:
    from benchbook.commands import repro

    words = arguments.arguments
    if words[:1] == ["--study"]:
        return repro.run(words[2:], words[1])
    return repro.run(words)


def _doctor(arguments: argparse.Namespace) -> int:
    from benchbook.sites.arms import doctor

    abilities = doctor.examine()
    for ability in abilities:
        print(f"{'yes' if ability.ok else 'no ':3}  {ability.name:22}  {ability.detail}")
        if not ability.ok and ability.remedy:
            print(f"{'':27}  → {ability.remedy}")
    if arguments.noise and all(ability.ok for ability in abilities if ability.is_needed):
        _noise()
    return 0


def _noise() -> None:
    from benchbook.commands import calibration

    print("noise: the same server is measured against itself, in turns, for half a minute …", flush=True)
    found = calibration.noise()
    percent = 100 * found["in_ten_minutes"]
    print(
        f"noise: an effect of about {percent:.1f} % can be seen in {calibration.MINUTES} minutes now "
        f"(point selects, 4 threads; load {found['load_1min']:.1f} on {os.cpu_count()} cores before)"
    )


def _sizes(study: str) -> list[str]:
    try:
        return sizes.names(study)
    except InputErrors:
        return []  # Loading the study lists what is wrong with its file.


def _check(arguments: argparse.Namespace) -> int:
    wrong: list[str] = []
    written = paths.studies()
    named = [*written, *(size for name in written for size in _sizes(name) if size not in written)]
    attempts: list[Callable[[], object]] = [load.params, *(partial(load.to_measure, name) for name in named)]
    for attempt in attempts:
        try:
            attempt()
        except InputErrors as error:
            wrong += error.errors
    if wrong:
        raise InputErrors(wrong)
    print(f"params.yaml and {len(written)} study files are in order")
    return 0


def _plan(arguments: argparse.Namespace) -> int:
    from benchbook import sites
    from benchbook.compare import more_sessions
    from benchbook.plan import schedule
    from benchbook.sites.arms import obstacles

    study = load.to_measure(arguments.study)
    kind = sites.kind(study)
    if arguments.manifests and (manifests := kind.manifests(arguments.study, study)):
        print(manifests)
        return 0
    print(schedule.summary(arguments.study, study))
    advice = more_sessions.lines(pooled.of(arguments.study))
    for text in filter(None, (kind.needs(arguments.study, study), cluster.summary(study), *advice)):
        print(text)
    for arm, why in obstacles.foreseen(study).items():
        print(f"  not made    {arm}: {why}")
    if arguments.runs:
        runs = schedule.table(schedule.sketched(arguments.study, study))
        if study.plan.seed is None:
            # Names and order follow from what a session draws.
            runs = runs.drop(columns=["position", "run_id", "seed"])
        print(runs.to_string(index=False))
    return 0


def _up(arguments: argparse.Namespace) -> int:
    from benchbook import sites
    from benchbook.sites.lab import lab_folder

    study = load.study(arguments.study)
    with sites.open_site(study, lab_folder(paths.root(), arguments.study)) as site:
        for arm in study.arms:
            if why := site.missing(arm):
                print(f"{arm}: skipped: {why}")
                continue
            endpoint = site.up(arm)
            print(f"{arm}: {endpoint.place}, database {endpoint.database}, account in {endpoint.secret}")
        print("held until Ctrl-C", flush=True)
        site.hold()
    return 0


def _down(arguments: argparse.Namespace) -> int:
    from benchbook.sites.arms import clean
    from benchbook.sites.lab import lab_root

    report = clean.down(lab_root(paths.root()), purge=arguments.purge)
    print("\n".join([str(report), *cluster.left(lab_root(paths.root()))]))
    return 0 if report.is_clean else 1


def _stage(arguments: argparse.Namespace) -> int:
    from benchbook.commands import stage

    asked = arguments.stage.split(",")
    if wrong := [one for one in asked if one not in stage.STAGES]:
        raise InputErrors(
            [f"stage: {one}: no such stage; write one of {', '.join(stage.STAGES)}" for one in wrong]
        )
    return next((code for one in asked if (code := stage.run(one, arguments.study, arguments.here))), 0)


def _code(arguments: argparse.Namespace) -> int:
    from benchbook.commands import code

    return code.write()


def _audit(arguments: argparse.Namespace) -> int:
    from benchbook.commands import stage

    return stage.audit(arguments.source)


def _page(arguments: argparse.Namespace) -> int:
    from benchbook.commands import stage

    return stage.page(arguments.page)


def _publish(arguments: argparse.Namespace) -> int:
    from benchbook.commands import publish

    print(publish.publish(paths.root(), (arguments.to or paths.root() / "public").absolute()))
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from benchbook.commands import stage
    from benchbook.evidence import archive

    target = arguments.to or paths.root() / f"{arguments.study}.tar.gz"
    written = archive.pack(arguments.study, target, stage.commit_of_evidence(arguments.study))
    print(f"{written}: {written.stat().st_size / 1e6:.1f} MB; `make verify ARCHIVE={written}` checks it")
    return 0


def _record(arguments: argparse.Namespace) -> int:
    from benchbook.commands import record

    if bool(arguments.archive) == (arguments.study is not None):
        raise BenchbookError("record takes a study, or --archive with files of `benchbook export`")
    print(record.take_all(arguments.archive) if arguments.archive else record.add(arguments.study))
    return 0


def _pages(arguments: argparse.Namespace) -> int:
    from benchbook.commands import repro

    return repro.pages(arguments.arguments)


def _remake(arguments: argparse.Namespace) -> int:
    from benchbook.commands import remake, rewrite

    if arguments.write:
        print(rewrite.run())
        return 0
    return remake.run()


def _verify(arguments: argparse.Namespace) -> int:
    from benchbook.evidence import verify

    found = verify.verify(arguments.archive)
    print(found)
    return 0 if found.is_same else 1


def _history(arguments: argparse.Namespace) -> int:
    from benchbook.commands import history

    if arguments.study:
        for folder in arguments.folders or [paths.study(arguments.study).data]:
            print(history.keep(arguments.study, folder))
    elif arguments.folders:
        raise InputErrors(["history: --from needs the name of the study before it"])
    return history.render()


def _new(arguments: argparse.Namespace) -> int:
    from benchbook.commands import new

    return new.run(arguments)


def _review(arguments: argparse.Namespace) -> int:
    from benchbook.commands import review

    print(review.review(arguments.base))
    return 0


def _rerun(arguments: argparse.Namespace) -> int:
    from benchbook.commands import rerun

    taken = rerun.read(arguments.place, arguments.keep or "rerun")
    print(rerun.markdown(taken), end="")
    if arguments.keep:
        file = rerun.keep(taken)
        print(f"kept as data/reruns/{file.name}; `make repro` shows it on the study's page")
    return 0


def _gate(arguments: argparse.Namespace) -> int:
    from benchbook.commands import gate

    return gate.run(arguments)


def _schema(arguments: argparse.Namespace) -> int:
    from benchbook.core import schema

    return schema.write(paths.root() / "schemas", check=arguments.check)


def _reference(arguments: argparse.Namespace) -> int:
    from benchbook.commands import comparisons, questions
    from benchbook.core import reference, schema

    pages = {
        "studies/README.md": questions.build(),
        "docs/parameters.md": reference.build(),
        "docs/comparisons.md": comparisons.build(),
    }
    return max(
        schema.keep(paths.root() / name, text, "reference", arguments.check) for name, text in pages.items()
    )


if __name__ == "__main__":
    raise SystemExit(main())
