"""Bytes of a file or of standard input, decompressed and decoded on the way."""

from __future__ import annotations

import bz2
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

STANDARD_INPUT = "-"

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_FIRST_BYTES = 4096


class ByteStream:
    """A file that is read once, from its beginning to its end.

    Parameters
    ----------
    path : str
        The file, gzipped, bzipped or neither; ``-`` is standard input.

    Attributes
    ----------
    name : str
        What messages call it.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = "standard input" if path == STANDARD_INPUT else path
        self._raw = _open(path)
        self._size = Path(path).stat().st_size if path != STANDARD_INPUT else 0
        self.bytes = _decompressed(self._raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.path != STANDARD_INPUT:
            self._raw.close()

    def peek(self) -> bytes:
        """Return the first bytes and leave them there; raise ValueError if there are none."""
        try:
            first = self.bytes.peek(_FIRST_BYTES)
        except (EOFError, zlib.error, OSError) as error:
            raise self._damaged(error) from None
        if not first:
            raise ValueError(f"{self.name}: the file is empty")
        if first.startswith(_UTF16):
            raise ValueError(f"{self.name}: the file is UTF-16; convert it: iconv -f utf-16 -t utf-8")
        return first

    def lines(self) -> Iterator[str]:
        """Yield the lines with their ends; bytes that are not UTF-8 become lone surrogates."""
        # Kept, since a TextIOWrapper that goes away closes the file below it.
        self._text = io.TextIOWrapper(cast(BinaryIO, self.bytes), "utf-8-sig", errors="surrogateescape", newline="")
        try:
            yield from self._text
        except (EOFError, zlib.error, OSError) as error:
            raise self._damaged(error) from None

    def fraction(self) -> float | None:
        """Return how much of the file has been read; None where its size is unknown."""
        return min(1.0, self._raw.tell() / self._size) if self._size else None

    def _damaged(self, error: Exception) -> Exception:
        """Tell a damaged file from a failing disk."""
        if isinstance(error, OSError) and error.errno is not None:
            return error
        return ValueError(f"{self.name}: the compressed file is damaged or cut off ({error})")


def _open(path: str) -> io.BufferedReader:
    return cast(io.BufferedReader, sys.stdin.buffer) if path == STANDARD_INPUT else Path(path).open("rb")


def _decompressed(raw: io.BufferedReader) -> io.BufferedReader:
    magic = raw.peek(3)
    if magic.startswith(b"\x1f\x8b"):
        return io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=raw)), 2**16)
    if magic.startswith(b"BZh"):
        return io.BufferedReader(cast(io.RawIOBase, bz2.BZ2File(raw)), 2**16)
    return raw


def undecodable(text: str) -> str | None:
    """Say which byte of a text was not UTF-8, and what to do; None if all were."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) - 0xDC00
        return f"byte 0x{byte:02x} is not UTF-8; convert the file, for example: iconv -f latin1 -t utf-8"
    return None
