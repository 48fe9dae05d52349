"""The OpenAPI 3.1 description of the HTTP interface; tests compare it with the service."""

from __future__ import annotations

from typing import Any

from mlca import __version__
from mlca.options import OBJECTIVES
from mlca.serve.request_errors import LONGEST_NAME
from mlca.serve.request_rows import MOST_COLUMNS, MOST_LABELS
from mlca.serve.table_cells import LONGEST_TEXT
from mlca.tables.table_learner import MOST_CELLS

MOST_SENT = 5000
MOST_TOP = 1000
# Largest number of probabilities per response.
MOST_TOLD = 1_000_000
MOST_POSITION = 2**53

Schema = dict[str, Any]


def _object(required: str = "", **properties: Schema) -> Schema:
    names = required.split() if required else list(properties)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _list(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    limits = {"minItems": least} if least else {}
    return {"type": "array", "items": items, **limits, **({"maxItems": most} if most else {})}


def _whole(most: int = MOST_POSITION, **more: Any) -> Schema:
    return {"type": "integer", "minimum": 0, "maximum": most, **more}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _or_null(kind: str) -> Schema:
    return {"type": [kind, "null"]}


_NAME = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "pattern": r"^[^\x00]*$"}
_NUMBER = {"type": "number", "minimum": -1e150, "maximum": 1e150}
_CELL = {**_NUMBER, "type": ["number", "string", "boolean", "null"], "maxLength": LONGEST_TEXT}
_POSITION = _whole(description="The number of rows that the model has learned, or that the log has.")
_GENERATION = _whole(description="Increases each time rows are forgotten.")
_CHECKSUM = {
    "type": ["string", "null"],
    "description": "Covers all rows of the log up to the position: equal checksums mean equal rows.",
}
_FLAG = {"type": "boolean"}
_PROBABILITY = {"type": "number", "minimum": 0, "maximum": 1}
_TEXT = {"type": "string"}
_REAL = {"type": "number"}
_REALS_BY_NAME = {"type": "object", "additionalProperties": _REAL}

_REBUILD: Schema = {
    "description": "The progress of the rebuild without forgotten rows: `position` of `end` rows of the log in "
    "`generation`. Rows that are forgotten during a rebuild are removed by the next one.",
    "oneOf": [_object(generation=_GENERATION, position=_POSITION, end=_POSITION), {"type": "null"}],
}

