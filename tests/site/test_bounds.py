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
    whole = {"format": 1, "study": "made", "benchbook": "0", "commit": None, "files": listed}
    return json.dumps(whole).encode()


def header(
    name: str, size: int, kind: bytes = b"0", more: bytes = b"", changes: dict[int, bytes] | None = None
) -> bytes:
    """Return a tar header as it would stand on disk, whatever it says."""
    made = bytearray(512)
    fields = {
        0: name.encode()[:100], 100: b"0000644\0", 108: b"0000000\0", 116: b"0000000\0",
        124: b"%011o\0" % size, 136: b"00000000000\0", 148: b" " * 8, 156: kind, 257: b"ustar\x0000",
    }  # fmt: skip
    for place, value in [*fields.items(), (386, more), *(changes or {}).items()]:
        made[place : place + len(value)] = value
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
    checksum = zlib.crc32(bytes(packed[12 : 12 + length - 4]))
    packed[12 + length - 4 : 12 + length] = checksum.to_bytes(4, "little")
    return bytes(packed)


def of_json(text: bytes) -> bytes:
    place = "data/made/facts.json"
    return member("made/manifest.json", manifest({place: text})) + member(f"made/{place}", text) + END


MB = 1 << 20


def xz_zeros() -> bytes:
    packer = lzma.LZMACompressor(preset=0)
    made = [packer.compress(part) for part in (zeros(2000 * MB), *[bytes(MB)] * 100)]
    return b"".join([*made, packer.flush()])


BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a sparse file of 8 GB": ("gz", sparse, "is a sparse file; only plain files are taken"),
    "a sparse file by pax": ("gz", pax_sparse, "a pax header says 'GNU.sparse.major'"),
    "a pax header of 6.9 MB": ("gz", lambda: FIRST + member("x", pax({"path": "a" * 6_900_000}), b"x") + END,
        "a header of 69000.. bytes beside a member"),
    "a long name of 6.9 MB": ("gz", lambda: FIRST + member("././@LongLink", b"a" * 6_900_000, b"L") + END,
        "a header of 6900000 bytes"),
    "a size by pax": ("gz", lambda: FIRST + member("x", pax({"size": "8000000000"}), b"x") + END,
        "a pax header says 'size'"),
    "a header for all members": ("gz", lambda: member("g", pax({"path": "x"}), b"g") + WHOLE,
        "is a header for all members"),
    "an honest bomb of 1 GB": ("gz", lambda: member("made/manifest.json", manifest({PLACE: 10**9})) + END,
        "1000000000 bytes, at most"),
    "an honest bomb of many files": ("gz", lambda: member("made/manifest.json",
        manifest({f"{PLACE}{i}": 200 * MB for i in range(9)})) + END,
        "its manifest lists 1887 MB, more than the 64 MB"),
    "99,000 empty files": ("gz", lambda: member("made/manifest.json",
        manifest({f"{PLACE}{i}": b"" for i in range(99_000)})) + END,
        "its manifest lists 99000 files, more than the"),
    "a size of 8 GB in a header": ("raw", lambda: bomb(zeros(8**11 - 1), 100 * MB),
        "unpacks to more than its size"),
    "a name that the manifest lists, with more in it": ("raw", lambda: bomb(zeros(100 * MB), 100 * MB, END),
        "104857600 bytes, the manifest says 6|unpacks to more than"),
    "nothing but zeros": ("raw", lambda: bomb(b"", 100 * MB), "something follows its end|does not begin"),
    "zeros after the end": ("raw", lambda: bomb(WHOLE, 100 * MB), "something follows its end"),
    "a manifest of brackets": ("gz", lambda: member("made/manifest.json", b"[" * 15_000_000) + END,
        "15000000 values, at most 1000000"),
    "a manifest of 17 MB": ("gz", lambda: member("made/manifest.json", b" " * 17_000_000) + END,
        "does not begin with"),
    "deep JSON in a file": ("gz", lambda: of_json(b'{"a":' * 50 + b"1" + b"}" * 50),
        r"facts.json: not JSON .* nested 50 deep"),
    "wide JSON in a file": ("gz", lambda: of_json(b"[" + b"{}," * 2_000_000 + b"0]"),
        r"facts.json: not JSON .* 4000001 values"),
    "JSON of 17 MB": ("gz", lambda: of_json(b" " * 17_000_000 + b"0"),
        "17000001 bytes of JSON, at most 16000000"),
    "a key twice": ("gz", lambda: of_json(b'{"a": 1, "a": 2}'), "the key 'a' is there twice"),
    "infinity": ("gz", lambda: of_json(b'{"a": 1e999}'), "1e999 is no number"),
    "an xz that asks for 4 GB of memory": ("xz-raw", hungry_xz, "not a whole .tar.xz: Memory usage limit"),
    "an xz of zeros": ("xz-raw", xz_zeros, "unpacks to more than its size"),
}  # fmt: skip


