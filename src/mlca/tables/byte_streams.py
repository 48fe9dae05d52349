"""Reading of files and standard input: decompression and decoding within size limits.

All readers of the package use this module, so the same rules hold for all files. Files are UTF-8, with or without a
byte order mark. They may be compressed with gzip or bzip2, detected by their first bytes. A compressed file may not
expand beyond a multiple of its size, and lines have a maximum length, so that a small hostile file cannot fill the
memory.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

STANDARD_INPUT = "-"

# A compressed file may expand by this factor, or to `SMALL` bytes if that is more.
MOST_GROWTH = 50
SMALL = 64 * 2**20

# Largest number of characters per line, including the line end.
LONGEST_LINE = 64 * 2**20

_SWELLS = f"the file expands to more than {MOST_GROWTH} times its size; decompress it yourself if you trust it"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_FEATHER = (
    "the file is Feather (Arrow IPC); write it as Parquet: "
    "python -c \"import pandas; pandas.read_feather('IN').to_parquet('OUT.parquet')\""
)
_PACKED_OTHERWISE = {
    b"\xfd7zXZ\0": "the file is compressed with xz; unpack it: xz --decompress --keep",
    b"\x28\xb5\x2f\xfd": "the file is compressed with Zstandard; unpack it: zstd --decompress --keep",
    b"7z\xbc\xaf": "the file is compressed with 7-Zip; unpack it: 7z x",
    b"PK\x03\x04": "the file is a zip archive, perhaps a workbook or a model; unpack it, or save the sheet as CSV",
    b"ARROW1\0\0": _FEATHER,
    b"FEA1": _FEATHER,
    b"\xd0\xcf\x11\xe0": "the file is a workbook of an old Excel version; save the sheet as CSV",
}
_FIRST_BYTES = 4096
_BUFFER = 2**16
_UNPACKERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open}
_SUFFIXES = (".gz", ".bz2")


def bad_file(name: str | os.PathLike[str], line: int, problem: str) -> ValueError:
    """Return a ValueError whose message names file, line and problem."""
    return ValueError(f"{name}, line {line}: {problem}")


def expansion_limit(path: str | os.PathLike[str]) -> int:
    """Return the number of bytes to which a compressed file may expand."""
    return max(MOST_GROWTH * Path(path).stat().st_size, SMALL)


class ByteStream:
    """A file that is read once, from start to end.

    Parameters
    ----------
    path : path-like
        The file, plain or compressed with gzip or bzip2; ``-`` is standard input.

    Attributes
    ----------
    name : str
        The name of the file in messages.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.name = "standard input" if self.path == STANDARD_INPUT else self.path
        self._raw = _open(self.path)
        self._size = Path(self.path).stat().st_size if self.path != STANDARD_INPUT else 0
        self._n_lines = 0
        try:
            self.bytes = self._decompressed()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.path != STANDARD_INPUT:
            self._raw.close()

    def peek(self) -> bytes:
        """Return the first bytes without consuming them; ValueError if empty or unsupported."""
        first: bytes = self._read(self.bytes.peek, _FIRST_BYTES, "line 1")
        if not first:
            raise bad_file(self.name, 1, "the file is empty")
        if first.startswith(_UTF32):
            raise bad_file(self.name, 1, "the file is UTF-32; convert it: iconv -f utf-32 -t utf-8")
        if first.startswith(_UTF16):
            raise bad_file(self.name, 1, "the file is UTF-16; convert it: iconv -f utf-16 -t utf-8")
        for mark, remedy in _PACKED_OTHERWISE.items():
            if first.startswith(mark):
                raise bad_file(self.name, 1, remedy)
        return first

    def lines(self) -> Iterator[str]:
        """Yield the lines, including line ends; invalid bytes become lone surrogates."""
        # A reference is kept, because a garbage-collected TextIOWrapper closes the underlying file.
        self._text = io.TextIOWrapper(cast(BinaryIO, self.bytes), "utf-8-sig", errors="surrogateescape", newline="")
        while line := self._read(self._text.readline, LONGEST_LINE + 1, f"line {self._n_lines + 1}"):
            self._n_lines += 1
            if len(line) > LONGEST_LINE:
                raise bad_file(
                    self.name, self._n_lines, f"longer than {LONGEST_LINE} characters; is it a table with line ends?"
                )
            yield line

    def read_all(self) -> bytearray:
        """Return all bytes."""
        content = bytearray()
        while block := self._read(self.bytes.read, _BUFFER, f"byte {len(content)}"):
            content += block
        return content

    def fraction(self) -> float | None:
        """Return the share of the file that has been read; None if its size is unknown."""
        return min(1.0, self._raw.tell() / self._size) if self._size else None

    def _read(self, read: Any, size: int, place: str) -> Any:
        try:
            return read(size)
        except _SwellsError:
            raise ValueError(f"{self.name}, {place}: {_SWELLS}") from None
        except (EOFError, zlib.error, OSError) as error:
            raise self._damaged(error, place) from None

    def _damaged(self, error: Exception, place: str) -> Exception:
        """Return the error to raise for a damaged file; operating-system errors are unchanged."""
        if isinstance(error, OSError) and error.errno is not None:
            return error
        return ValueError(
            f"{self.name}, {place}: the compressed file is damaged or truncated ({error}); fetch it again"
        )

    def _decompressed(self) -> io.BufferedReader:
        magic = self._raw.peek(3)
        for mark, unpack in _UNPACKERS.items():
            if magic.startswith(mark):
                packed = _Counted(self._raw, self._size)
                return io.BufferedReader(_Bounded(unpack(packed), packed), _BUFFER)
        if Path(self.path).suffix in _SUFFIXES:
            raise bad_file(
                self.name,
                1,
                "the compressed file is damaged: its first bytes are invalid; fetch it again, or rename it",
            )
        return self._raw


