"""Schemathesis against the running service: it behaves as its OpenAPI description documents."""

import pytest
from hypothesis import HealthCheck, settings

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")

from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi import checks  # noqa: E402

from mlca.serve.openapi import describe_routes  # noqa: E402
from tests.serve.log_streams import make_rows  # noqa: E402
from tests.serve.service_process import Server  # noqa: E402

# Rows that the schema allows are refused if they have other columns than those before, or are not known; events
# never end; what is above the most that the service takes is not sent.
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
]


def without_tokens(description):
    """The contract of a service that asks for no tokens; test_security is about the others."""
    for methods in description["paths"].values():
        for operation in methods.values():
            if isinstance(operation, dict):
                operation.pop("security")
    return description


schema = schemathesis.openapi.from_dict(without_tokens(describe_routes())).exclude(path="/v1/events")


@pytest.fixture(scope="module")
def server(fork_server, tmp_path_factory):
    server = Server(fork_server, tmp_path_factory.mktemp("openapi") / "data").start()
    server.learn(make_rows(60))
    server.post("/v1/predict", {"rows": [{"x": [1, 2, 3]}], "min_position": 60})
    assert server.get("/openapi.json") == describe_routes()
    yield server
    server.end()


@schema.parametrize()
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_service_matches_its_openapi_description(server, case):
    for wishes in (case.body, case.query):
        for name in ("min_position", "min_generation"):
            if isinstance(wishes, dict) and str(wishes.get(name)).isdecimal():
                wishes[name] = 0  # what has not come is waited for, which another test does
    answer = case.call(base_url=server.url, timeout=30)
    # Too many rows are too large an entity, which Schemathesis does not take for a rejection.
    large = answer.status_code == 413
    case.validate_response(answer, checks=[c for c in CHECKS if not (large and c is checks.negative_data_rejection)])
