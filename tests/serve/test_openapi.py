"""Schemathesis against the running service: it behaves as its OpenAPI description documents."""

import pytest
from hypothesis import HealthCheck, settings

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")

from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi import checks  # noqa: E402

from mlca.serve.openapi import describe_routes  # noqa: E402
from tests.serve.log_streams import make_rows  # noqa: E402
from tests.serve.service_process import Server  # noqa: E402

# Rows allowed by the schema are rejected if their columns differ from earlier ones, or if their ID is unknown. Events
# never end. Requests above the service's limits are not sent.
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
    """The description of a service without tokens; test_security tests those with tokens."""
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
    for parameters in (case.body, case.query):
        for name in ("min_position", "min_generation"):
            if isinstance(parameters, dict) and str(parameters.get(name)).isdecimal():
                parameters[name] = 0  # the service would wait for such positions, which another test checks
    answer = case.call(base_url=server.url, timeout=30)
    # Too many rows give status 413, which Schemathesis does not count as a rejection.
    large = answer.status_code == 413
    case.validate_response(answer, checks=[c for c in CHECKS if not (large and c is checks.negative_data_rejection)])
