"""A nursery of services for all tests of this folder."""

import pytest

pytest.importorskip("uvicorn", reason='needs "mlca[serve]"')

from tests.browser import browser, open_page  # noqa: F401
from tests.serve.running import Nursery, Server


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    nursery = Nursery(tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.close()


@pytest.fixture
def serve(nursery, tmp_path):
    """Return a function that starts a service; all are ended afterwards."""
    servers = []

    def start(*words, data="data", ready=True, **options):
        server = Server(nursery, tmp_path / data, *words, **options)
        servers.append(server)
        return server.start(ready=ready)

    yield start
    for server in servers:
        server.end()


@pytest.fixture(scope="module")
def shared(nursery, tmp_path_factory):
    """One service for tests that leave it as it is, or only add rows of their own."""
    server = Server(nursery, tmp_path_factory.mktemp("shared") / "data").start()
    yield server
    server.end()