class _SwellsError(Exception):
    """A compressed file expands beyond its limit."""


class _Counted:
    """Reader of compressed bytes that counts them, because the size of a pipe is unknown."""

    def __init__(self, raw: io.BufferedReader, size: int) -> None:
        self._raw = raw
        self._size = size
        self._n_read = 0

    def read(self, size: int = -1) -> bytes:
        block = self._raw.read(size)
        self._n_read += len(block)
        return block

    def output_limit(self) -> int:
        """Return the number of output bytes allowed for the input so far."""
        return max(MOST_GROWTH * max(self._size, self._n_read), SMALL)


class _Bounded(io.RawIOBase):
    """Output of a decompressor, limited in proportion to the input."""

    def __init__(self, unpacked: Any, packed: _Counted) -> None:
        self._unpacked, self._packed = unpacked, packed
        self._n_out = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._unpacked.read(len(buffer))
        self._n_out += len(block)
        if self._n_out > self._packed.output_limit():
            raise _SwellsError
        buffer[: len(block)] = block
        return len(block)


class _Piped(io.RawIOBase):
    """Input from a pipe; its first read waits for enough bytes to detect the format."""

    def __init__(self, pipe: io.BufferedReader) -> None:
        self._pipe = pipe
        self._wanted = _FIRST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._pipe.read1(len(buffer))
        while block and len(block) < self._wanted and (more := self._pipe.read1(len(buffer) - len(block))):
            block += more
        self._wanted = 0
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        if self._pipe is not _standard_input():
            self._pipe.close()
        super().close()


def _open(path: str) -> io.BufferedReader:
    if path != STANDARD_INPUT:
        file = Path(path).open("rb")  # noqa: SIM115
        return io.BufferedReader(_Piped(file), _BUFFER) if is_read_once(path) else file
    pipe = _standard_input()
    if pipe is None:
        raise ValueError("standard input is closed; name a file, or redirect one: mlca ... - < FILE")
    return io.BufferedReader(_Piped(pipe), _BUFFER)


def _standard_input() -> io.BufferedReader | None:
    return None if sys.stdin is None else cast(io.BufferedReader, sys.stdin.buffer)


def is_read_once(path: str | os.PathLike[str]) -> bool:
    """Return whether input can be read only once: standard input, or another pipe."""
    file = Path(path)
    return os.fspath(path) == STANDARD_INPUT or (file.exists() and not file.is_file() and not file.is_dir())


def undecodable(text: str) -> str | None:
    """Return a message about the first byte that is not valid UTF-8; None if all are."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) - 0xDC00
        return f"byte 0x{byte:02x} is not UTF-8; convert the file, for example: iconv -f latin1 -t utf-8"
    return None


def decoded_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with line numbers from 1.

    Parameters
    ----------
    path : path-like
        The file.

    Yields
    ------
    tuple of (int, str)
        The line number, and the line with its line end.

    Raises
    ------
    ValueError
        If a line is not UTF-8, or the file is damaged or too large; the message names file and line.
    """
    with ByteStream(path) as stream:
        stream.peek()
        for number, line in enumerate(stream.lines(), 1):
            if problem := undecodable(line):
                raise bad_file(path, number, problem)
            yield number, line
