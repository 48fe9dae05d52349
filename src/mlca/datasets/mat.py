"""Reader of datasets in MATLAB's format 5, as ``save -v6`` and ``save -v7`` write it.

This module does not use `scipy.io.loadmat`, which trusts the sizes in a file: a damaged file would make it reserve
memory that the file could never fill.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.datasets.table import LabelledTable
from mlca.tables.byte_streams import ByteStream, expansion_limit

_HEADER_BYTES = 128
_COMPRESSED, _MATRIX = 15, 14
_SPARSE_CLASS = 5
_FULL_CLASSES = range(6, 16)
_IS_COMPLEX = 0x0800
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}


def read_mat(path: str | PathLike[str], *, data: str = "data", target: str = "target") -> LabelledTable:
    """Read a dataset from a ``.mat`` file: one matrix of features and one of labels.

    The matrix of labels holds 0 and 1, or -1 and 1. It has one column per label or, as in the files of the LAMDA group,
    one row per label.

    Parameters
    ----------
    path : path-like
        The file, of version 5 to 7 (7.3 is another format), optionally with the suffix ``.gz`` or ``.bz2``.
    data, target : str
        The names of the two variables.

    Returns
    -------
    LabelledTable
        X is dense or sparse like the variable; the format has no names.

    Raises
    ------
    ValueError
        If the file is not in the format or lacks a variable; the message names the file and the byte offset.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from scipy.io import savemat
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.mat")
    ...     savemat(path, {"data": [[0.5, 1.0], [2.0, 0.0]], "target": [[1, 0, 1], [0, 0, 1]]})
    ...     table = read_mat(path)
    >>> table.X
    array([[0.5, 1. ],
           [2. , 0. ]])
    >>> table.Y.toarray()
    array([[1, 0, 1],
           [0, 0, 1]], dtype=uint8)
    """
    variables = _Reader(path).variables({data, target})
    for name in (data, target):
        if name not in variables:
            raise ValueError(f"{path}: no matrix of numbers is called {name!r}; name the variables to read")
    X, labels = variables[data], variables[target]
    if labels.shape[0] != X.shape[0] and labels.shape[1] == X.shape[0]:
        labels = labels.T
    if labels.shape[0] != X.shape[0]:
        raise ValueError(f"{path}: {data!r} has shape {X.shape}, {target!r} {labels.shape}; row counts must agree")
    return LabelledTable(X=_attributes(X, path, data), Y=_labels(labels, path, target))


def _attributes(matrix: Any, path: str | PathLike[str], name: str) -> Any:
    X = (
        sparse.csr_array(matrix, dtype=np.float64)
        if sparse.issparse(matrix)
        else np.array(matrix, np.float64, order="C")
    )
    if np.isinf(X.data if sparse.issparse(X) else X).any():
        raise ValueError(f"{path}: a value of {name!r} is infinite")
    return X


def _labels(matrix: Any, path: str | PathLike[str], name: str) -> sparse.csr_array:
    Y = sparse.csr_array(matrix)
    present = Y.data == 1
    if not np.isin(Y.data[~present], (0, -1)).all():
        raise ValueError(f"{path}: the labels in {name!r} must be 0 and 1, or -1 and 1")
    labels = sparse.csr_array((present.astype(np.uint8), Y.indices, Y.indptr), shape=Y.shape)
    labels.eliminate_zeros()
    labels.sort_indices()
    return labels


class _Reader:
    """Reads the data elements of a MATLAB file."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = path
        with ByteStream(path) as stream:
            self.content = memoryview(stream.read_all())
        self.n_bytes_left = expansion_limit(path)
        self.place = 0  # byte offset of the current variable, for errors
        mark = bytes(self.content[_HEADER_BYTES - 2 : _HEADER_BYTES])
        if mark not in (b"IM", b"MI"):
            raise self.bad("the file is not a MATLAB file of version 5; in MATLAB, save it with -v7")
        self.order = "<" if mark == b"IM" else ">"
        version = int(np.frombuffer(self.content[_HEADER_BYTES - 4 : _HEADER_BYTES - 2], self.order + "u2")[0])
        if version != 0x0100:
            raise self.bad("the file has an unsupported MATLAB version; in MATLAB, save it with -v7")

    def bad(self, problem: str) -> ValueError:
        return ValueError(f"{self.path}, byte {self.place}: {problem}")

    def variables(self, wanted: set[str]) -> dict[str, Any]:
        """Return the requested variables that are numeric matrices."""
        found = {}
        self.place = _HEADER_BYTES
        while self.place < len(self.content):
            kind, body, end = self.element(self.content, self.place)
            if kind == _COMPRESSED:
                # A compressed variable is not padded to eight bytes, unlike other elements.
                end = self.place + 8 + len(body)
                kind, body, _ = self.element(self.decompress(body), 0)
            if kind == _MATRIX:
                name, matrix = self.matrix(body, wanted)
                if matrix is not None:
                    found[name] = matrix
            self.place = end
        return found

    def element(self, content: memoryview, start: int) -> tuple[int, memoryview, int]:
        """Return kind and body of the element at `start`, and the start of the next element."""
        tag = content[start : start + 8]
        if len(tag) < 8:
            raise self.bad("the file is truncated; fetch it again")
        kind, size = (int(number) for number in np.frombuffer(tag, self.order + "u4"))
        if kind >> 16:  # a small element: size, kind and up to four data bytes in eight bytes
            kind, size, start_of_body, end = kind & 0xFFFF, kind >> 16, start + 4, start + 8
            if size > 4:
                raise self.bad("an element extends beyond its container; fetch the file again")
        else:
            start_of_body = start + 8
            end = start_of_body + size + -size % 8
        body = content[start_of_body : start_of_body + size]
        if len(body) < size:
            raise self.bad("the file is truncated; fetch it again")
        return kind, body, end

    def decompress(self, body: memoryview) -> memoryview:
        """Unpack a compressed variable, up to the memory limit."""
        stream = zlib.decompressobj()
        try:
            content = stream.decompress(body, self.n_bytes_left + 1)
        except zlib.error as error:
            raise self.bad(f"a compressed variable is damaged ({error}); fetch the file again") from None
        self.n_bytes_left -= len(content)
        if self.n_bytes_left < 0:
            raise self.bad("the file expands beyond the limit; save it without compression, with -v6")
        if not stream.eof:
            raise self.bad("a compressed variable is truncated; fetch the file again")
        return memoryview(content)

    def matrix(self, body: memoryview, wanted: set[str]) -> tuple[str, Any]:
        """Return a variable as (name, matrix), or as (name, None) if it is not requested."""
        parts = self.parts(body)
        flags = self.integers(next(parts, None))
        shape = tuple(int(size) for size in self.integers(next(parts, None)))
        name = self.integers(next(parts, None)).tobytes().decode("latin-1")
        if len(flags) != 2 or name not in wanted:
            return name, None
        kind, is_complex = int(flags[0]) & 0xFF, int(flags[0]) & _IS_COMPLEX
        if is_complex or len(shape) != 2 or min(shape) < 0:
            raise self.bad(f"variable {name!r} is not a matrix of real numbers")
        if kind == _SPARSE_CLASS:
            return name, self.sparse_matrix(parts, shape, name)
        if kind not in _FULL_CLASSES:
            raise self.bad(f"variable {name!r} is not a matrix of numbers")
        values = self.numbers(next(parts, None))
        if len(values) != math.prod(shape):
            raise self.bad(f"variable {name!r} has {len(values)} values, but its shape requires {math.prod(shape)}")
        return name, values.reshape(shape, order="F")

    def parts(self, body: memoryview) -> Iterator[tuple[int, memoryview]]:
        start = 0
        while start < len(body):
            kind, part, start = self.element(body, start)
            yield kind, part

    def numbers(self, part: tuple[int, memoryview] | None) -> NDArray[Any]:
        kind, body = part or (0, memoryview(b""))
        if kind not in _NUMBERS:
            raise self.bad("a variable has no numbers; fetch the file again")
        dtype = np.dtype(self.order + _NUMBERS[kind])
        if len(body) % dtype.itemsize:
            raise self.bad("a variable ends within a number; fetch the file again")
        return np.frombuffer(body, dtype).astype(dtype.newbyteorder("="), copy=False)

    def integers(self, part: tuple[int, memoryview] | None) -> NDArray[Any]:
        numbers = self.numbers(part)
        if numbers.dtype.kind == "f":
            raise self.bad("the shape or the name of a variable contains fractions; fetch the file again")
        return numbers

    def sparse_matrix(
        self, parts: Iterator[tuple[int, memoryview]], shape: tuple[int, int], name: str
    ) -> sparse.csr_array:
        """Read a sparse matrix, which MATLAB stores as row indices, column starts and values."""
        rows = self.integers(next(parts, None))
        starts = self.integers(next(parts, None)).astype(np.int64)
        values = self.numbers(next(parts, None))
        n_rows, n_columns = shape
        stored = int(starts[-1]) if len(starts) else 0
        fits = (
            n_rows <= len(self.content) + expansion_limit(self.path) - self.n_bytes_left
            and len(starts) == n_columns + 1
            and starts[0] == 0
            and (np.diff(starts) >= 0).all()
            and stored <= min(len(rows), len(values))
        )
        if not fits or ((rows[:stored] < 0) | (rows[:stored] >= n_rows)).any():
            raise self.bad(f"the sparse variable {name!r} is inconsistent; fetch the file again")
        columns = sparse.csc_array((values[:stored].astype(np.float64), rows[:stored], starts), shape=shape)
        matrix = sparse.csr_array(columns)
        if not matrix.has_canonical_format:
            raise self.bad(f"the sparse variable {name!r} has a cell twice; fetch the file again")
        return matrix
