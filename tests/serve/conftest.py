"""Fixtures that start services, forked from one process that has done all imports."""

import pytest

pytest.importorskip("uvicorn", reason='needs "mlca[serve]"')

from tests.browser import browser, open_page  # noqa: F401
from tests.serve.service_process import ForkServer, Server


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory):
    fork_server = ForkServer(tmp_path_factory.mktemp("fork_server"))
    yield fork_server
    fork_server.close()


@pytest.fixture
def serve(fork_server, tmp_path):
    """Return a function that starts a service; all services are ended after the test."""
    servers = []

    def start(*words, data="data", ready=True, **options):
        server = Server(fork_server, tmp_path / data, *words, **options)
        servers.append(server)
        return server.start(ready=ready)

    yield start
    for server in servers:
        server.end()


@pytest.fixture(scope="module")
def shared(fork_server, tmp_path_factory):
    """Return a service shared by tests that do not change it, or only add their own rows."""
    server = Server(fork_server, tmp_path_factory.mktemp("shared") / "data").start()
    yield server
    server.end()
