"""MATLAB files, as written by SciPy and after damage."""

import bz2
import gzip
import re
import struct
import zlib

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from mlca.datasets import read_mat

X = np.array([[0.5, 1.0, 0.0], [2.0, 0.0, -3.5]])
Y = np.array([[1, 0], [1, 1]])


@pytest.fixture
def save(tmp_path):
    def save(variables, **options):
        path = tmp_path / "data.mat"
        savemat(path, variables, **options)
        return path

    return save


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.int16, np.int64, bool])
def test_dense_matrices_of_all_number_types_are_read(save, compressed, dtype):
    data = X.astype(dtype)
    path = save({"other": "text", "data": data, "target": Y.astype(dtype)}, do_compression=compressed)
    table = read_mat(path)
    np.testing.assert_array_equal(table.X, data.astype(np.float64))
    np.testing.assert_array_equal(table.Y.toarray(), Y)
    assert table.X.dtype == np.float64
    assert table.X.flags.c_contiguous
    assert table.Y.dtype == np.uint8


@pytest.mark.parametrize("compressed", [False, True])
def test_sparse_matrices_are_read_as_csr(save, compressed):
    path = save({"data": sparse.csc_array(X), "target": sparse.csc_array(Y.astype(float))}, do_compression=compressed)
    table = read_mat(path)
    assert isinstance(table.X, sparse.csr_array)
    np.testing.assert_array_equal(table.X.toarray(), X)
    np.testing.assert_array_equal(table.Y.toarray(), Y)


def test_labels_in_rows_of_minus_one_and_one_are_converted(save):
    data = np.arange(6.0).reshape(3, 2)
    target = np.array([[1, -1, 1], [-1, -1, 1]])
    np.testing.assert_array_equal(
        read_mat(save({"data": data, "target": target})).Y.toarray(), [[1, 0], [0, 0], [1, 1]]
    )


def test_names_of_variables_can_be_given(save):
    table = read_mat(save({"attributes": X, "tags": Y}), data="attributes", target="tags")
    np.testing.assert_array_equal(table.X, X)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_compressed_file_is_read_and_its_damage_reported(save, suffix, pack):
    path = save({"data": X, "target": Y})
    packed = path.with_name(path.name + suffix)
    packed.write_bytes(pack(path.read_bytes()))
    np.testing.assert_array_equal(read_mat(packed).X, X)
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"byte 0: the compressed file is damaged"):
        read_mat(packed)


def element(kind, raw, order="<"):
    return struct.pack(f"{order}II", kind, len(raw)) + raw + b"\0" * (-len(raw) % 8)


def matrix(name, values, order="<"):
    body = element(6, struct.pack(f"{order}II", 6, 0), order)
    body += element(5, struct.pack(f"{order}ii", *values.shape), order)
    body += element(1, name.encode(), order)
    return element(14, body + element(9, values.astype(f"{order}f8").tobytes(order="F"), order), order)


def sparse_matrix(name, shape, rows, starts, values):
    body = element(6, struct.pack("<II", 5, len(rows))) + element(5, struct.pack("<ii", *shape))
    body += element(1, name.encode()) + element(5, np.array(rows, "<i4").tobytes())
    return element(14, body + element(5, np.array(starts, "<i4").tobytes()) + element(9, np.array(values).tobytes()))


def header(order="<"):
    return b"MATLAB 5.0".ljust(124) + struct.pack(f"{order}H", 0x0100) + (b"IM" if order == "<" else b"MI")


def test_big_endian_file_is_read(tmp_path):
    path = tmp_path / "big.mat"
    path.write_bytes(header(">") + matrix("data", X, ">") + matrix("target", Y, ">"))
    np.testing.assert_array_equal(read_mat(path).X, X)


def test_truncated_compressed_variable_is_rejected(tmp_path):
    path = tmp_path / "cut.mat"
    packed = zlib.compress(matrix("data", X))[:-4]  # all of the data, but not the checksum at the end
    path.write_bytes(header() + struct.pack("<II", 15, len(packed)) + packed + matrix("target", Y))
    with pytest.raises(ValueError, match=r"cut\.mat, byte 128: a compressed variable is truncated"):
        read_mat(path)


@pytest.mark.parametrize(
    ("shape", "rows", "starts", "values"),
    [
        ((2, 2), [0, 1], [0, 1, 2], [1.0]),  # one value missing
        ((2, 2), [0], [0, 1, 2], [1.0, 1.0]),  # one row index missing
        ((2, 2), [0, 2], [0, 1, 2], [1.0, 1.0]),  # a row index out of range
        ((2, 2), [0, -1], [0, 1, 2], [1.0, 1.0]),
        ((2, 2), [0, 1], [0, 2], [1.0, 1.0]),  # one column missing
        ((2, 2), [0, 1], [0, 2, 1], [1.0, 1.0]),  # a column that ends before it starts
        ((2, 2), [0, 1], [1, 1, 2], [1.0, 1.0]),
        ((2, 2), [0, 0], [0, 2, 2], [1.0, 1.0]),  # a cell given twice
        ((2_000_000_000, 2), [0, 1], [0, 1, 2], [1.0, 1.0]),  # more rows than the file has bytes
    ],
)
def test_inconsistent_sparse_variables_are_rejected(tmp_path, shape, rows, starts, values):
    path = tmp_path / "bad.mat"
    path.write_bytes(header() + sparse_matrix("data", shape, rows, starts, values) + matrix("target", Y))
    with pytest.raises(ValueError, match=r"bad\.mat, byte 128: the sparse variable 'data'"):
        read_mat(path)


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"data": X}, "no matrix of numbers is called 'target'"),
        ({"data": X, "target": Y * 2}, "must be 0 and 1, or -1 and 1"),
        ({"data": X, "target": np.ones((5, 5))}, "'data' has shape (2, 3), 'target' (5, 5)"),
        ({"data": X * 1j, "target": Y}, "'data' is not a matrix of real numbers"),
        ({"data": np.ones((2, 2, 2)), "target": Y}, "'data' is not a matrix of real numbers"),
        ({"data": "text", "target": Y}, "'data' is not a matrix of numbers"),
        ({"data": {"a": 1}, "target": Y}, "'data' is not a matrix of numbers"),
        ({"data": np.full_like(X, np.inf), "target": Y}, "a value of 'data' is infinite"),
    ],
)
def test_other_variables_are_rejected(save, variables, problem):
    with pytest.raises(ValueError, match=r"data\.mat.*: .*" + re.escape(problem)):
        read_mat(save(variables))


def test_other_files_are_rejected(tmp_path):
    path = tmp_path / "data.mat"
    for raw in (b"", b"short", b"x" * 500, b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"):
        path.write_bytes(raw)
        with pytest.raises(ValueError, match=r"data\.mat, byte 0: .*save it with -v7"):
            read_mat(path)


@pytest.mark.parametrize("compressed", [False, True])
def test_truncated_file_is_rejected_at_any_length(save, compressed):
    path = save({"data": X, "target": Y}, do_compression=compressed)
    whole = path.read_bytes()
    for length in range(len(whole) - 8):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"data\.mat"):
            read_mat(path)


def test_excessive_expansion_of_a_variable_is_rejected(save):
    path = save({"data": np.zeros((9_000_000, 1)), "target": Y}, do_compression=True)
    with pytest.raises(ValueError, match=r"data\.mat, byte 128: the file expands beyond the limit"):
        read_mat(path)
