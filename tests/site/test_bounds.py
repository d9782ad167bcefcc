"""An archive made to fill a disk or a memory is refused in words, having taken next to nothing of either."""

import gzip
import hashlib
import io
import json
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchbook.core.util.errors import BenchbookError
from benchbook.evidence import archive
from tests import forked
from tests.goldens import assert_golden, assert_golden_case

PLACE = "data/made/raw/r/sysbench.out"
# The child may map this much; what it imports takes some 300 MB of it.
MEMORY, DISK = 700 << 20, 20 << 20
PROGRAM = f"""
import resource
from pathlib import Path
from benchbook.evidence import archive
from benchbook.core.util.errors import BenchbookError

def call(file, into):
    resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    try:
        archive.unpack_archive(Path(file), Path(into))
        said = "taken"
    except BenchbookError as error:
        said = str(error)
    # What getrusage tells also counts what the starting process had mapped before this program was loaded.
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0]), said
"""


@pytest.fixture(scope="module")
def unpack() -> Iterator[forked.Call]:
    """Return a function that unpacks an archive in a process that may have little memory."""
    with forked.calls(PROGRAM, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}) as call:
        yield call


def manifest(files: dict[str, bytes | int]) -> bytes:
    """Return a manifest of contents, or of sizes that nothing stands behind."""
    listed = {}
    for name, content in files.items():
        known = content if isinstance(content, bytes) else b""
        size = content if isinstance(content, int) else len(content)
        listed[name] = {"sha256": hashlib.sha256(known).hexdigest(), "bytes": size}
    about = {"format": 1, "study": "made", "benchbook": "0", "commit": None}
    return json.dumps({**about, "files": listed}).encode()


def header(name: str, size: int, kind: bytes = b"0", more: bytes = b"") -> bytes:
    """Return a tar header as it would stand on disk, whatever it says."""
    made = bytearray(512)
    fields = {
        0: name.encode()[:100], 100: b"0000644\0", 108: b"0000000\0", 116: b"0000000\0",
        124: b"%011o\0" % size, 136: b"00000000000\0", 148: b" " * 8, 156: kind, 257: b"ustar\x0000",
    }  # fmt: skip
    for place, value in fields.items():
        made[place : place + len(value)] = value
    made[386 : 386 + len(more)] = more
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def member(name: str, content: bytes, kind: bytes = b"0") -> bytes:
    return header(name, len(content), kind) + padded(content)


END = bytes(1024)
HONEST = {PLACE: b"a log\n"}
FIRST = member("made/manifest.json", manifest(HONEST))
WHOLE = FIRST + member(f"made/{PLACE}", b"a log\n") + END


def pax(records: dict[str, str]) -> bytes:
    made = b""
    for key, value in records.items():
        rest = len(f" {key}={value}\n".encode())
        length = rest + len(str(rest + len(str(rest))))
        made += f"{length} {key}={value}\n".encode()
    return made


def sparse() -> bytes:
    # One real block and a map that says the file is 8 GB: tarfile writes the hole as zeros.
    hole = b"%011o\0%011o\0" % (0, 512) + bytes(24 * 3) + b"\0" + b"%011o\0" % (8**11 - 1)
    return FIRST + header(f"made/{PLACE}", 512, b"S", hole) + bytes(512) + END


def pax_sparse() -> bytes:
    said = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "8000000000"}
    return FIRST + member("x", pax(said), b"x") + member(f"made/{PLACE}", b"1\n0\n512\n") + END


def zeros(size: int) -> bytes:
    return FIRST + header(f"made/{PLACE}", size)


