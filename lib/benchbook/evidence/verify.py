"""Check an archive of a study: hashes, consistency of its files, findings made again."""

import contextlib
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from benchbook.core.artifacts import record
from benchbook.core.artifacts.findings import Findings
from benchbook.core.util import files, git, paths
from benchbook.core.util.plural import count
from benchbook.evidence import archive, consistency_checks, recompute, unverifiable
from benchbook.show.markup import strip_control

_SHOWN, _WIDTH, _INDENT = 30, 110, 14
_SKEW = "made here by benchbook {here}; at the archive's own commit they should be the same"
FOLLOWS = "these findings follow from these files"
FOLLOWS_NOT = "that these findings follow from these files could NOT be shown"
UNBOUND = "nothing in this clone stands behind it; hold the manifest's sha256 against the one its author gave"
SIGNED = {"G": "signed by {}", "U": "signed by {}, a key that is not trusted here", "N": "not signed"}


@dataclass(frozen=True)
class Verified:
    """Results of a check: the archive's contents, its consistency, deviations when recomputed.

    `binds` says what stands behind the word of who recorded it. `findings` are those made here from its runs;
    None where the files contradict each other: nothing is made of them.
    """

    contents: archive.Contents
    proof: consistency_checks.ConsistencyReport
    differences: tuple[str, ...] = ()
    findings: Findings | None = None
    binds: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """True if nothing contradicts anything, and the findings have the same values."""
        return not self.proof.wrong and not self.differences

    def __str__(self) -> str:
        manifest = self.contents.manifest
        result = f"benchbook {manifest.benchbook}, commit {manifest.commit or 'not known'}"
        skew = _SKEW.format(here=version("benchbook"))
        wrong, again = self.proof.wrong, "made again from the raw files:"
        files_ = f"all {len(manifest.files)} files are those of the manifest"
        runs = ["plans, schedule, facts, data and runs agree with each other"]
        results = [f"{again} NOT the same", *self.differences, skew]
        messages = {
            "shown": [FOLLOWS if self.is_same else FOLLOWS_NOT],
            "not shown": [*unverifiable.SENTENCES, *self.binds],
            "study": [f"{self.contents.study}, made by {result}"],
            "hashes": [f"{files_} ({self.contents.bytes / 1e6:.1f} MB)"],
            "manifest": [f"sha256 {self.contents.digest}"],
            "runs": ["they contradict each other or the files beside them:"] if wrong else runs,
            "WRONG": wrong,
            "findings": results if self.differences else [f"{again} the same values"],
            "noted": self.proof.noted,
        }
        if wrong:
            messages["findings"] = [f"NOT made again, because the runs contradict each other; {skew}"]
        return "\n".join(line for title, texts in messages.items() for line in _format_list(title, texts))


def _format_list(title: str, texts: Sequence[str]) -> Iterator[str]:
    """Lines of texts below each other behind a title; control characters in them are dropped."""
    more = len(texts) - _SHOWN
    shown = [*texts[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
    for number, text in enumerate(shown):
        first = (title if number == 0 else "").ljust(_INDENT)
        one_line = " ".join(strip_control(text).split())
        yield textwrap.fill(
            *(one_line, _WIDTH),
            initial_indent=first,
            subsequent_indent=" " * (_INDENT + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )


def verify_archive(file: Path) -> Verified:
    """Check an archive in a folder of its own, and analyse it again; nothing of it stays."""
    with open_checked(file) as (verified, _):
        return replace(verified, binds=tuple(describe_provenance(file)))


def describe_provenance(file: Path) -> Iterator[str]:
    """Support for the word of an archive's recorder: its first commit, and other sessions."""
    digest, index = files.digest_file(file), record.read_index()
    session = next((each for each in index.sessions() if each.entry.sha256 == digest), None)
    if session is None:
        yield UNBOUND
        return
    # The results go with the archive, which may lie in a remote.
    place = str(session.where.results)
    line = git.run_git("log", "--diff-filter=A", "-1", "--format=%h%x09%cs%x09%an%x09%G?%x09%GS", "--", place)
    if line:
        commit, day, who, mark, signer = (line.strip("\n").split("\t") + [""] * 5)[:5]
        signed = SIGNED.get(mark, f"with a signature that git can't check ({mark})").format(signer)
        yield f"commit {commit} of {day} by {who}, {signed}, first brought this archive"
    else:
        yield "no commit of this clone has it yet"
    others = [each.entry for each in index.sessions(session.where.name) if each.id != session.id]
    same = [each for each in others if (each.design, each.superseded) == (session.entry.design, None)]
    processors = {entry.machine.processor for entry in same} - {session.entry.machine.processor}
    beside = f"{count(len(processors), 'other processor')} among them"
    yield f"{count(len(same), 'further session')} of the same design in the record, {beside}"


@contextlib.contextmanager
def open_checked(file: Path) -> Iterator[tuple[Verified, Path]]:
    """Result of a check of an archive, and its folder, as a context that removes the folder.

    Below the folder's data/STUDY are its tables and findings as made here, unless its files contradict each
    other. Raises BenchbookError as `verify` does.
    """
    with tempfile.TemporaryDirectory(prefix="benchbook-verify-") as folder:
        root = Path(folder)
        contents = archive.unpack_archive(file, root)
        where = paths.StudyPaths(contents.study, root)
        recompute.require_complete(contents.study, root)
        proved = consistency_checks.check_consistency(root, contents.study, paths.find_root())
        if proved.wrong:
            yield Verified(contents, proved), root
            return
        compare_results = recompute.compare_results(contents.study, root)
        yield Verified(contents, proved, compare_results, Findings.read(where.findings)), root
