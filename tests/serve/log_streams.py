"""Helpers that make rows for a service, and read its log and the exact state of a model."""

import hashlib
import json
import sqlite3
import zipfile

import numpy as np

from mlca import MLCA
from mlca.serve.table_cells import cells_of_rows
from mlca.tables import TableLearner


def make_rows(n, start=0, seed=0, width=3):
    """Return rows r0, r1, ... with labels that depend on `x`; sometimes a new label appears."""
    rows = []
    for number in range(start, start + n):
        x = np.random.default_rng([seed, number]).normal(size=width)
        labels = [name for name, value in zip(("red", "green", "blue"), x, strict=False) if value > 0]
        if number % 40 == 39:
            labels.append(f"late{number // 40 % 5}")
        rows.append({"id": f"r{number}", "x": x.tolist(), "labels": labels})
    return rows


def state_of(path):
    """Return the arrays and label names of a model file; equal models give equal results."""
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("mlca.json"))
        arrays = {
            name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist() if name.endswith(".npy")
        }
    return header["labels"], header["parameters"], arrays


class FittingView:
    """A view of a log that matches every snapshot."""

    def first_forgotten(self, generation):
        return None

    def fits(self, position, generation, checksum):
        return True


def reader_of(columns):
    """Return the decoder of stored rows for the columns of a log."""
    return json.loads if columns is not None and json.loads(columns).get("table") else np.frombuffer


def log_of(folder):
    """Return the rows of an SQLite log in order: position, ID, x (numbers or cells), labels."""
    connection = sqlite3.connect(folder / "log.sqlite")
    try:
        read = reader_of(connection.execute("SELECT columns FROM mlca_log").fetchone()[0])
        found = connection.execute(
            "SELECT position, id, x, labels FROM mlca_rows WHERE position IS NOT NULL ORDER BY 1"
        )
        return [
            (position, id, None if x is None else read(x), None if labels is None else json.loads(labels))
            for position, id, x, labels in found
        ]
    finally:
        connection.close()


# Defaults of version 0.2 that have changed since: older logs continue with them.
DEFAULTS_OF_0_2 = {"decision": "calibrated", "search": "exact", "text_features": 4096}


def fit_log(log, path, **parameters):
    """Train a model like the service's on all rows of a log at once; return its saved state."""
    here = [row for row in log if row[2] is not None]
    model = MLCA(**{"recency": True} | parameters)
    x, labels = [row[2] for row in here], [tuple(row[3]) for row in here]
    if isinstance(x[0], dict):
        TableLearner(model, "missing").learn(cells_of_rows(x), labels)
    else:
        model.fit(np.array(x), labels)
    model.save(path)
    return state_of(path)
