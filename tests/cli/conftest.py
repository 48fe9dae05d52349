"""Fixtures that run commands in this process, and a trained model."""

import json

import pytest

from mlca.cli import main
from tests.cli.weather_table import weather_rows, write_csv


@pytest.fixture
def call(capsys):
    """Run a command in this process; return exit code, standard output and standard error."""

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
    """Run a command with --json and return what it printed."""

    def call_main(*words):
        code, out, err = call(*words, "--json")
        assert code == 0, err
        return json.loads(out)

    return call_main


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A model of 300 rows; copy it before changing it."""
    folder = tmp_path_factory.mktemp("trained")
    write_csv(folder / "train.csv", weather_rows(300, 1))
    words = ["train", folder / "train.csv", "--labels", "tags", "--out", folder / "model.mlca", "--vigilance", "0.1"]
    assert main([*map(str, words), "--json"]) == 0
    return folder / "model.mlca"


@pytest.fixture
def model(trained, tmp_path):
    """A copy of the model that may be changed."""
    copy = tmp_path / "model.mlca"
    copy.write_bytes(trained.read_bytes())
    return copy