def bomb(before: bytes, size: int, after: bytes = b"") -> bytes:
    """Return gzip of some bytes, so many zeros, and some bytes; made without holding them."""
    # Of zeros every way makes a thousandth; this is the quickest.
    packer, made = zlib.compressobj(1, wbits=31, strategy=zlib.Z_RLE), [b""]
    made.append(packer.compress(before))
    made += [packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    return b"".join([*made, packer.compress(after), packer.flush()])


def hungry_xz() -> bytes:
    """Return an .xz that asks its reader for a dictionary of 4 GB."""
    packed = bytearray(lzma.compress(WHOLE, preset=0))
    length = (packed[12] + 1) * 4
    assert packed[14] == 0x21, "the LZMA2 filter comes first"
    packed[16] = 40
    end = 12 + length - 4
    packed[end : end + 4] = zlib.crc32(bytes(packed[12:end])).to_bytes(4, "little")
    return bytes(packed)


def listing(files: dict[str, bytes | int]) -> bytes:
    """Return an archive of nothing but a manifest."""
    return member("made/manifest.json", manifest(files)) + END


def of_pax(records: dict[str, str], kind: bytes = b"x") -> bytes:
    return FIRST + member("x", pax(records), kind) + END


def of_json(text: bytes) -> bytes:
    place = "data/made/facts.json"
    return member("made/manifest.json", manifest({place: text})) + member(f"made/{place}", text) + END


MB = 1 << 20


def xz_zeros() -> bytes:
    packer = lzma.LZMACompressor(preset=0)
    made = [packer.compress(zeros(2000 * MB)), *(packer.compress(bytes(MB)) for _ in range(100))]
    return b"".join([*made, packer.flush()])


# By what they are: how they are packed, and what makes them. What is said of each is in the golden.
BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a sparse file of 8 GB": ("gz", sparse),
    "a sparse file by pax": ("gz", pax_sparse),
    "a pax header of 6.9 MB": ("gz", lambda: of_pax({"path": "a" * 6_900_000})),
    "a long name of 6.9 MB": ("gz", lambda: FIRST + member("././@LongLink", b"a" * 6_900_000, b"L") + END),
    "a size by pax": ("gz", lambda: of_pax({"size": "8000000000"})),
    "a header for all members": ("gz", lambda: member("g", pax({"path": "x"}), b"g") + WHOLE),
    "an honest bomb of 1 GB": ("gz", lambda: listing({PLACE: 10**9})),
    "an honest bomb of many files": ("gz", lambda: listing({f"{PLACE}{i}": 200 * MB for i in range(9)})),
    "99,000 empty files": ("gz", lambda: listing({f"{PLACE}{i}": b"" for i in range(99_000)})),
    "a size of 8 GB in a header": ("raw", lambda: bomb(zeros(8**11 - 1), 100 * MB)),
    "a name that the manifest lists, with more in it": ("raw", lambda: bomb(zeros(100 * MB), 100 * MB, END)),
    "nothing but zeros": ("raw", lambda: bomb(b"", 100 * MB)),
    "zeros after the end": ("raw", lambda: bomb(WHOLE, 100 * MB)),
    "a manifest of brackets": ("gz", lambda: member("made/manifest.json", b"[" * 15_000_000) + END),
    "a manifest of 17 MB": ("gz", lambda: member("made/manifest.json", b" " * 17_000_000) + END),
    "deep JSON in a file": ("gz", lambda: of_json(b'{"a":' * 50 + b"1" + b"}" * 50)),
    "wide JSON in a file": ("gz", lambda: of_json(b"[" + b"{}," * 2_000_000 + b"0]")),
    "JSON of 17 MB": ("gz", lambda: of_json(b" " * 17_000_000 + b"0")),
    "a key twice": ("gz", lambda: of_json(b'{"a": 1, "a": 2}')),
    "infinity": ("gz", lambda: of_json(b'{"a": 1e999}')),
    "an xz that asks for 4 GB of memory": ("xz-raw", hungry_xz),
    "an xz of zeros": ("xz-raw", xz_zeros),
}


def packed(kind: str, made: bytes, folder: Path) -> Path:
    file = folder / f"made.tar.{kind[:2].replace('ra', 'gz')}"
    file.write_bytes(gzip.compress(made, 9) if kind == "gz" else made)
    return file


def test_a_bomb_is_named_and_takes_neither_memory_nor_disk(tmp_path, unpack):
    told = []
    for name, (kind, make) in BOMBS.items():
        folder = tmp_path / name
        folder.mkdir()
        code, found, printed = unpack(packed(kind, make(), folder), folder / "out")
        assert code == 0, printed[-2000:]
        taken, answer = found
        assert taken < 350 << 20, name
        assert sum(one.stat().st_blocks * 512 for one in folder.rglob("out/**/*") if one.is_file()) < DISK
        told.append(f"{name}: {answer}\n".replace(f"{folder}/", ""))
    # How many files fit depends on how well a machine's zlib packs.
    assert_golden("archives-too-large.txt", re.sub(r"(?<=files, more than the )\d+", "…", "".join(told)))


def test_the_archive_they_are_made_of_is_taken(tmp_path):
    for kind, made in (("gz", WHOLE), ("xz-raw", lzma.compress(WHOLE))):
        contents = archive.unpack_archive(packed(kind, made, tmp_path), tmp_path / kind)
        assert contents.study == "made"
        assert (tmp_path / kind / PLACE).read_bytes() == b"a log\n"


def altered(changes: dict[int, bytes]) -> bytes:
    """Return an archive whose last header has other bytes in places, and its sum right again."""
    made = bytearray(header(f"made/{PLACE}", 6))
    for place, value in changes.items():
        made[place : place + len(value)] = value
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return FIRST + bytes(made) + padded(b"a log\n") + END


def test_times_in_a_gnu_header_are_no_folder(tmp_path):
    made = altered({257: b"ustar  \0", 345: b"14543612345\0"})
    archive.unpack_archive(packed("gz", made, tmp_path), tmp_path / "out")
    assert (tmp_path / "out" / PLACE).read_bytes() == b"a log\n"


@pytest.mark.parametrize("more", [b"x", gzip.compress(b"more"), bytes(100)], ids=["byte", "gzip", "zeros"])
def test_nothing_may_follow_the_end(more, tmp_path):
    for kind, compress in (("gz", gzip.compress), ("xz", lzma.compress)):
        file = tmp_path / f"made.tar.{kind}"
        file.write_bytes(compress(WHOLE) + more)
        with pytest.raises(BenchbookError, match="something follows its end"):
            archive.unpack_archive(file, tmp_path / f"out-{kind}")