def packed(kind: str, made: bytes, folder: Path) -> Path:
    file = folder / f"made.tar.{kind[:2].replace('ra', 'gz')}"
    file.write_bytes(gzip.compress(made, 9) if kind == "gz" else made)
    return file


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_named_and_takes_neither_memory_nor_disk(name, tmp_path, unpack):
    kind, make, said = BOMBS[name]
    file, out = packed(kind, make(), tmp_path), tmp_path / "out"
    code, found, printed = unpack(file, out)
    assert code == 0, printed[-2000:]
    taken, answer = found
    assert re.search(said, answer), answer[:500]
    assert taken < 350 << 20
    assert sum(one.stat().st_blocks * 512 for one in out.rglob("*") if one.is_file()) < DISK


def test_the_archive_they_are_made_of_is_taken(tmp_path):
    for kind, made in (("gz", WHOLE), ("xz-raw", lzma.compress(WHOLE))):
        contents = archive.unpack_archive(packed(kind, made, tmp_path), tmp_path / kind)
        assert contents.study == "made"
        assert (tmp_path / kind / PLACE).read_bytes() == b"a log\n"


def altered(changes: dict[int, bytes]) -> bytes:
    """Return an archive whose last header has other bytes in places, and its sum right again."""
    return FIRST + header(f"made/{PLACE}", 6, changes=changes) + padded(b"a log\n") + END


def test_times_in_a_gnu_header_are_no_folder(tmp_path):
    made = altered({257: b"ustar  \0", 345: b"14543612345\0"})
    archive.unpack_archive(packed("gz", made, tmp_path), tmp_path / "out")
    assert (tmp_path / "out" / PLACE).read_bytes() == b"a log\n"


@pytest.mark.parametrize("after", [b"x", gzip.compress(b"more"), bytes(100)])
def test_nothing_may_follow_the_end(after, tmp_path):
    for kind, compress in (("gz", gzip.compress), ("xz", lzma.compress)):
        file = tmp_path / f"made.tar.{kind}"
        file.write_bytes(compress(WHOLE) + after)
        with pytest.raises(BenchbookError, match="something follows its end"):
            archive.unpack_archive(file, tmp_path / f"out-{kind}")


