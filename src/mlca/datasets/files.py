"""Lines of a text file with their numbers, and errors that name both."""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast

SUFFIXES = ("", ".gz", ".bz2")

_BUFFER = 2**16

# A compressed file may grow by this factor and no further, unless what comes out is small anyway:
# a few hostile bytes must not fill the memory.
MOST_GROWTH = 50
SMALL = 64 * 2**20

_SWELLS = f"the file grows to more than {MOST_GROWTH} times its size; decompress it by hand if you trust it"


def bad_file(path: str | PathLike[str], line: int, problem: str) -> ValueError:
    """Make the error that names the file, the line and what to do."""
    return ValueError(f"{path}, line {line}: {problem}")


def room_for(path: str | PathLike[str]) -> int:
    """Return how many bytes a compressed file may grow to."""
    return max(MOST_GROWTH * Path(path).stat().st_size, SMALL)


def numbered_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers, from 1.

    ``.gz`` and ``.bz2`` are decompressed on the way; the ends of the lines are kept. A line that is
    not UTF-8 is taken as Latin-1, as older files of the field are.

    Parameters
    ----------
    path : path-like
        The file.

    Yields
    ------
    tuple of (int, str)
        Line number and line.

    Raises
    ------
    ValueError
        If the file is not what its suffix says, is cut off, or grows beyond measure.
    """
    room = room_for(path)
    number = 0
    with _open(path) as stream:
        while raw := _read(stream.readline, room + 1, path, f"line {number + 1}"):
            number += 1
            room -= len(raw)
            if room < 0:
                raise bad_file(path, number, _SWELLS)
            yield number, _decode(raw, first=number == 1)


def whole_file(path: str | PathLike[str]) -> bytearray:
    """Return the bytes of a file, decompressed as `numbered_lines` does.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    bytearray

    Raises
    ------
    ValueError
        If the file is not what its suffix says, is cut off, or grows beyond measure.
    """
    room = room_for(path)
    content = bytearray()
    with _open(path) as stream:
        while block := _read(stream.read, _BUFFER, path, f"byte {len(content)}"):
            content += block
            if len(content) > room:
                raise ValueError(f"{path}, byte {room}: {_SWELLS}")
    return content


def _read(read: Callable[[int], bytes], size: int, path: str | PathLike[str], place: str) -> bytes:
    """Read up to so many bytes and tell where a compressed file is damaged."""
    try:
        return read(size)
    except (EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk, not the file
        raise ValueError(f"{path}, {place}: the compressed file is damaged ({error}); fetch it again") from None


def _open(path: str | PathLike[str]) -> BinaryIO:
    """Open a file for reading bytes, decompressed."""
    suffix = Path(path).suffix
    if suffix == ".gz":
        return cast(BinaryIO, BufferedReader(gzip.open(path), _BUFFER))
    if suffix == ".bz2":
        return cast(BinaryIO, BufferedReader(bz2.open(path), _BUFFER))
    return Path(path).open("rb")


def _decode(raw: bytes, *, first: bool) -> str:
    try:
        return raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
