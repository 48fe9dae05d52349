"""Damaged CSV and JSON lines: rows, faults with their line, or an error that names the file, in bounded memory."""

import gzip
import json
import re

import numpy as np
import pytest

from mlca.tables.batches import TableFile
from mlca.tables.byte_streams import ByteStream
from mlca.tables.columns import ColumnSettings
from mlca.tables.formats import open_source
from tests.damaged_files import read_damaged

GROWTH = 100
INTERPRETER = 4_000_000  # memory used by Python, NumPy and the word features for any file

ROWS = [
    {"opened": "2026-01-05 08:00", "team": "office", "hours": 1.5, "text": "paper jam, again", "tags": "printer"},
    {
        "opened": "2026-01-06 09:30",
        "team": "sites",
        "hours": None,
        "text": 'no "wifi"\nin room 7',
        "tags": "network|login",
    },
    {"opened": "2026-01-07 10:15", "team": "", "hours": -3e2, "text": "naïve é", "tags": ""},
] * 3


def csv_cell(value):
    return '"' + str("" if value is None else value).replace('"', '""') + '"'


CSV = "\n".join([",".join(ROWS[0]), *(",".join(map(csv_cell, row.values())) for row in ROWS)]).encode()
JSON = "\n".join(map(json.dumps, ROWS)).encode()
FILES = {"t.csv": CSV, "t.jsonl": JSON, "t.csv.gz": gzip.compress(CSV, mtime=0)}


def read(path):
    """Read a file like `mlca train`, and return its messages about rows that it cannot read."""
    faults = []
    with ByteStream(str(path)) as stream:
        table = TableFile(open_source(stream))
        layout = table.decide_layout("tags", None, ColumnSettings())
        for batch in table.batches(layout, faults.append):
            assert batch.X.shape[0] == len(batch.labels)
            cells = batch.X.data if hasattr(batch.X, "indptr") else batch.X
            assert not np.isinf(cells).any()
    return faults


@pytest.mark.parametrize("n_files", [200, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_read_or_rejected_with_file_and_line(tmp_path, name, n_files):
    path = tmp_path / name
    place = re.compile(re.escape(str(path)) + r"(?:, line \d+)?: .")
    n_rejected = 0
    for damaged, problems in read_damaged(path, FILES[name], read, n_files, GROWTH, INTERPRETER):
        assert all(map(place.match, problems)), (damaged, problems)
        n_rejected += bool(problems)
    assert n_files / 10 < n_rejected < n_files  # some damaged files can be read, and some cannot
