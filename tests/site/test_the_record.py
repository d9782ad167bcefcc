"""A study in the record: refused with a reason, or there with its evidence, and made again to the byte."""

import io
import os
import re
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest

from benchbook.commands import rebuild_record, record
from benchbook.commands.pages import local_links
from benchbook.compare.meta import recorded_sessions
from benchbook.core.artifacts import record as index
from benchbook.core.artifacts.findings import Findings
from benchbook.core.study import load
from benchbook.core.util import files, paths
from benchbook.core.util.errors import BenchbookError, InputErrors
from benchbook.core.util.git import run_git
from benchbook.evidence import archive, archive_store, sessions, verify
from benchbook.read import schemas
from benchbook.show import registration
from tests import found
from tests.goldens import assert_golden_case
from tests.show import notebooks
from tests.site.conftest import commit, edited, moved


def only() -> tuple[str, index.Entry]:
    """Return the one session of the made-up study, and its entry."""
    ((session, entry),) = index.read_index().studies["made"].sessions.items()
    return session, entry


def enter(session: str, entry: index.Entry, **changes: object) -> None:
    """Enter a session of the made-up study into the index, its entry with some changes."""
    study = index.read_index().studies["made"]
    index.write_study("made", study.with_session(session, entry.model_copy(update=changes)))


def put(known: index.Index, session: str, entry: index.Entry) -> index.Index:
    """Put a session of the made-up study into an index that is not written."""
    return index.Index(studies={"made": known.studies["made"].with_session(session, entry)})


def assert_told(case: str, text: object) -> None:
    """Compare a text with the golden file: `SESSION` is the session of the clone; hashes are left out."""
    text = re.sub(r"20260105T1000Z-[0-9a-f]{4}", "SESSION", str(text).replace("\xa0", " "))
    assert_golden_case("recorded.txt", case, re.sub(r"\b[0-9a-f]{8,64}\b", "…", text))


