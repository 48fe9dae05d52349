"""Fixtures that run commands in this process, and that provide a trained model."""

import json

import pytest

from mlca.cli import main
from tests.cli.weather_table import weather_rows, write_csv


@pytest.fixture
def call(capsys):
    """Return a function that runs a command in this process.

    The function returns the exit code, standard output and standard error.
    """

    def call_main(*words):
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as wrong_words:
            code = wrong_words.code
        out, err = capsys.readouterr()
        return code, out, err

    return call_main


@pytest.fixture
def call_json(call):
    """Return a function that runs a command with --json and returns the parsed output."""

    def call_main(*words):
        code, out, err = call(*words, "--json")
        assert code == 0, err
        return json.loads(out)

    return call_main


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Return the file of a model trained on 300 rows; copy the file before changing it."""
    folder = tmp_path_factory.mktemp("trained")
    write_csv(folder / "train.csv", weather_rows(300, 1))
    words = ["train", folder / "train.csv", "--labels", "tags", "--out", folder / "model.mlca", "--vigilance", "0.1"]
    assert main([*map(str, words), "--json"]) == 0
    return folder / "model.mlca"


@pytest.fixture
def model(trained, tmp_path):
    """Return a copy of the trained model file, which the test may change."""
    copy = tmp_path / "model.mlca"
    copy.write_bytes(trained.read_bytes())
    return copy
