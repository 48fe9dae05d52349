"""Fixtures for generated datasets with the file locations and shapes of the real ones."""

import numpy as np
import pytest

from mlca.experiments.workers import closing_workers

SHAPES = {"flags": (194, 19, 7), "emotions": (593, 72, 6)}


def write_mulan(folder, name):
    """Write a dataset in Mulan's format: three groups of rows, each with its own labels."""
    n_rows, n_features, n_labels = SHAPES[name]
    rng = np.random.default_rng(n_rows)
    group = rng.integers(3, size=n_rows)
    X = rng.normal(group[:, None], 0.6, (n_rows, n_features)).round(2)
    Y = (np.arange(n_labels) % 3 == group[:, None]) | (rng.random((n_rows, n_labels)) < 0.05)
    lines = [f"@relation {name}"]
    lines += [f"@attribute x{column} numeric" for column in range(n_features)]
    lines += [f"@attribute y{label} {{0,1}}" for label in range(n_labels)]
    lines += ["@data", *(",".join(map(str, [*x, *y.astype(int)])) for x, y in zip(X.tolist(), Y, strict=True))]
    labels = "".join(f'<label name="y{label}"></label>' for label in range(n_labels))
    (folder / name).mkdir()
    (folder / name / f"{name}.arff").write_text("\n".join(lines))
    (folder / name / f"{name}.xml").write_text(f'<labels xmlns="http://mulan.sourceforge.net/labels">{labels}</labels>')


@pytest.fixture(autouse=True)
def no_worker_is_left():
    """End all workers after each test, because a worker keeps the environment of its start."""
    with closing_workers():
        yield


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """Set an environment without datasets."""
    monkeypatch.delenv("MLCA_DATA", raising=False)
    monkeypatch.setenv("MLCA_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name in SHAPES:
        write_mulan(folder, name)
    return folder


@pytest.fixture
def made_up_data(no_data, data_folder, monkeypatch):
    """Set an environment with two generated datasets."""
    monkeypatch.setenv("MLCA_DATA", str(data_folder))
