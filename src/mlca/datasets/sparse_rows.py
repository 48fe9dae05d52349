"""Sparse rows, collected one by one in flat arrays and checked at the end.

The readers append numbers to `array.array`, which grows in place, so reading a matrix needs hardly more memory than
storing it. The line number of each row is stored, so a check of the whole matrix can still report the line.
"""

from __future__ import annotations

from array import array
from os import PathLike

import numpy as np
from scipy import sparse

from mlca.tables.byte_streams import bad_file


class SparseRows:
    """The non-zero cells of the rows read so far.

    Parameters
    ----------
    ones : bool, default=False
        Whether every cell is 1, as for labels; then no values are stored.

    Attributes
    ----------
    columns : array of int
        The column index of each cell; readers append to this array.
    values : array of float
        The value of each cell; readers append to this array unless all values are 1.
    """

    def __init__(self, *, ones: bool = False) -> None:
        self.columns = array("i")
        self.values = array("d")
        self._ones = ones
        self._ends = array("q", [0])
        self._lines = array("q")

    def __len__(self) -> int:
        return len(self._lines)

    def end_row(self, line: int) -> None:
        """Finish a row, and store the line number that it was read from."""
        self._ends.append(len(self.columns))
        self._lines.append(line)

    def line_of(self, cell: int) -> int:
        """Return the line number of the row that holds a cell."""
        row = int(np.searchsorted(np.frombuffer(self._ends, np.int64), cell, side="right")) - 1
        return self._lines[row]

    def matrix(self, n_columns: int, path: str | PathLike[str], what: str) -> sparse.csr_array:
        """Return the rows as a float64 matrix, or as a uint8 matrix if every cell is 1.

        Parameters
        ----------
        n_columns : int
            The number of columns of the matrix.
        path : path-like
            The file name for error messages.
        what : str
            The word for a column in error messages, such as "attribute" or "label".

        Raises
        ------
        ValueError
            If a row has a column twice or an infinite value.
        """
        columns = np.frombuffer(self.columns, np.int32)
        values = np.ones(len(columns), np.uint8) if self._ones else np.frombuffer(self.values, np.float64)
        infinite = np.isinf(values)
        if infinite.any():
            cell = int(infinite.argmax())
            raise bad_file(path, self.line_of(cell), f"the value of {what} {columns[cell]} is infinite")
        ends = np.frombuffer(self._ends, np.int64)
        if len(columns) <= np.iinfo(np.int32).max:
            ends = ends.astype(np.int32)  # otherwise SciPy would convert the column indices to 64 bits
        matrix = sparse.csr_array((values, columns, ends), shape=(len(self), n_columns))
        if not matrix.has_canonical_format:
            matrix.sort_indices()
            self._reject_repeated(matrix, path, what)
            matrix.has_canonical_format = True
        matrix.eliminate_zeros()
        return matrix

    def _reject_repeated(self, matrix: sparse.csr_array, path: str | PathLike[str], what: str) -> None:
        repeated = matrix.indices[1:] == matrix.indices[:-1]
        starts = matrix.indptr[1:-1]
        starts = starts[(starts > 0) & (starts < matrix.nnz)]
        repeated[starts - 1] = False  # adjacent cells of different rows are not duplicates
        if repeated.any():
            cell = int(repeated.argmax()) + 1
            raise bad_file(path, self.line_of(cell), f"{what} {matrix.indices[cell]} occurs twice in the row")