RUN = f"made/{PLACE}"
# What is no plain tar of plain files.
ODD = {
    "a member after the end": WHOLE + member(RUN, b"b"),
    "no end": WHOLE[:-1024],
    "a damaged header": WHOLE[:-2000] + b"x" + WHOLE[-1999:],
    "a negative size": FIRST + header("made/x", 1).replace(b"00000000001\0", b"-0000000001\0") + END,
    "an absolute name": FIRST + member("/etc/passwd", b"x") + END,
    "a way up": FIRST + member(f"made/../{PLACE}", b"x") + END,
    "another name by pax": of_pax({"path": "/etc/passwd"})[: -len(END)] + member(RUN, b"a log\n") + END,
    "a name that is no text": FIRST + header("made/x", 0).replace(b"x\0", b"\xff\0")[:512] + END,
    "twice": WHOLE[:-1024] + member(RUN, b"a log\n") + END,
    "a file too few": FIRST + END,
    "a file too many": WHOLE[:-1024] + member(f"{RUN}.too", b"x") + END,
    "a symbolic link": FIRST + header(RUN, 0, b"2") + END,
    "a folder": FIRST + header(RUN, 0, b"5") + END,
    "a pipe": FIRST + header(RUN, 0, b"6") + END,
    "a device": FIRST + header(RUN, 0, b"3") + END,
    "a link": FIRST + header(RUN, 0, b"1") + END,
    "no magic in a header": altered({257: bytes(8)}),
    "a size in binary": altered({124: b"\x80" + bytes(10) + b"\x06"}),
    "a size with a sign": altered({124: b"         +6\0"}),
    "a size with an underscore": altered({124: b"0000000_006\0"}),
    "a size with more after it": altered({124: b"6\0" + b"x" * 10}),
    "a kind of no tar": FIRST + header(RUN, 0, b"Z") + END,
}
# Files of a manifest whose names are not ours or not apart: they are refused before anything is written.
NAMES: dict[str, dict[str, bytes | int]] = {
    "upper and lower case": {PLACE: b"", PLACE.replace("/r/", "/R/"): b""},
    "one letter in two ways": {f"{PLACE}\u00e9": b"", f"{PLACE}e\u0301": b""},
    "a folder that is a file": {PLACE: b"", f"{PLACE}/more": b""},
    "tables of another time": {"data/made/tidy/runs.parquet": b""},
    "a new page": {"data/made/evil.json": b"{}"},
    "a long name": {f"data/made/raw/{'a' * 300}/x": b""},
    "a long way": {"data/made/raw/" + "a/" * 250 + "x": b""},
    "less than nothing": {PLACE: -1},
}
OUTSIDE = (
    *("../evil", "/tmp/evil", "data/made/../../evil", "notebooks/05_parse.ipynb", "data/other/x/y"),
    *("lib/benchbook/evil.py", "data/made/a\\b", "data//made/x", "data/made/./x"),
)
NAMES |= {f"outside: {name}": {name: b"x"} for name in OUTSIDE}


def test_what_is_no_plain_tar_of_plain_files_of_ours_is_refused(tmp_path):
    told = []
    for number, (what, made) in enumerate((ODD | {what: listing(NAMES[what]) for what in NAMES}).items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(BenchbookError) as refused:
            archive.unpack_archive(packed("gz", made, folder), folder / "out")
        left = {file.name for file in folder.rglob("*") if file.is_file() or what in NAMES}
        assert left - ({"sysbench.out"} if what in ODD else set()) == {"made.tar.gz"}, what
        told.append(f"{what}: {refused.value}\n".replace(f"{folder}/", ""))
    assert_golden("archives-refused.txt", "".join(told))


def test_what_would_not_fit_is_refused_before_a_byte_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "free_bytes", lambda _: 100_000_000)
    with pytest.raises(BenchbookError) as refused:
        archive.unpack_archive(packed("gz", WHOLE, tmp_path), tmp_path / "out")
    assert_golden_case("archives.txt", "no room for it", str(refused.value).replace(f"{tmp_path}/", ""))
    assert not (tmp_path / "out").exists()


def test_tars_of_other_programs_are_read_as_well(tmp_path):
    for number, form in enumerate((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)):
        place = f"data/made/raw/{'long' * 30}/sysbench.out"
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=form) as tar:
            for name, content in (("manifest.json", manifest({place: b"x"})), (place, b"x")):
                entry = tarfile.TarInfo(f"made/{name}")
                entry.size, entry.mtime, entry.uname = len(content), 1767607200, "somebody"
                tar.addfile(entry, io.BytesIO(content))
        archive.unpack_archive(packed("gz", stream.getvalue(), tmp_path), tmp_path / str(number))
        assert (tmp_path / str(number) / place).read_bytes() == b"x"
