"""An archive is whole, the same each time, checked to the byte, and never writes where it should not."""

import copy
import gzip
import hashlib
import io
import json
import re
import tarfile
from pathlib import Path

import pytest

from benchbook.core.util.errors import BenchbookError
from benchbook.evidence import archive, recompute, verify
from tests import found
from tests.goldens import assert_golden_case
from tests.site.conftest import edited, moved


@pytest.fixture(scope="module")
def packed(site: Path, tmp_path_factory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHBOOK_ROOT", str(site))
        return archive.pack_study("made", tmp_path_factory.mktemp("archive") / "made.tar.gz", "0a1b2c3")


def assert_refused(case: str, refused: pytest.ExceptionInfo[BenchbookError], folder: Path) -> None:
    """Compare what an archive is refused with and the golden file."""
    assert_golden_case("archives.txt", case, _without_hashes(str(refused.value)).replace(f"{folder}/", ""))


def _without_hashes(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{10,64}\b", "…", text)


def entries(packed: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(packed) as tar:
        return [(entry, tar.extractfile(entry).read() if entry.isreg() else b"") for entry in tar]


def repack(into: Path, changed: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with gzip.open(into, "wb") as stream, tarfile.open(fileobj=stream, mode="w") as tar:
        for entry, content in changed:
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return into


@pytest.fixture
def here(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The made-up repository, as the one that commands work in."""
    monkeypatch.setenv("BENCHBOOK_ROOT", str(site))
    return site


def test_it_holds_the_whole_evidence_and_the_same_bytes_whatever_folder_the_study_lies_in(
    packed, here, tmp_path
):
    folder = here / "studies" / "pool"
    folder.mkdir()
    with moved(here / "studies" / "made.yaml", folder / "made.yaml"):
        again = archive.pack_study("made", tmp_path / "again.tar.gz", "0a1b2c3")
    folder.rmdir()
    assert again.read_bytes() == packed.read_bytes()
    names = [one.name for one, _ in entries(packed)]
    assert names[0] == "made/manifest.json" and names[1:] == sorted(names[1:])
    data = here / "data" / "made"
    raw = {f"made/{file.relative_to(here)}" for kind in ("raw", "void") for file in (data / kind).rglob("*")
           if file.is_file()}  # fmt: skip
    assert len(raw) == 16 * 6 + 1 and raw <= set(names)
    assert {"made/studies/made.yaml", "made/params.yaml", "made/data/made/findings.json"} <= set(names)
    assert {(one.mtime, one.uid, one.gid, one.uname) for one, _ in entries(packed)} == {(0, 0, 0, "")}


def test_as_xz_it_holds_the_same_in_the_same_bytes_each_time(packed, here, tmp_path):
    first, second = (archive.pack_study("made", tmp_path / f"{name}.tar.xz", "0a1b2c3") for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size < packed.stat().st_size
    digests = {archive.unpack_archive(one, tmp_path / one.name[:1] / "out").digest for one in (first, packed)}
    assert len(digests) == 1
    with pytest.raises(BenchbookError) as refused:
        archive.pack_study("made", tmp_path / "made.zip")
    assert_refused("another ending", refused, tmp_path)


def test_a_link_in_the_evidence_is_not_followed_into_the_archive(here, tmp_path):
    link = here / "data" / "made" / "pilots" / "secret"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to("/etc/shadow")
    try:
        with pytest.raises(BenchbookError) as refused:
            archive.pack_study("made", tmp_path / "made.tar.gz")
    finally:
        link.unlink()
    assert_refused("a link in the evidence", refused, tmp_path)


def test_a_study_that_is_not_measured_or_was_touched_is_not_exported(here, tmp_path):
    log = min((here / "data" / "made" / "raw").glob("*/sysbench.out"))
    with edited(log, log.read_bytes() + b"\n"), pytest.raises(BenchbookError) as refused:
        archive.pack_study("made", tmp_path / "made.tar.gz")
    assert not list(tmp_path.iterdir())
    assert_refused("a touched run", refused, tmp_path)


def test_unpacked_it_is_what_was_packed_and_one_flipped_byte_is_named(packed, site, tmp_path):
    contents = archive.unpack_archive(packed, tmp_path / "out")
    assert contents.manifest.commit == "0a1b2c3"
    for name in set(contents.manifest.files) - {archive.README}:
        assert (tmp_path / "out" / name).read_bytes() == (site / name).read_bytes()
    changed = [(one, b"x" + content[1:] if one.name.endswith("facts.json") else content)
               for one, content in entries(packed)]  # fmt: skip
    with pytest.raises(BenchbookError) as refused:
        archive.unpack_archive(repack(tmp_path / "a.tar.gz", changed), tmp_path / "flipped")
    assert_refused("a flipped byte", refused, tmp_path)


@pytest.mark.parametrize("cut", [0, 10, 5000])
def test_half_an_archive_is_refused_in_words(packed, tmp_path, cut):
    half = tmp_path / "half.tar.gz"
    half.write_bytes(packed.read_bytes()[:cut])
    with pytest.raises(BenchbookError) as refused:
        archive.unpack_archive(half, tmp_path / "out")
    assert_refused(f"its first {cut} bytes", refused, tmp_path)
    with pytest.raises(BenchbookError, match="no such file"):
        archive.unpack_archive(tmp_path / "none.tar.gz", tmp_path / "out")


def forged(packed: Path, into: Path, place: str, old: bytes, new: bytes) -> Path:
    """Repack an archive with one file changed and its hash in the manifest made right."""
    (first, text), *others = entries(packed)
    was = next(content for one, content in others if one.name == f"made/{place}")
    assert old in was
    content, manifest = was.replace(old, new), json.loads(text)
    manifest["files"][place] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    changed = [(one, content if one.name == f"made/{place}" else before) for one, before in others]
    return repack(into, [(first, json.dumps(manifest).encode()), *changed])


def test_a_forged_version_is_named_and_nothing_is_made_of_it(packed, tmp_path, monkeypatch):
    monkeypatch.delenv("BENCHBOOK_ROOT", raising=False)
    monkeypatch.setattr(verify.recompute, "compare_results", lambda *_: pytest.fail("it is not sound"))
    made = forged(packed, tmp_path / "a.tar.gz", "data/made/facts.json", b"10.11.6", b"11.4.2\\u001b[2J")
    found = verify.verify_archive(made)
    assert not found.is_same and found.findings is None
    text = re.sub(r"benchbook \d[\w.]*\w", "benchbook VERSION", _without_hashes(str(found)))
    assert_golden_case("archives.txt", "a forged version, checked", text)
    assert "\x1b" not in str(found), "a terminal obeys what stands in an archive"


def test_an_archive_without_a_part_is_refused_by_name(packed, tmp_path):
    absent, ((first, text), *others) = ("warm_up.json", "findings.json"), entries(packed)
    manifest = json.loads(text)
    manifest["files"] = {name: of for name, of in manifest["files"].items() if not name.endswith(absent)}
    kept = [(one, was) for one, was in others if not one.name.endswith(absent)]
    made = repack(tmp_path / "a.tar.gz", [(first, json.dumps(manifest).encode()), *kept])
    with pytest.raises(BenchbookError) as refused:
        verify.verify_archive(made)
    assert_refused("without two of its parts", refused, tmp_path)


@pytest.mark.slow
def test_it_gives_the_same_findings_again_and_tells_when_it_does_not(packed, tmp_path, monkeypatch):
    monkeypatch.delenv("BENCHBOOK_ROOT", raising=False)
    found = verify.verify_archive(packed)
    assert found.is_same and "the same values" in str(found)
    made = forged(packed, tmp_path / "a.tar.gz", "data/made/findings.json", b'"n": 5', b'"n": 9')
    made = forged(made, tmp_path / "b.tar.gz", "data/made/metrics.json", b'"n": 5', b'"n": 7')
    found = verify.verify_archive(made)
    assert not found.is_same and found.differences[0] in str(found)
    places = {tuple(text.split(": ")[:2]) for text in found.differences}
    assert {("findings.json", "findings[0].n"), ("metrics.json", "read.haproxy.qps.n")} <= places
    values = ("9 recorded, 5 here", "7 recorded, 5 here")
    assert all(text.endswith(values) for text in found.differences)


@pytest.mark.parametrize("findings", [b"[]", b"3", b"{}"])
def test_findings_of_another_kind_are_other_findings_and_no_traceback(findings: bytes, tmp_path: Path):
    (tmp_path / "findings.json").write_text('{"made_by": "here", "study": "own"}')
    (said,) = recompute.find_differences({"findings.json": findings}, tmp_path)
    assert said.startswith("findings.json: ")


def test_other_numbers_and_labels_are_other_findings_and_other_words_are_not(tmp_path: Path):
    """Texts follow from values, so that a later release may word them otherwise; their number counts."""
    noisy = {"title": "Steal", "text": "The host took 3 % of the time.", "favours": ["b"]}
    one = found.findings(found.finding(label="lower", withheld="It is too wide."), warnings=[noisy]).plain
    one["findings"][0]["sentence"] = "An earlier release wrote this."
    (tmp_path / "findings.json").write_text(json.dumps(one))

    def differences(*place: str | int, value: object) -> list[str]:
        recorded = copy.deepcopy(one)
        inner = recorded
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        claimed = {"findings.json": json.dumps(recorded).encode()}
        return [*recompute.find_differences(claimed, tmp_path)]

    words = [
        ("findings", 0, "sentence"), ("findings", 0, "withheld"), ("warnings", 0, "text"),
        ("findings", 0, "names", "treatment"), ("scope",), ("quiet", "line"),
    ]  # fmt: skip
    for place in words:
        assert differences(*place, value="Other words.") == []
    (line,) = differences("findings", 0, "label", value="higher")
    assert_golden_case("archives.txt", "another label, made again", line)
    # An archive of an earlier release lacks what a later one adds; what it has must be the same.
    one["aa_others"] = [found.finding().plain]
    (tmp_path / "findings.json").write_text(json.dumps(one))
    assert differences("aa_others", 0, "n", value=9)
    earlier = {key: value for key, value in one.items() if key != "aa_others"}
    claimed = {"findings.json": json.dumps(earlier).encode()}
    assert [*recompute.find_differences(claimed, tmp_path)] == []
    assert differences("findings", 0, "effect", value=-0.2) and differences("findings", 0, "n", value=9)
    assert differences("warnings", 0, "title", value="BBR") and differences("warnings", value=[noisy] * 2)
    assert differences("findings", 0, "withheld", value=None) and differences("unknown", value="words")
