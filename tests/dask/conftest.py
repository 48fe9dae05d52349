"""A cluster of two worker processes on this machine."""

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="package")
def cluster():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as workers,
        Client(workers) as client,
    ):
        yield client