ODD = {
    "a member after the end": (WHOLE + member(f"made/{PLACE}", b"b"), "something follows its end"),
    "no end": (WHOLE[:-1024], "it ends too early"),
    "a damaged header": (WHOLE[:-2000] + b"x" + WHOLE[-1999:], "a header is damaged"),
    "a negative size": (FIRST + header("made/x", 1).replace(b"00000000001\0", b"-0000000001\0") + END,
        "damaged"),
    "an absolute name": (FIRST + member("/etc/passwd", b"x") + END, "not a file that the manifest lists"),
    "a way up": (FIRST + member(f"made/../{PLACE}", b"x") + END, "not a file that the manifest lists"),
    "another name by pax": (FIRST + member("x", pax({"path": "/etc/passwd"}), b"x") + member(f"made/{PLACE}",
        b"a log\n") + END, "'/etc/passwd': not a file that the manifest lists"),
    "a name that is no text": (FIRST + header("made/x", 0).replace(b"x\0", b"\xff\0")[:512] + END,
        "damaged|UTF-8"),
    "twice": (WHOLE[:-1024] + member(f"made/{PLACE}", b"a log\n") + END, "or there twice"),
    "a file too few": (FIRST + END, "missing"),
    "a file too many": (WHOLE[:-1024] + member(f"made/{PLACE}.too", b"x") + END, "the manifest lists"),
    "a symbolic link": (FIRST + header(f"made/{PLACE}", 0, b"2") + END, "is a .*; only plain files are"),
    "a folder": (FIRST + header(f"made/{PLACE}", 0, b"5") + END, "is a .*; only plain files are taken"),
    "a pipe": (FIRST + header(f"made/{PLACE}", 0, b"6") + END, "is a .*; only plain files are taken"),
    "a device": (FIRST + header(f"made/{PLACE}", 0, b"3") + END, "is a device"),
    "a link": (FIRST + header(f"made/{PLACE}", 0, b"1") + END, "is a hard link"),
    "no magic in a header": (altered({257: bytes(8)}), "a header is damaged, or none of a tar"),
    "a size in binary": (altered({124: b"\x80" + bytes(10) + b"\x06"}), "a number in a header is damaged"),
    "a size with a sign": (altered({124: b"         +6\0"}), "a number in a header is damaged"),
    "a size with an underscore": (altered({124: b"0000000_006\0"}), "a number in a header is damaged"),
    "a size with more after it": (altered({124: b"6\0" + b"x" * 10}), "a number in a header is damaged"),
    "a kind of no tar": (FIRST + header(f"made/{PLACE}", 0, b"Z") + END, "is of the kind 'Z'"),
}  # fmt: skip


@pytest.mark.parametrize("what", ODD)
def test_what_is_no_plain_tar_of_plain_files_is_refused(what, tmp_path):
    made, said = ODD[what]
    with pytest.raises(BenchbookError, match=said):
        archive.unpack_archive(packed("gz", made, tmp_path), tmp_path / "out")
    assert {file.name for file in tmp_path.rglob("*") if file.is_file()} <= {"made.tar.gz", "sysbench.out"}


NAMES = {
    "upper and lower case": ({PLACE: b"", PLACE.replace("/r/", "/R/"): b""}, "upper and lower case are one"),
    "one letter in two ways": ({f"{PLACE}\u00e9": b"", f"{PLACE}e\u0301": b""},
        "upper and lower case are one"),
    "a folder that is a file": ({PLACE: b"", f"{PLACE}/more": b""}, "is a file already"),
    "tables of another time": ({"data/made/tidy/runs.parquet": b""}, "not a place of an archive"),
    "a new page": ({"data/made/evil.json": b"{}"}, "not a place of an archive"),
    "a long name": ({f"data/made/raw/{'a' * 300}/x": b""}, "not a place of an archive"),
    "a long way": ({"data/made/raw/" + "a/" * 250 + "x": b""}, "not a place of an archive"),
    "less than nothing": ({PLACE: -1},
        "can.t be read: files.*r/sysbench.out.bytes: .*greater than or equal to 0"),
    }  # fmt: skip


OUTSIDE = (
    "../evil", "/tmp/evil", "data/made/../../evil", "notebooks/05_parse.ipynb", "data/other/x/y",
    "lib/benchbook/evil.py", "data/made/a\\b", "data//made/x", "data/made/./x",
)  # fmt: skip
NAMES |= {name: ({name: b"x"}, "not a place of an archive") for name in OUTSIDE}


@pytest.mark.parametrize("what", NAMES)
def test_names_that_are_not_ours_or_not_apart_are_refused_before_anything_is_written(what, tmp_path):
    files, said = NAMES[what]
    file = packed("gz", member("made/manifest.json", manifest(files)) + END, tmp_path)
    with pytest.raises(BenchbookError, match=said):
        archive.unpack_archive(file, tmp_path / "out")
    assert [file.name for file in tmp_path.rglob("*")] == ["made.tar.gz"]


def test_what_would_not_fit_is_refused_before_a_byte_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "free_bytes", lambda _: 100_000_000)
    said = r"200 MB beside them, and 100 MB are free; nothing was unpacked"
    with pytest.raises(BenchbookError, match=said):
        archive.unpack_archive(packed("gz", WHOLE, tmp_path), tmp_path / "out")
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
