"""A compressed tar of plain files: written with nothing of the machine in it, read within limits.

Python's tarfile believes what a header says: holes of a sparse file fill a disk, a pax record of megabytes is
taken into memory before anything can look at it. This reader knows plain files and nothing else, never holds
more than a piece, and refuses whatever follows the archive's end.
"""

import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchbook.core.util.errors import BenchbookError

SUFFIXES = (".tar.gz", ".tar.xz")
BLOCK, PIECE = 512, 1 << 16
# GNU tar fills its archives up to records of 20 blocks.
MOST_PADDING = 20 * BLOCK
# A header beside a member holds its name; nothing that we write needs more.
MOST_HEADER = 4096
# xz -9 takes 65 MiB to unpack.
XZ_MEMORY = 100 << 20
KINDS = {
    "1": "a hard link", "2": "a symbolic link", "3": "a device", "4": "a device", "5": "a folder",
    "6": "a FIFO", "7": "a contiguous file", "D": "a dumped folder", "K": "a long link",
    "M": "a part of a file", "S": "a sparse file", "V": "a volume's label", "g": "a header for all members",
    "X": "Solaris' own header",
}  # fmt: skip
# What a pax header may say beside the name; sizes and sparse maps may not.
HARMLESS = frozenset({"path", "mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment"})


class NotWhole(BenchbookError):
    """The bytes are no tar of plain files, or not to its end."""


@dataclass(frozen=True)
class TarMember:
    """One plain file of an archive: its name, its bytes, and `read` that gives them piece by piece, once."""

    name: str
    size: int
    read: Callable[[], Iterator[bytes]]


def suffix_of(file: Path) -> str:
    """Kind of packing of a file, by its name; BenchbookError for any other name."""
    if file.name.endswith(SUFFIXES):
        return file.name[-len(SUFFIXES[0]) :]
    raise BenchbookError(f"{file.name}: not an archive by its name; it must end in .tar.gz or .tar.xz")