@pytest.fixture(scope="module")
def clone(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A clone in which the made-up study was committed before its first run, measured and recorded."""
    root = tmp_path_factory.mktemp("record") / "clone"
    shutil.copytree(site, root, symlinks=True, ignore=shutil.ignore_patterns(".git", "public"))
    (root / ".gitignore").write_text("/data/*/*\n!/data/record/*\n/reports/\n")
    subprocess.run(["git", "init", "-q", root], check=True)
    commit(root, "studies", "params.yaml", "notebooks", ".gitignore")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHBOOK_ROOT", str(root))
        assert "recorded with a doubt: the check “equal tables” fails" in record.add_session("made")
        yield root


@pytest.fixture
def at(clone: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCHBOOK_ROOT", str(clone))
    return clone


def test_the_index_says_what_was_recorded_where_and_how_it_can_be_checked(at: Path):
    session, entry = only()
    packed = at / "data" / "record" / "made" / f"{session}.tar.xz"
    # 5 blocks of direct, direct_again and haproxy at one level.
    assert (entry.runs, entry.blocks, entry.measured[:10]) == (15, 5, "2026-01-05")
    # The made-up logs differ in little but their counts, which is just what that check is for.
    assert_told("doubts of an entry", "\n".join(entry.doubts))
    assert entry.sha256 == files.digest_file(packed) and entry.bytes == packed.stat().st_size
    assert session.startswith("20260105T") and "2 cores of made up" in entry.machine.description
    assert entry.registered.startswith("Held: ")
    assert set(index.read_index().studies["made"].columns[entry.columns]) == set(schemas.SCHEMAS)
    assert len(entry.logs.split()) == 15
    results = packed.with_suffix("").with_suffix(".json")
    assert entry.results == files.digest_file(results)
    own = Findings.read(paths.study_paths("made").findings)
    assert index.read_index().newest("made").results.findings == own


def test_recording_one_does_not_keep_the_next_from_being_recorded(at: Path):
    """Nor does the list of studies, which `make repro` writes."""
    params = at / "params.yaml"
    with edited(params, params.read_bytes().replace(b"[made]", b"[made, next]")):
        assert list(record.find_edits("made")) == []


def test_the_record_is_made_again_to_the_byte_with_every_link_leading_somewhere(at, monkeypatch):
    for name in ("index.html", "method.html"):
        assert (at / "reports" / name).is_file()
    assert rebuild_record.rebuild_record() == []
    again = index.read_index().newest("made").where
    own = paths.study_paths("made")
    assert again.findings.read_bytes() == own.findings.read_bytes()
    for table in own.tidy.iterdir():
        assert (again.tidy / table.name).read_bytes() == table.read_bytes()
    pages = sorted((at / "reports" / "record").rglob("*.html"))
    written = {page.relative_to(at / "reports" / "record").as_posix() for page in pages}
    assert written >= {"studies/made.html", "runs/made/index.html"}
    links = [(page, link) for page in pages for link in local_links(page.read_text())]
    assert not [(page, link) for page, link in links if not (page.parent / link).resolve().is_file()]
    page = at / "reports" / "record" / "studies" / "made.html"
    assert "Held: question, arms" in page.read_text() and page.with_suffix(".md").is_file()
    monkeypatch.setattr(rebuild_record, "_rebuild_session", None)
    monkeypatch.setattr(rebuild_record, "_render_page", None)
    assert rebuild_record.rebuild_record() == [], "what stands is not made again"


def test_a_study_of_which_no_run_counts_is_parsed_all_the_same(at, tmp_path, monkeypatch):
    root = shutil.copytree(at, tmp_path / "clone", symlinks=True)
    monkeypatch.setenv("BENCHBOOK_ROOT", str(root))
    for run in paths.study_paths("made").raw.iterdir():
        shutil.rmtree(run)
    notebooks.execute(root / "notebooks" / "05_parse.ipynb", root, study="made")
    assert pd.read_parquet(paths.study_paths("made").tidy / "runs.parquet").empty


@pytest.mark.parametrize("name", ["start", "why_is_it_faster"])
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_the_explorations_run_on_what_is_recorded_where_nothing_was_measured(at, name, monkeypatch):
    """One's own findings are put aside; what `make lab` unpacks is then what each notebook reads.

    The test before has made it again, which takes seconds; those below remove it.
    """
    import matplotlib as mpl

    if not index.read_index().newest("made").where.findings.is_file():
        assert rebuild_record.rebuild_record() == []
    own = paths.study_paths("made").findings
    given = {} if name == "start" else {"study": "made"}
    notebook = at / "notebooks" / "explore" / f"{name}.ipynb"
    with moved(own, own.with_suffix(".aside")), mpl.rc_context({"backend": "agg"}):
        executed = notebooks.execute(notebook, at, **given)
    assert len([output for cell in executed.cells for output in cell.get("outputs", [])]) >= 3


def repacked(archive: Path, change, mtime: int = 1) -> None:
    with tarfile.open(archive) as tar:
        entries = [(one, tar.extractfile(one).read()) for one in tar]
    with tarfile.open(archive, "w:xz") as tar:
        for one, content in entries:
            changed = change(one.name, content)
            one.size, one.mtime = len(changed), mtime
            tar.addfile(one, io.BytesIO(changed))


@pytest.fixture
def broken(at: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The archive of the made-up study, which a test may change; what it says is made again in this process.

    With one core none is started for it, which would import everything first.
    """
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    archive, entries = index.read_index().newest("made").where.archive, index.read_index()
    shutil.copyfile(archive, tmp_path / "whole")
    shutil.rmtree(at / "data" / "recorded", ignore_errors=True)
    yield archive
    shutil.copyfile(tmp_path / "whole", archive)
    index.write_study("made", entries.studies["made"])
    shutil.rmtree(at / "data" / "recorded", ignore_errors=True)


def test_one_changed_digit_in_a_raw_log_or_another_archive_is_refused_by_name(broken: Path, tmp_path: Path):
    name = sorted(paths.study_paths("made").raw.iterdir())[3].name
    log = f"made/data/made/raw/{name}/sysbench.out"

    def change(file: str, content: bytes) -> bytes:
        return content.replace(b"tps: 1", b"tps: 2", 1) if file == log else content

    repacked(broken, change)
    assert_told("a digit of a raw log", "\n".join(rebuild_record.rebuild_record()).replace(name, "RUN"))
    shutil.copyfile(tmp_path / "whole", broken)
    repacked(broken, lambda _, content: content, mtime=7)
    assert_told("another archive", "\n".join(rebuild_record.rebuild_record()))


def test_archives_and_index_name_each_other(at: Path):
    session, entry = only()
    gone = index.Index(studies={"gone": index.Recorded(title="Gone", sessions={session: entry})})
    assert_told("archives and index apart", "\n".join(sessions.find_unmatched(gone)))


def test_a_session_is_refused_under_another_name_and_named_where_it_lies_twice(at: Path):
    _, entry = only()
    packed = index.read_index().newest("made").where.archive
    with pytest.raises(InputErrors) as refused:
        record.take_archive(packed)
    assert_told("taken again", refused.value)
    both = put(index.read_index(), "20260106T0000Z-0000", entry)
    assert_told("twice", "\n".join(sessions.find_duplicates(both)))


def test_what_does_not_follow_from_its_archive_in_an_entry_is_named(broken: Path):
    session, entry = only()
    wrong = {"design": "0" * 12, "seed": entry.seed + 1, "measured": "2026-01-05T23:59Z"}
    enter(session, entry, **wrong)
    told = rebuild_record.rebuild_record()
    shown = index.read_index().newest("made").where.report.read_text()
    assert_told("an entry that does not follow", "\n".join(told))
    for key, value in wrong.items():
        (line,) = [line for line in told if f"{key}: index.json says {value}" in line]
        assert line.partition(f"{session}: ")[2] in shown


def test_a_value_that_came_out_otherwise_is_named_and_its_page_says_so(broken, tmp_path, monkeypatch):
    _of_another_code(broken, tmp_path / "root", monkeypatch)
    session, entry = only()
    enter(session, entry, sha256=files.digest_file(broken))
    told = "findings.json: blocks.complete: 4 recorded, 5 here"
    assert any(told in text for text in rebuild_record.rebuild_record())
    assert told in index.read_index().newest("made").where.report.read_text()


def test_an_edited_tree_and_an_unfinished_study_are_refused(at: Path, tmp_path: Path):
    file, run = at / "studies" / "made.yaml", sorted(paths.study_paths("made").raw.iterdir())[0]
    with edited(file, file.read_bytes() + b"\n# more\n"), pytest.raises(InputErrors) as refused:
        record.add_session("made")
    assert_told("an edited tree", refused.value)
    with moved(run, tmp_path / run.name), pytest.raises(InputErrors) as refused:
        record.add_session("made")
    assert_told("a run too few", refused.value)


def test_blocks_that_are_missing_keep_a_study_out_and_blocks_that_were_never_planned_do_not(at, monkeypatch):
    study, file = load.load_study("made"), paths.study_paths("made").findings
    early = {"n": 0, "level": 0.98, "next": 5, "note": ""}
    planned = found.changed(Findings.read(file), look=early, blocks={"planned": 5, "complete": 4}).plain
    monkeypatch.setattr(files, "read_json", lambda path: planned)
    assert_told("blocks that are missing", "\n".join(record.find_unfinished("made", study)))
    planned["blocks"] = {"planned": 2, "complete": 2}
    assert list(record.find_unfinished("made", study)) == []
    objections = record.find_objections(found.changed(QUIET, look=early), "Held: x")
    assert_told("blocks that were never planned", "\n".join(objections))


QUIET = found.findings(aa=found.finding(effect=0.001, low=-0.01, high=0.012, label="not shown"))
WIDE = found.finding(
    effect=0.01, low=-0.07, high=0.09, names={"treatment": "the pod", "workload": "point selects"}
)


@pytest.mark.parametrize(
    ("changed", "registered", "reason"),
    [
        ({"aa": None}, "Held: x", "no A/A pair (aa), so how far apart"),
        ({"findings": [WIDE]}, "Held: x", "too wide: the pod, point selects: the interval reaches 8 %"),
        ({"aa": found.changed(QUIET.aa, label="higher")}, "Held: x", "a difference where there is none"),
        ({"warnings": [{"title": "Steal", "text": "5 %", "favours": []}]}, "Held: x", "steal: 5 %"),
        ({}, "Not held: threads changed", "pre-registration: Not held"),
        ({}, "Held: question stands", None),
    ],
)
def test_what_speaks_against_a_study_is_named(changed: dict, registered: str, reason: str | None):
    told = list(record.find_objections(found.changed(QUIET, **changed), registered))
    assert len(told) == (reason is not None) and (reason or "") in "".join(told)


def test_after_a_change_of_the_code_the_record_is_made_again_and_says_what_changed(
    broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The recorded findings are those of another code: here, of one that found one block less."""
    session, entry = only()
    as_recorded = f"made {session}: as recorded"
    assert rebuild_record.rewrite_sessions() == as_recorded
    _of_another_code(broken, tmp_path / "root", monkeypatch)
    with pytest.raises(BenchbookError) as refused:
        rebuild_record.rewrite_sessions()
    assert_told("made again of another archive", refused.value)
    packed = index.read_index().newest("made").where.archive
    enter(session, entry, sha256=files.digest_file(packed))
    told = rebuild_record.rewrite_sessions()
    assert_told("made again", told)
    _, fresh = only()
    assert (fresh.tables, fresh.measured, fresh.commit) == (entry.tables, entry.measured, entry.commit)
    assert fresh.sha256 == files.digest_file(packed)
    assert rebuild_record.rewrite_sessions() == as_recorded
    enter(session, fresh, seed=fresh.seed + 1)
    with pytest.raises(BenchbookError) as refused:
        rebuild_record.rewrite_sessions()
    assert_told("made again of another seed", refused.value)


def test_made_again_a_session_keeps_the_archive_that_was_fetched(broken, tmp_path, monkeypatch):
    """Git ignores it, so nobody else would have the bytes whose hash the index then names."""
    session, entry = only()
    _of_another_code(broken, tmp_path / "root", monkeypatch)
    recorded = index.read_index().newest("made")
    before = files.digest_file(recorded.where.archive)
    enter(session, entry, sha256=before)
    subprocess.run(["git", "init", "-q", recorded.where.clone], check=True)
    archive_store._ignore_fetched(recorded)
    rebuild_record.rewrite_sessions()
    assert files.digest_file(recorded.where.archive) == before == only()[1].sha256


def _of_another_code(packed: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the findings of an archive by others, whole and with their hashes."""
    root.mkdir()
    archive.unpack_archive(packed, root)
    file = root / "data" / "made" / "findings.json"
    file.write_text(file.read_text().replace('"complete": 5', '"complete": 4'))
    with monkeypatch.context() as patch:
        patch.setenv("BENCHBOOK_ROOT", str(root))
        archive.pack_study("made", packed)


def test_a_session_is_superseded_with_a_reason_unless_nothing_would_be_left(broken: Path):
    """An arm alone can be taken out; the session then stands with its other arms."""
    session, _ = only()
    with pytest.raises(InputErrors) as refused:
        record.supersede_session(session, " ", ["hapraxy"])
    assert_told("superseded without a reason", refused.value)
    with pytest.raises(InputErrors) as refused:
        record.supersede_session(session, "It never was cold.")
    assert_told("superseded, the last one", refused.value)
    told = record.supersede_session(session, "It never was cold.", ["haproxy"])
    assert_told("superseded", told)
    _, entry = only()
    assert entry.is_pooled and entry.superseded.arms == ("haproxy",)
    found = rebuild_record.rebuild_study("made")
    (contrast,) = found.contrasts
    assert contrast.whole.label == "not computed"
    assert contrast.whole.seen[0].reason == "superseded: It never was cold."
    enter("20260106T0000Z-0000", entry, superseded=None, measured="2026-01-06T00:00Z")
    record.supersede_session("20260106T0000Z-0000", "Measured twice.")
    assert index.read_index().studies["made"].newest == session


class Served(SimpleHTTPRequestHandler):
    """A folder over HTTP that takes files too, as remotes of DVC are."""

    def do_PUT(self) -> None:
        file = Path(self.translate_path(self.path))
        file.parent.mkdir(parents=True, exist_ok=True)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or self._chunks()
        file.write_bytes(body)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_PUT

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=["folder", "http"])
def remote(request: pytest.FixtureRequest, broken: Path, tmp_path: Path) -> Iterator[Path]:
    """The folder of a DVC remote of the clone, reached as a folder or by a real HTTP server."""
    clone, folder = broken.parents[3], tmp_path / "remote"
    folder.mkdir()
    (clone / ".dvc").mkdir(exist_ok=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Served, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = str(folder) if request.param == "folder" else f"http://127.0.0.1:{server.server_port}"
        config = f"[core]\n    remote = store\n    analytics = false\n['remote \"store\"']\n    url = {url}\n"
        (clone / ".dvc" / "config").write_text(config)
        yield folder
        server.shutdown()
    shutil.rmtree(clone / ".dvc")


def test_an_archive_goes_to_the_remote_and_comes_back_only_as_it_was(remote: Path, broken: Path):
    session, entry = only()
    whole = broken.read_bytes()
    assert record.prune_archives().startswith("0 archives"), "the newest stays, so that pages need no network"
    enter("20260106T0000Z-0000", entry, measured="2026-01-06T00:00Z", logs="")
    assert record.prune_archives().startswith("1 archive ")
    (sent,) = [file for file in remote.rglob("*") if file.is_file()]
    assert not broken.exists() and sent.read_bytes() == whole
    assert sent.relative_to(remote).as_posix() == f"benchbook/{entry.sha256[:2]}/{entry.sha256[2:]}.tar.xz"
    assert_told("fetched", record.fetch_archives([session]))
    assert broken.read_bytes() == whole
    broken.unlink()
    sent.write_bytes(whole[:-1] + b"x")
    with pytest.raises(BenchbookError, match="its bytes are others"):
        record.fetch_archives([session])
    sent.unlink()
    with pytest.raises(BenchbookError, match="the remote has no such archive"):
        record.fetch_archives([session])
    with pytest.raises(InputErrors) as refused:
        record.fetch_archives(["gone"])
    assert_told("fetched by a name that is not there", refused.value)
    assert not broken.exists() and not list(broken.parent.glob(".*"))


def test_what_the_record_can_not_take_is_refused_before_and_kept_after(broken, tmp_path, monkeypatch):
    packed = shutil.copyfile(broken, tmp_path / "theirs.tar.xz")
    monkeypatch.setattr(record, "record_size", lambda: record.MOST_BYTES - 100)
    problems = record.capacity_problem(101), record.capacity_problem(50, 3)
    assert_told("no room for more", "\n".join(map(str, problems)))
    assert record.capacity_problem(100) is None
    broken.with_name(index.INDEX).unlink()
    where = r"The archive is kept: data/refused/theirs-[0-9a-f]{8}\.tar\.xz"
    with pytest.raises(BenchbookError, match=where):
        record.take_archive(packed)
    (kept,) = (paths.find_root() / "data" / "refused").iterdir()
    assert kept.read_bytes() == packed.read_bytes()


def test_archives_are_checked_in_processes_and_an_index_is_written_once(broken, tmp_path, monkeypatch):
    first, second = (shutil.copyfile(broken, tmp_path / f"{name}.tar.xz") for name in ("first", "second"))
    damaged = tmp_path / "damaged.tar.xz"
    damaged.write_bytes(first.read_bytes()[:-1000])
    before = only()
    broken.with_name(index.INDEX).unlink()
    written, write_study = [], index.write_study
    monkeypatch.setattr(index, "write_study", lambda *how: written.append(how[0]) or write_study(*how))
    outcomes = record.take_archives([damaged, first, second])
    assert [*outcomes] == [damaged, first, second] and written == ["made"]
    kept = str(outcomes[damaged]).partition("The archive is kept: ")[2]
    assert kept.startswith("data/refused/damaged-")
    (paths.find_root() / kept).unlink()
    assert str(outcomes[first]).startswith(f"data/record/made/{before[0]}.tar.xz: ")
    # The other process could not know of the first; the record asks again when it is entered.
    assert isinstance(outcomes[second], record.Doubled)
    assert_told("taken twice at once", str(outcomes[second]).replace(f"{tmp_path}/", ""))
    assert only()[0] == before[0]


def test_a_retired_study_stays_readable_and_keeps_its_reason(broken: Path):
    told = record.retire_study("made", "quick asks it.")
    assert told == "data/record/made/index.json: made is retired: quick asks it."
    session, entry = only()
    enter(session, entry)
    assert index.read_index().studies["made"].retired == "quick asks it."
    with pytest.raises(InputErrors) as refused:
        record.retire_study("mode", "It is another's.")
    assert_told("retired with a typing mistake", refused.value)


def test_a_look_at_another_design_before_takes_held_away_and_is_named(broken: Path):
    _, entry = only()
    asked = "made", entry.registered, entry.measured, broken.parents[3] / "studies" / "made.yaml"
    assert registration.confirm_registration(*asked) == entry.registered
    enter("20251231T0000Z-0000", entry, measured="2025-12-31T00:00Z")
    assert_told("a look at another design", registration.confirm_registration(*asked))


def test_what_stands_behind_the_word_of_who_recorded_is_named(at: Path, tmp_path: Path):
    session, _ = only()
    packed = at / "data" / "record" / "made" / f"{session}.tar.xz"
    assert_told("provenance without a commit", "\n".join(verify.describe_provenance(packed)))
    commit(at, "data/record")
    elsewhere = shutil.copyfile(packed, tmp_path / "received.tar.xz")
    told = "\n".join(verify.describe_provenance(elsewhere))
    assert_told("provenance", re.sub("commit [0-9a-f]{7,}", "commit …", told))
    elsewhere.write_bytes(b"another")
    assert list(verify.describe_provenance(elsewhere)) == [verify.UNBOUND]


def test_an_earlier_session_is_named_too_where_its_entry_does_not_follow(broken: Path):
    """Earlier sessions are not made again, and pooled by what their entries say."""
    session, entry = only()
    shutil.copyfile(broken.with_name(f"{session}.json"), broken.with_name("20260107T0000Z-0000.json"))
    whole = put(index.read_index(), "20260107T0000Z-0000", entry)
    for part, wrong in (("design", "0" * 12), ("results", "0" * 64)):
        changed = put(whole, session, entry.model_copy(update={part: wrong}))
        with pytest.raises(BenchbookError) as refused:
            recorded_sessions.pool_study(changed, "made")
        assert_told(f"pooled with another {part}", str(refused.value).replace(session, "EARLIER"))
    other = entry.model_copy(update={"sha256": "0" * 64})
    named = "\n".join(sessions.find_unmatched(put(whole, session, other)))
    assert_told("another archive of an earlier session", named.replace(session, "EARLIER"))
    assert recorded_sessions.pool_study(whole, "made").left_out == ()
    broken.with_name("20260107T0000Z-0000.json").unlink()


def test_an_archive_that_a_commit_has_leaves_the_folder_and_comes_back_from_git(broken: Path):
    session, entry = only()
    clone, whole = broken.parents[3], broken.read_bytes()
    enter("20260106T0000Z-0000", entry, measured="2026-01-06T00:00Z", logs="")
    commit(clone, "-f", "data/record")
    told = record.prune_archives()
    assert_told("pruned", re.sub(r"[\d.]+ [kM]B", "SIZE", told))
    commit(clone, "-u")
    assert not broken.exists()
    assert_told("fetched", record.fetch_archives([session]))
    assert broken.read_bytes() == whole
    shutil.copy(broken, newer := broken.with_name("20260108T0000Z-0000.tar.xz"))
    listed = run_git("status", "--porcelain", "data/record", root=clone) or ""
    assert newer.name in listed and broken.name not in listed, "what was fetched is ignored, a new one isn't"
    newer.unlink()
