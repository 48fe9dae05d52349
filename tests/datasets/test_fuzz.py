"""Damaged files: a result or an error with file and line, in memory proportional to the file."""

import bz2
import gzip
import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from mlca.datasets import read_arff, read_mat, read_meka, read_mulan_xml, read_xc
from tests.damaged_files import read_damaged

GROWTH = 50
INTERPRETER = 300_000  # memory used by Python and NumPy for any file

DENSE = b"""@relation 'r: -C 1'
@attribute y {0,1}
@attribute 'a b' numeric
@attribute c {red, 'dark blue', green}
@attribute d {YES, NO}
% comment
@data
1, 0.5, red, YES
0, ?, 'dark blue', NO
1, -3e2, green, YES
"""
SPARSE = b"""@relation "s: -C -2"
@attribute a {0,1}
@attribute b numeric
@attribute c {none, some}
@attribute y {0,1}
@attribute z {0,1}
@data
{0 1, 1 2.5, 3 1}
{}
{2 some, 4 1}
"""
XML = b"""<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="y"></label>
<label name="z &amp; more"><label name="inner"/></label>
</labels>
"""
XC = b"4 5 3\n0,2 0:0.5 4:1e1\n1 1:2 3:-1\n 2:3.0\n0\n"
SPLIT = b"1\n3\n4\n"


def mat(compressed):
    def build(folder):
        path = folder / "seed.mat"
        X = np.array([[0.5, 1, 0], [0, 0, 2.0]])
        variables = {"data": X, "target": sparse.csc_array([[1.0, 0.0], [0.0, 1.0]]), "note": "text"}
        savemat(path, variables, do_compression=compressed)
        return path.read_bytes()

    return build


def split(folder):
    (folder / "whole.txt").write_bytes(XC)
    (folder / "other.txt").write_bytes(b"2\n")
    return SPLIT


def read_split(path):
    return read_xc(path.with_name("whole.txt"), train_split=path.with_name("other.txt"), test_split=path)


READERS = {
    "dense.arff": (read_arff, lambda _: DENSE),
    "sparse.arff": (lambda path: read_arff(path, labels=["y", "z"]), lambda _: SPARSE),
    "dense-meka.arff": (read_meka, lambda _: DENSE),
    "sparse-meka.arff": (read_meka, lambda _: SPARSE),
    "labels.xml": (read_mulan_xml, lambda _: XML),
    "xc.txt": (read_xc, lambda _: XC),
    "split.txt": (read_split, split),
    "xc.txt.gz": (read_xc, lambda _: gzip.compress(XC, mtime=0)),
    "dense.arff.bz2": (read_arff, lambda _: bz2.compress(DENSE)),
    "plain.mat": (read_mat, mat(compressed=False)),
    "packed.mat": (read_mat, mat(compressed=True)),
}


@pytest.mark.parametrize("n_files", [500, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_rejected_with_file_and_line(tmp_path, name, n_files):
    read, build = READERS[name]
    seed = build(tmp_path)
    path = tmp_path / name
    # A damaged split file may cause an error about the other split file.
    named = re.escape(str(path)) if name != "split.txt" else rf"{re.escape(str(tmp_path))}/(split|other)\.txt"
    place = r"(?:, byte \d+)?: ." if name.endswith(".mat") else r", line \d+: ."

    def read_or_refuse(file):
        read(file)
        return []

    rejected = 0
    for damaged, problems in read_damaged(path, seed, read_or_refuse, n_files, GROWTH, INTERPRETER):
        assert all(re.match(named + place, problem) for problem in problems), (damaged, problems)
        rejected += bool(problems)
    assert n_files / 10 < rejected < n_files  # some damaged files can be read, and some cannot


def short_names(count):
    return ",".join(np.base_repr(number, 36) for number in range(count))


HOSTILE = {
    "one choice of very many values": (
        read_arff,
        f"@relation r\n@attribute a {{{short_names(40_000)}}}\n@data\n0\n",
    ),
    "very many attributes": (
        read_arff,
        "@relation r\n" + "".join(f"@attribute {n} real\n" for n in range(9_000)) + "@data\n{0 1}\n",
    ),
    "very many empty rows": (read_arff, "@relation r\n@attribute a real\n@data\n" + "{}\n" * 60_000),
    "one row of very many values": (read_arff, "@relation r\n@attribute a real\n@data\n" + "12," * 60_000),
    "one sparse row of very many values": (
        read_arff,
        "@relation r\n@attribute a real\n@data\n{" + "0 1," * 60_000 + "0 1}\n",
    ),
    "one row of very many cells": (read_xc, "1 2000000000 2000000000\n" + "10:11 " * 40_000),
    "one row of very many labels": (read_xc, "1 2000000000 2000000000\n" + "11," * 60_000 + "1\n"),
    "a header that announces too much": (read_xc, "999999999 2000000000 2000000000\n0 0:1\n"),
    "very many labels": (
        read_mulan_xml,
        "<labels>" + "".join(f"<label name='{n}'/>" for n in range(9_000)) + "</labels>",
    ),
    "very deep labels": (read_mulan_xml, "<labels>" + "".join(f"<label name='{n}'>" for n in range(9_000))),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_memory_is_proportional_to_the_file(tmp_path, name):
    read, text = HOSTILE[name]
    path = tmp_path / "hostile"
    path.write_text(text)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        try:
            read(path)
        except ValueError as error:
            assert "hostile, line" in str(error)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < GROWTH * path.stat().st_size + INTERPRETER