def write_tar(target: Path, entries: Iterable[tuple[str, Path | bytes]], preset: int = 6) -> Path:
    """Write a packed tar of names with files or bytes, whole or not at all; same entries, same bytes."""
    suffix, part = suffix_of(target), target.with_name(f".{target.name}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        part.open("wb") as stream,
        gzip.GzipFile("", "wb", preset, stream, mtime=0)
        if suffix == ".tar.gz"
        else lzma.LZMAFile(stream, "wb", preset=preset) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, source in entries:
            entry = tarfile.TarInfo(name)
            entry.mode = 0o644
            content: IO[bytes] = source.open("rb") if isinstance(source, Path) else io.BytesIO(source)
            with content:
                entry.size = content.seek(0, io.SEEK_END)
                content.seek(0)
                tar.addfile(entry, content)
    part.replace(target)
    return target


@contextmanager
def open_tar(file: Path, most: int) -> Iterator[Iterator[TarMember]]:
    """Open an archive to be read once, member by member; unpacked it may have `most` bytes with its headers.

    Raises NotWhole for what is no plain file, for a damaged or cut archive, and for anything after its end.
    """
    with file.open("rb") as stream:
        yield _read_members(_Unpacked(stream, suffix_of(file), most))


class _Unpacked:
    """The bytes inside a .gz or .xz, in pieces, up to a limit."""

    def __init__(self, stream: IO[bytes], suffix: str, most: int) -> None:
        self.stream, self.left = stream, most
        self.is_gzip, self.waiting = suffix == ".tar.gz", bytearray()
        self.unpacker: Any = zlib.decompressobj(31)
        if not self.is_gzip:
            self.unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def read(self, size: int) -> bytes:
        """Exactly so many bytes, fewer only at the end."""
        while len(self.waiting) < size and (piece := self._piece()):
            self.waiting += piece
        taken = bytes(self.waiting[:size])
        del self.waiting[:size]
        return taken

    def _piece(self) -> bytes:
        while not self.unpacker.eof:
            kept = self.unpacker.unconsumed_tail if self.is_gzip else b""
            is_hungry = not kept if self.is_gzip else self.unpacker.needs_input
            arguments = self.stream.read(PIECE) if is_hungry else kept
            piece = self.unpacker.decompress(arguments, PIECE)
            self.left -= len(piece)
            if self.left < 0:
                raise NotWhole("it unpacks to more than its size allows, as if made to fill a disk")
            if piece:
                return piece
            if is_hungry and not arguments:
                raise NotWhole("it ends too early")
        if self.unpacker.unused_data or self.stream.read(1):
            raise NotWhole("something follows its end")
        return b""


def _read_members(source: _Unpacked) -> Iterator[TarMember]:
    name: str | None = None
    while any(header := _read_exactly(source, BLOCK)):
        size, kind = _check_header(header)
        if kind in ("x", "L"):
            if name is not None or size > MOST_HEADER:
                raise NotWhole(f"a header of {size} bytes beside a member, at most one of {MOST_HEADER}")
            text = _read_exactly(source, _pad_size(size))[:size]
            name = _path_of(text) if kind == "x" else _decode_name(text.rstrip(b"\0"))
            continue
        named, name = name or _parse_name(header), None
        if kind not in ("0", "\0"):
            what = KINDS.get(kind, f"of the kind {kind!r}")
            raise NotWhole(f"{named!r} is {what}; only plain files are taken")
        left = [size]
        yield TarMember(named, size, lambda left=left: _read_content(source, left))  # type: ignore[misc]
        for _ in _read_content(source, left):
            pass
        _read_exactly(source, _pad_size(size) - size)
    if name is not None or any(_read_exactly(source, BLOCK)):
        raise NotWhole("its end is not marked")
    rest = source.read(MOST_PADDING + 1)
    if len(rest) > MOST_PADDING or any(rest):
        raise NotWhole("something follows its end")


def _read_content(source: _Unpacked, left: list[int]) -> Iterator[bytes]:
    while left[0]:
        piece = _read_exactly(source, min(left[0], PIECE))
        left[0] -= len(piece)
        yield piece


def _read_exactly(source: _Unpacked, size: int) -> bytes:
    exactly = source.read(size)
    if len(exactly) < size:
        raise NotWhole("it ends too early")
    return exactly


def _pad_size(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _check_header(header: bytes) -> tuple[int, str]:
    """Size and kind of a header; NotWhole if its checksum is wrong."""
    summed = sum(header[:148]) + 8 * ord(" ") + sum(header[156:])
    if header[257:262] != b"ustar" or _parse_octal(header[148:156]) != summed:
        raise NotWhole("a header is damaged, or none of a tar")
    return _parse_octal(header[124:136]), chr(header[156])


def _parse_octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not digits or set(digits) - set(b"01234567"):
        raise NotWhole("a number in a header is damaged, or larger than a file here can be")
    return int(digits, 8)


def _parse_name(header: bytes) -> str:
    name, prefix = header[:100].split(b"\0")[0], header[345:500].split(b"\0")[0]
    # GNU's headers have other things where POSIX has the first part of a long name.
    return _decode_name(prefix + b"/" + name if prefix and header[257:263] == b"ustar\0" else name)


def _decode_name(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise NotWhole(f"{name!r}: a name that is not UTF-8") from None


def _path_of(records: bytes) -> str | None:
    """Name in a pax header, None without one; refuse a header with more than a name."""
    path = None
    while records:
        length, _, _ = records.partition(b" ")
        if not length.isdigit() or not len(length) < int(length[:5]) <= len(records):
            raise NotWhole("a pax header is damaged")
        record, records = records[: int(length)], records[int(length) :]
        key, _, value = record[len(length) + 1 : -1].partition(b"=")
        if _decode_name(key) not in HARMLESS:
            raise NotWhole(f"a pax header says {_decode_name(key)!r}; only plain files are taken")
        if key == b"path":
            path = _decode_name(value)
    return path
