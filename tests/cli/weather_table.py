"""A small table of weather for tests of the commands, and a function that runs `mlca`."""

import csv
import subprocess
import sys

import numpy as np

from mlca import MLCA

SEASONS = ["winter", "spring", "summer"]
HEADER = ["temp", "humidity", "season", "tags"]


def weather_rows(n, seed, tags_too=()):
    """Return rows of numbers, a category and a label set; some label sets include `tags_too`."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        k = int(rng.integers(3))
        temp, humidity = round(float(rng.normal([0, 12, 25][k], 3)), 2), round(float(rng.normal(60, 8)), 1)
        tags = [tag for tag, true in [("cold", temp < 8), ("beach", temp > 22), ("rain", humidity > 65)] if true]
        rows.append([temp, humidity, SEASONS[k], [*tags, *(tag for tag in tags_too if rng.random() < 0.2)]])
    return rows


def as_matrix(rows):
    """Return the encoding expected from `mlca train`: numbers, and alphabetical season codes."""
    codes = {value: code for code, value in enumerate([*sorted(SEASONS), "monsoon"], start=1)}
    return np.array([[t, h, codes[s]] for t, h, s, _ in rows], dtype=float)


def new_model(**parameters):
    """Return a new model in which the season's code is a categorical feature."""
    return MLCA(categorical_features=[2], **parameters)


def write_csv(path, rows, header=HEADER, separator="|", **options):
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, **options)
        table.writerow(header)
        table.writerows([*cells[:-1], separator.join(cells[-1])] for cells in rows)
    return path


def run(words, stdin=None, **options):
    """Run the real command and return the finished process."""
    command = [sys.executable, "-m", "mlca", *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, **options)
