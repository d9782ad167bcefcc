"""What `measure` may ask of a site, asked of each: this machine, hosts, pods, and a server that exists."""

import contextlib
import inspect
import itertools
import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

from benchbook import sites
from benchbook.core.artifacts import applied_config
from benchbook.core.study import inventory, registry
from benchbook.core.study.study import StudySpec
from benchbook.core.util.errors import SiteError
from benchbook.measure import dataset, statement_counters
from benchbook.measure.data_plan import plan_data
from benchbook.read import validity
from benchbook.sites import workspace as labs
from benchbook.sites.contract import Site, Start
from benchbook.sites.kube.api import VARIABLES
from benchbook.sites.machine.local_machine import COLUMNS
from benchbook.sites.topology import feasibility, teardown
from tests import beside, rooms, small, walks
from tests.limits import LIMITS
from tests.sites import kubernetes_study
from tests.sites.connection import tell
from tests.sites.ssh_hosts import racked, unable

SMALL = {"innodb_buffer_pool_size": "32M", "innodb_log_file_size": "8M", "innodb_flush_log_at_trx_commit": 2}
BUSY = "import time; end = time.monotonic() + 3.3\nwhile time.monotonic() < end: pass"
KINDS = ("local", "ssh", "kubernetes", "existing")
DIRECT = {"direct": {}, "proxy": {"access": "haproxy"}}


def study(kind: str, port: int, arms: dict[str, Any], engine: dict[str, Any], **site: Any) -> StudySpec:
    return small.study(
        site={"kind": kind, **({"port": port} if kind != "existing" else {}), **site},
        engine={"settings": engine},
        arms=arms,
        dataset={"tables": 2, "table_size": 1000},
        workloads={"oltp_read_only": {}},
        threads=(1,),
        plan={"seed": 3, "blocks": 1, "discard_s": 1, "run_s": 2, "order": "runs"},
    )


def of_hosts(port: int, stack: ExitStack, patch: pytest.MonkeyPatch) -> tuple[StudySpec, Path]:
    """Three hosts in namespaces, each with a real sshd."""
    if (reason := unable()) is not None:
        pytest.skip(str(reason))
    rack = stack.enter_context(racked(100 + rooms.number(), "server1", "proxy1", "client1"))
    patch.setenv(inventory.VARIABLE, str(rack.inventory(timeout_s=5.0, patience_s=60.0, lease_s=120.0)))
    asked = study("ssh", port, DIRECT, SMALL, inventory="rack")
    return asked, rack.folder / "home" / "study"


def of_cluster(port: int, stack: ExitStack, folder: Path) -> tuple[StudySpec, Path]:
    """The cluster that a variable names, with an image of all programs; what is left in it is removed."""
    if not any(os.environ.get(name) for name in VARIABLES):
        pytest.skip(f"no cluster: neither {' nor '.join(VARIABLES)} is set")
    stack.callback(teardown.tear_down, folder / "contract-pods")
    section = {"images": kubernetes_study.IMAGES, "wait_s": 120}
    asked = study("kubernetes", port, DIRECT, SMALL, kubernetes=section)
    return asked, folder / "contract-pods"


def of_endpoint(
    port: int, stack: ExitStack, patch: pytest.MonkeyPatch, folder: Path, lock: Path
) -> tuple[StudySpec, Path]:
    """A server that another owner runs, under another lock, with an account and an empty schema for us."""
    # Searched for in every process of this machine, so no other program may say it by chance.
    password = secrets.token_hex()
    patch.setenv("BENCHBOOK_LOCK", f"{lock}-theirs")
    theirs = study("local", port, {"direct": {}, "relay": {"access": "haproxy"}}, SMALL)
    other = stack.enter_context(sites.open_site(theirs, folder / "contract-theirs"))
    endpoint = other.up("direct")
    account = f"CREATE OR REPLACE USER 'guest'@'127.0.0.1' IDENTIFIED BY '{password}'"
    allowed = "GRANT ALL PRIVILEGES ON ours.* TO 'guest'@'127.0.0.1'"
    tell(other, account, "CREATE OR REPLACE DATABASE ours", allowed)
    patch.setenv("BENCHBOOK_LOCK", str(lock))
    patch.setenv("GUEST_PASSWORD", password)
    place = {"host": endpoint.host, "port": endpoint.port, "database": "ours", "user": "guest"}
    arms = {"direct": {}, "proxy": {"endpoint": {"host": endpoint.host, "port": endpoint.port}}}
    asked = study("existing", port, arms, {}, existing=place | {"password_env": "GUEST_PASSWORD"})
    return asked, folder / "contract-ours"


