"""The zip archive of a model: layout, strict JSON header, and checksum.

Reading accepts only the layout that `write_archive` produces.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import re
import struct
import zipfile
from collections.abc import Mapping
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

# The only zip flag that may be set: UTF-8 names. Others stand for encryption, or sizes after the data.
_UTF8_NAMES = 0x800

# Size and signature of a member's header, whose last four bytes are the lengths of its name and its extra field.
_LOCAL_HEADER, _LOCAL_SIGNATURE = 30, b"PK\3\4"
_PICKLE = b"\x80"  # first bytes of a pickle, since protocol 2
_END, _END_SIGNATURE = 22, b"PK\5\6"  # of the record at the end of a zip without a comment

# The header of an array as NumPy writes it: version 1.0, two bytes of length, a Python dict, spaces. NumPy's own reader
# is not used, because it compiles the dict, which fails at random in CPython 3.11 while other threads compile
# (python/cpython#106905).
_LENGTH_END = 10
_ARRAY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([^']{1,8})', 'fortran_order': False, 'shape': \(([0-9, ]{0,60})\), \} *\n",
    re.DOTALL,
)


def write_archive(file: IO[bytes], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write header and arrays without compression."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        # A fixed date: zip supports the years 1980 to 2107 only, and clocks may be wrong.
        archive.writestr(zipfile.ZipInfo(HEADER), json.dumps(header, indent=1, allow_nan=False))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


def read_archive(file: IO[bytes]) -> dict[str, bytes]:
    """Return the members of a zip by name; their total size is at most that of the file.

    Raises
    ------
    ValueError
        If the file is not a zip, is damaged, or does not have the layout that `write_archive` produces.
    """
    size = file.seek(0, io.SEEK_END)
    try:
        with zipfile.ZipFile(file) as archive:
            _check_layout(archive, file, size)
            return {member.filename: archive.read(member) for member in archive.infolist()}
    except (zipfile.BadZipFile, struct.error, UnicodeError, EOFError, OverflowError, NotImplementedError) as error:
        file.seek(0)
        if file.read(1) == _PICKLE:
            raise ValueError(
                "a pickle, not an mlca model; opening a pickle may run arbitrary code: if you trust it, open it with "
                "joblib.load or pickle.load, and write it with model.save(path)"
            ) from None
        raise ValueError(f"not an mlca model, or truncated ({error})") from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # a negative position, which occurs only in a forged zip
            raise
        raise ValueError("not an mlca model, or truncated (an entry points outside the file)") from None


def read_array(raw: bytes, name: str, dtype: str, n_dimensions: int) -> NDArray[Any]:
    """Read an array whose header has the expected dtype, number of dimensions and size."""
    header = _ARRAY_HEADER.match(raw)
    if header is None or struct.pack("<H", header.end() - _LENGTH_END) != raw[_LENGTH_END - 2 : _LENGTH_END]:
        raise ValueError(f"array {name!r} has no readable header")
    found, shape = header[1].decode(), tuple(int(n) for n in header[2].split(b",") if n.strip())
    if found != np.dtype(dtype).str or len(shape) != n_dimensions:
        raise ValueError(f"array {name!r} must be {dtype} with {n_dimensions} dimensions; found {found}, {shape}")
    size = len(raw) - header.end()
    if math.prod(shape) * np.dtype(dtype).itemsize != size:
        raise ValueError(f"array {name!r} declares shape {shape} but holds {size} bytes")
    return np.frombuffer(raw, dtype, offset=header.end()).reshape(shape)


def _check_layout(archive: zipfile.ZipFile, file: IO[bytes], size: int) -> None:
    """Raise ValueError unless members follow one another without gaps from the first byte."""
    members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    if len({member.filename for member in members}) < len(members):
        raise ValueError("has two members of the same name")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("has compressed members, which mlca never writes")
    if any(member.flag_bits & ~_UTF8_NAMES for member in members):
        raise ValueError("has encrypted or unusual members, which mlca never writes")
    end = 0
    for member in members:
        file.seek(end)
        start = file.read(_LOCAL_HEADER)
        if member.header_offset != end or len(start) < _LOCAL_HEADER or not start.startswith(_LOCAL_SIGNATURE):
            raise ValueError("has members that overlap, or data between them")
        if member.compress_size != member.file_size:
            raise ValueError(f"declares two different sizes for {member.filename!r}")
        end += _LOCAL_HEADER + sum(struct.unpack("<HH", start[-4:])) + member.file_size
    file.seek(max(0, size - _END))
    last = file.read(_END)
    if archive.start_dir != end or not last.startswith(_END_SIGNATURE) or not last.endswith(b"\0\0"):
        raise ValueError("has data before, after or between its members, or is truncated")


HEADER = "mlca.json"


def read_json(raw: bytes) -> dict[str, Any]:
    """Read a JSON object strictly: ValueError on repeated keys and non-finite numbers."""
    try:
        found = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_number
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{HEADER} is damaged ({error})") from None
    if not isinstance(found, dict):
        raise ValueError(f"{HEADER} does not describe an mlca model")
    return found


def checksum(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of a header (without checksum) and of arrays with names and dtypes.

    Examples
    --------
    >>> import numpy as np
    >>> first = checksum({"version": 2}, {"counts": np.array([1, 2])})
    >>> first == checksum({"checksum": "any", "version": 2}, {"counts": np.array([1, 2])})
    True
    >>> first == checksum({"version": 2}, {"counts": np.array([[1, 2]])})
    False
    """
    digest = hashlib.sha256()
    digest.update(_canonical({name: value for name, value in header.items() if name != "checksum"}))
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(_canonical([name, array.dtype.str, array.shape]))
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _canonical(value: Any) -> bytes:
    """Return a value as canonical JSON, followed by a byte that JSON cannot contain."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\0"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large")
    return number


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")
