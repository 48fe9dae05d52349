"""Tests that need the real datasets are skipped, with the reason, where there are none."""

import os

import pytest


def pytest_collection_modifyitems(items):
    if os.environ.get("MLCA_DATA"):
        return
    reason = "needs the real datasets: set MLCA_DATA to their folder"
    for item in items:
        if item.get_closest_marker("data"):
            item.add_marker(pytest.mark.skip(reason=reason))