_SCHEMAS: dict[str, Schema] = {
    "Id": {**_NAME, "description": "Identifies a row; a row is learned once, however often it is sent."},
    "X": {
        "description": "A row: a list of numbers, or the cells of a table by column name. The first row decides "
        "the format. Rows of a table may lack columns or add new ones; null is a missing value.",
        "oneOf": [
            _list(_NUMBER, 1, MOST_COLUMNS),
            {
                "type": "object",
                "propertyNames": _NAME,
                "additionalProperties": _CELL,
                "minProperties": 1,
                "maxProperties": MOST_CELLS,
            },
        ],
    },
    "Labels": {**_list(_NAME, 0, MOST_LABELS), "description": "Label names; new ones are supported at any time."},
    "Learn": _object(rows=_list(_object(id=_ref("Id"), x=_ref("X"), labels=_ref("Labels")), 1, MOST_SENT)),
    "Label": _object(rows=_list(_object(id=_ref("Id"), labels=_ref("Labels")), 1, MOST_SENT)),
    "Predict": {
        **_object(
            "rows",
            rows=_list(_object("x", id=_ref("Id"), x=_ref("X")), 1, MOST_SENT),
            top=_whole(MOST_TOP, default=5, description="The number of probabilities per row."),
            threshold={
                "description": "The probability above which labels are predicted, for all labels or by label (0.5 for "
                "others). Rows may then have no label. It replaces the objective.",
                "oneOf": [_PROBABILITY, {"type": "object", "additionalProperties": _PROBABILITY}],
            },
            objective={
                "enum": list(OBJECTIVES),
                "description": "The measure that predictions optimise (default: the model's objective).",
            },
            keep={
                **_FLAG,
                "default": False,
                "description": "Keep the rows until their labels arrive; the rows must then have IDs.",
            },
            min_position=_whole(description="Wait until the model has learned the log up to this position."),
            min_generation=_whole(description="Wait until the model has reached this generation."),
        ),
    },
    "Explain": {
        **_object(
            "",
            x=_ref("X"),
            id=_ref("Id"),
            top=_whole(MOST_TOP, default=5),
            min_position=_whole(),
            min_generation=_whole(),
        ),
        "required": [],
        "oneOf": [{"required": ["x"]}, {"required": ["id"]}],
    },
    "Forget": _object(
        "ids",
        ids=_list(_ref("Id"), 1, MOST_SENT),
        wait={
            **_FLAG,
            "default": False,
            "description": "Respond after the model is rebuilt, unless that takes too long.",
        },
    ),
    "Taken": _object(position=_POSITION, generation=_GENERATION, learned=_whole(), duplicates=_list(_TEXT)),
    "Predicted": _object(
        "position generation rows",
        position=_POSITION,
        generation=_GENERATION,
        kept=_whole(description="The number of new rows that wait for labels; rows with known IDs are not counted."),
        rows=_list(
            _object(
                id=_or_null("string"),
                labels=_list(_TEXT),
                probabilities=_REALS_BY_NAME,
                novelty=_or_null("number"),
            )
        ),
    ),
    "Explained": _object(
        position=_POSITION,
        generation=_GENERATION,
        labels=_list(_TEXT),
        nodes=_list(
            _object(
                node=_whole(),
                distance=_REAL,
                rows=_whole(),
                weight=_or_null("number"),
                labels=_REALS_BY_NAME,
            )
        ),
        probabilities=_list(
            _object(
                label=_TEXT,
                probability=_REAL,
                prior=_REAL,
                votes=_REAL,
                calibrated=_or_null("number"),
                background=_or_null("number"),
                reasons={**_REALS_BY_NAME, "description": "The largest terms of the label's logit, by name."},
            )
        ),
        none={**_or_null("number"), "description": "The probability of having no label."},
        novelty={**_or_null("number"), "description": "Novelty: how unusual the row is, from 0 to 1."},
        far={**_FLAG, "description": "Whether the row has nothing in common with any node."},
        experts={**_REALS_BY_NAME, "description": "Weights of the experts: nodes, recent labels and segments."},
        segments={**_list(_REAL), "description": "The trust in each segment of the stream, oldest first."},
        agreement={**_REALS_BY_NAME, "description": "The columns in which the row and the voting nodes agree most."},
        values={
            **_list(_object(column=_TEXT, row=_TEXT, nodes=_list(_TEXT))),
            "description": "For a table: the values of the row and of the nearest nodes.",
        },
    ),
    "Forgotten": _object(
        position=_POSITION,
        generation=_GENERATION,
        forgotten=_whole(),
        unknown=_list(_TEXT),
        rebuilt={
            **_FLAG,
            "description": "Whether the model has been rebuilt; if not, wait until it reaches `generation`.",
        },
        rebuild=_REBUILD,
    ),
    "RowState": _object(
        id=_TEXT,
        state={"enum": ["unknown", "waiting", "learned", "forgotten"]},
        position=_or_null("integer"),
    ),
    "Model": _object(
        position=_POSITION,
        generation=_GENERATION,
        checksum=_CHECKSUM,
        log_position=_POSITION,
        ready=_FLAG,
        rebuilding=_FLAG,
        rebuild=_REBUILD,
        rows=_whole(),
        nodes=_whole(),
        waiting=_whole(),
        columns={
            "description": "The format of the rows; for a table, the known columns.",
            "oneOf": [
                _object(
                    table=_FLAG,
                    width=_whole(),
                    names={"type": ["array", "null"], "items": _TEXT},
                    kinds={"type": ["array", "null"], "items": _TEXT},
                    settled={**_FLAG, "description": "Whether the kinds of columns are final."},
                ),
                {"type": "null"},
            ],
        },
        parameters={"type": "object"},
        labels=_list(
            _object(label=_TEXT, count=_whole(), first=_whole(), at={"type": "number"}, f1=_or_null("number"))
        ),
        snapshots=_list(_whole()),
    ),
    "Live": _object(live=_FLAG),
    "Ready": _object(
        ready=_FLAG, position=_POSITION, generation=_GENERATION, checksum=_CHECKSUM, behind=_whole(), rebuild=_REBUILD
    ),
    "Error": _object(
        error=_object(problem=_TEXT, remedy=_TEXT, row=_or_null("integer"), field=_or_null("string")), request=_TEXT
    ),
}