@pytest.fixture(scope="module", params=KINDS)
def site(request, open_folder, port, tmp_path_factory) -> Iterator[Site]:
    """Each kind of site in turn, open, with the arms `direct` and `proxy`, and its tables loaded."""
    kind, lock = request.param, tmp_path_factory.mktemp("lock") / "machine.lock"
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("BENCHBOOK_LOCK", str(lock))
        if kind == "ssh":
            asked, home = of_hosts(port, stack, patch)
        elif kind == "kubernetes":
            asked, home = of_cluster(port, stack, open_folder)
        elif kind == "existing":
            asked, home = of_endpoint(port, stack, patch, open_folder, lock)
        else:
            asked, home = study("local", port, DIRECT, SMALL), open_folder / "contract"
        opened = stack.enter_context(sites.open_site(asked, home))
        dataset.load_data(opened, plan_data(asked))
        yield opened


@pytest.mark.parametrize("kind", sorted(registry.SITES))
def test_every_kind_of_site_takes_what_the_contract_gives_and_adds_no_argument(kind: str):
    """`measure` calls by the contract's words: another name, order or a further argument would be lost."""
    made = sites.load(registry.SITES[kind])
    assert issubclass(made, Site) and not inspect.isabstract(made)
    asked = (inspect.getmembers(Site, of_kind) for of_kind in (inspect.isfunction, inspect.ismethod))
    for name, wanted in itertools.chain.from_iterable(asked):
        if not name.startswith("_"):
            its = inspect.signature(getattr(made, name)).parameters
            assert list(its) == list(inspect.signature(wanted).parameters), name


def test_the_rooms_that_answer_doctor_and_clean_answer_alike():
    doctors, cleaners = list(sites.rooms("doctor")), list(sites.rooms("clean"))
    rooms_of = {target.rpartition(".")[0] for target in registry.SITES.values()}
    assert {one.__name__.rpartition(".")[0] for one in (*doctors, *cleaners)} < rooms_of
    for one in doctors:
        given = inspect.signature(one.examine).parameters.values()
        assert all(parameter.default is not inspect.Parameter.empty for parameter in given), one.__name__
    for one in cleaners:
        assert list(inspect.signature(one.down).parameters) == ["folder", "token", "report", "purge"]
        assert all((Path("lab") / name).parent == Path("lab") for name in one.RECORDS)


@pytest.mark.server
def test_an_arm_that_is_up_is_the_same_arm_until_it_is_stopped(site: Site):
    assert site.able == ["direct", "proxy"] and site.missing("proxy") is None
    assert feasibility.find_infeasible(site.study) == feasibility.of_site(site, site.study.arms) == {}
    assert [name for group in site.data_groups() for name in group] == ["direct", "proxy"]
    for arm in site.able:
        place = site.up(arm)
        assert site.up(arm) == place == site.endpoints(arm)[0]
        assert place.database == site.database and place.secret.stat().st_mode & 0o077 == 0
        assert site.identity(arm) == site.identity(arm)
        first, second = site.facts(arm), site.facts(arm)
        assert first.pop("moment") and second.pop("moment") and first == second
        assert first["arm"] == arm and first["engine"]["version"]
        assert 0 < site.allowance(arm) <= (os.cpu_count() or 1)
    assert site.server_of("direct") == site.server_of("proxy")


@pytest.mark.server
def test_what_was_applied_to_an_arm_is_what_its_runs_name_by_digest_and_holds_no_password(site: Site):
    for arm in site.able:
        password = labs.read_secret(site.up(arm).secret)[1]
        texts = dict(site.applied(arm))
        said = (site.identity(arm), site.facts(arm))
        named = {digest for one in said for _, digest in applied_config.find_digests(one)}
        assert {applied_config.digest_text(text) for text in texts.values()} == named
        assert not any(password in text for text in texts.values())
        server = {"my.cnf", "mariadbd.argv"}
        due = {"direct": server, "proxy": server | {"haproxy.cfg", "haproxy.argv"}}[arm]
        if site.study.site.kind == "kubernetes":
            pods = server | {"study.yaml", "server.yaml", "client.yaml"}
            due = {"direct": pods, "proxy": pods | {"proxy.yaml"}}[arm]
        assert set(texts) == (due if site.study.site.kind != "existing" else set())


@contextlib.contextmanager
def watched_for(secret: bytes) -> Iterator[set[Path]]:
    """Command lines and environments of this machine's processes that show a secret while the block runs."""
    shown = set[Path]()

    def look() -> None:
        for pid, name in itertools.product(psutil.pids(), ("cmdline", "environ")):
            with contextlib.suppress(OSError):
                if secret in (path := Path(f"/proc/{pid}/{name}")).read_bytes():
                    shown.add(path)

    with beside.again(look, 0.1):
        yield shown


@pytest.mark.server
def test_a_run_is_valid_to_the_query_shows_no_password_and_has_the_same_columns(site: Site, tmp_path: Path):
    planned = walks.planned(site.study, "proxy")
    password = labs.read_secret(site.up("proxy").secret)[1].encode()
    with statement_counters.open_session(site, "proxy") as connection, watched_for(password) as shown:
        folder = walks.made(site, planned, [connection], tmp_path)
    assert not shown
    judged, evidence = validity.judge_run(folder, LIMITS), folder.evidence()
    assert (judged.reasons, judged.status, judged.ledger) == ([], "valid", "agrees")
    table = pd.read_csv(folder.path / "monitor.csv")
    ours = {"server", "proxy"} if site.study.site.kind != "existing" else set()
    assert tuple(table.columns) == COLUMNS and {"client", "machine"} | ours <= set(table.part)
    assert evidence["machine_cores"] == os.cpu_count()
    assert evidence["client"]["cpu_s"] > 0 and evidence["oom_kills"] == 0


@pytest.mark.server
def test_the_monitor_and_the_kernel_agree_on_what_a_client_used(site: Site, tmp_path: Path):
    """A loop of 3.3 s: what its rows add up to is what the kernel counted, but for what was cut off at both
    ends, a second at most; a loaded machine gives both less."""
    out, err, path = tmp_path / "out", tmp_path / "err", tmp_path / "monitor.csv"
    site.up("direct")
    client = site.client(Start(["python3", "-c", BUSY], out, err, tmp_path, arm="direct"))
    watch = site.watch("direct", [client], path)
    watch.start()
    assert client.popen.wait(timeout=60) == 0
    watch.stop()
    table = pd.read_csv(path)
    mine = table[table.part == "client"]
    seen = float((mine.cpu_cores * mine.second.diff().fillna(mine.second)).sum())
    assert 0 < seen <= watch.client_cpu_s + 0.2 and watch.client_cpu_s - seen < 1.3
    assert watch.cores == os.cpu_count() and watch.steal_pct >= 0 and watch.longest_pause_ms >= 0
    machine = table[table.part == "machine"]
    # The kernel counts a machine's time in ticks, too coarse for a last row that was cut short.
    whole = machine[machine.second.diff().fillna(machine.second) > 0.5]
    assert whole.cpu_cores.between(0, 1.1 * watch.cores).all() and machine.rss_mib.gt(10).all()


@pytest.mark.server
def test_a_client_that_is_ended_says_by_which_signal_and_its_words_are_here(site: Site, tmp_path: Path):
    out, err = tmp_path / "out", tmp_path / "err"
    client = site.client(Start(["sh", "-c", "echo begun; sleep 60"], out, err, tmp_path, arm="direct"))
    assert client.popen.poll() is None
    client.popen.send_signal(signal.SIGTERM)
    if client.popen.wait(timeout=30) != -signal.SIGTERM:
        pytest.fail(f"ended with {client.popen.returncode}")
    assert out.exists() and err.exists()


@pytest.mark.server
def test_prepared_data_is_known_by_its_label_and_is_there_after_it_was_put_back(site: Site):
    label = plan_data(site.study).label
    assert site.has_snapshot(label) and site.has_snapshot() and not site.has_snapshot("other")
    site.up("direct")
    mark = site.log_mark("direct")
    site.restore(label)
    with pytest.raises(SiteError, match="prepare stage"):
        site.restore("other")
    site.up("direct")
    with statement_counters.open_session(site, "direct") as connection:
        data = plan_data(site.study)
        assert dataset.find_problems(dataset.describe_data(connection, data), data) == []
    assert site.log_errors(mark, "direct") == []


@pytest.mark.server
def test_what_a_site_does_not_support_is_said_by_its_kind(site: Site):
    kind = site.study.site.kind
    if kind not in ("local", "kubernetes", "existing"):
        with pytest.raises(SiteError, match=f"turns .*`site.kind: {kind}`"):
            site.clock({}, {})