# Error responses, listed for every route, though some occur only for requests with a body.
_ERRORS = {
    "400": "The request is not valid HTTP, or repeats a header that must be sent once.",
    "401": "The token is missing or unknown.",
    "403": "The token lacks the scope, or the request comes from a page of another site.",
    "408": "The body did not arrive in time.",
    "413": "The body is too large, or has too many rows, or the response would be too long.",
    "415": "The body is not declared as JSON.",
    "421": "Without tokens the service accepts only loopback host names.",
    "422": "A field or a row is invalid; no part of the request was accepted.",
    "429": "Too many requests; try again after Retry-After seconds.",
    "503": "Temporarily unavailable; try again after Retry-After seconds, with the same IDs.",
}


def describe_routes() -> Schema:
    """Return the OpenAPI description of all routes and schemas."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mlca serve",
            "version": __version__,
            "description": "A multi-label classifier that learns continuously. Predictions state the position and "
            "the generation of the model. If both are equal, the same rows get the same predictions, bit for bit.",
        },
        "paths": {
            "/v1/learn": _post("Learn rows", "Learn", "Taken", "learn"),
            "/v1/labels": _post("Add labels to waiting rows", "Label", "Taken", "learn"),
            "/v1/predict": _post(
                "Predict the labels of rows", "Predict", "Predicted", "predict", "`keep` also needs the scope learn."
            ),
            "/v1/explain": _post(
                "Explain a prediction",
                "Explain",
                "Explained",
                "predict",
                "Explaining a stored row by its ID also needs the scope learn.",
            ),
            "/v1/forget": _post("Forget rows", "Forget", "Forgotten", "admin"),
            "/v1/rows": {
                **_get("Return the state of a row", "RowState", "learn"),
                "parameters": [{"name": "id", "in": "query", "required": True, "schema": _ref("Id")}],
            },
            "/v1/model": _get("Describe the model", "Model", "predict"),
            "/v1/model/file": {
                **_get("Download the model", None, "admin", "application/octet-stream"),
                "parameters": [
                    {"name": name, "in": "query", "required": False, "schema": _whole()}
                    for name in ("min_position", "min_generation")
                ],
            },
            "/v1/events": _get("Follow events", None, "predict", "text/event-stream"),
            "/metrics": _get("Metrics for Prometheus", None, "predict", "text/plain"),
            "/health/live": _get("Report whether the process is alive", "Live", None),
            "/health/ready": _get("Report whether the model is ready and follows the log", "Ready", None),
        },
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _post(summary: str, asked: str, answered: str, scope: str, more: str = "") -> Schema:
    operation = _operation(summary, answered, scope, "application/json")
    operation["description"] = f"{operation['description']} {more}".rstrip()
    operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(asked)}}}
    return {"post": operation}


def _get(summary: str, answered: str | None, scope: str | None, kind: str = "application/json") -> Schema:
    return {"get": _operation(summary, answered, scope, kind)}


def _operation(summary: str, answered: str | None, scope: str | None, kind: str) -> Schema:
    error = {"application/json": {"schema": _ref("Error")}}
    content = {kind: {"schema": _ref(answered) if answered else {"type": "string"}}}
    errors = {status: {"description": meaning, "content": error} for status, meaning in _ERRORS.items()}
    return {
        "summary": summary,
        "security": [{"token": []}] if scope else [],
        "description": f"Needs the scope {scope}, if tokens are required." if scope else "No token is needed.",
        "responses": {"200": {"description": "Done.", "content": content}, **errors},
    }
