"""Handlers of the HTTP routes, which read requests and build responses."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse

from mlca.serve.asgi import Application, guarded, read_flag, read_whole, require_scope
from mlca.serve.live_model import Facts, LiveModel
from mlca.serve.log_changes import Forget, Keep, Label, Learn
from mlca.serve.openapi import MOST_POSITION, MOST_SENT, MOST_TOLD, MOST_TOP, describe_routes
from mlca.serve.predicting import Choice, PredictedRows
from mlca.serve.request_bodies import parse_object, read_body
from mlca.serve.request_errors import RequestError, bad_row, excerpt, unavailable
from mlca.serve.request_rows import (
    Columns,
    RequestRows,
    check_keys,
    check_list,
    pack_rows,
    read_id,
    read_labels,
    read_rows,
    unpack_rows,
)
from mlca.serve.responses import PAGE, PAGE_POLICY, JSONAnswer, encode_rows, explanation_to_json, prometheus_text
from mlca.serve.service import Service
from mlca.serve.tokens import TokenGuard, Tokens
from mlca.validation import check_objective, read_threshold

# Approximate sizes of a row and of a probability in a response, in bytes.
_ROW_BYTES, _PROBABILITY_BYTES = 100, 30
# Longest error message that quotes the request, in characters.
_MOST_QUOTED = 400


def make_app(service: Service, tokens: Tokens | None) -> Application:
    """Return the ASGI application of a service.

    Parameters
    ----------
    service : Service
        The service; started and stopped along with the application.
    tokens : Tokens or None
        The accepted tokens; None to accept requests without a token.
    """
    routes = Routes(service)
    guard = None if tokens is None else TokenGuard(tokens, service.note_wrong_token)
    table: dict[str, dict[str, Any]] = {}
    for method, path, handler, scope in (
        ("POST", "/v1/predict", routes.predict, "predict"),
        ("POST", "/v1/learn", routes.learn, "learn"),
        ("POST", "/v1/labels", routes.label, "learn"),
        ("POST", "/v1/explain", routes.explain, "predict"),
        ("POST", "/v1/forget", routes.forget, "admin"),
        ("GET", "/v1/rows", routes.row, "learn"),
        ("GET", "/v1/model", routes.model, "predict"),
        ("GET", "/v1/model/file", routes.model_file, "admin"),
        ("GET", "/v1/events", routes.events, "predict"),
        ("GET", "/metrics", routes.metrics, "predict"),
        ("GET", "/health/live", routes.alive, None),
        ("GET", "/health/ready", routes.ready, None),
        ("GET", "/openapi.json", routes.openapi, None),
        ("GET", "/", routes.page, None),
    ):
        table.setdefault(path, {})[method] = guarded(handler, path, scope, guard)

    @asynccontextmanager
    async def at_work() -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    return Application(table, at_work, service.traffic, open_hosts=tokens is not None)


class Routes:
    """The handlers of all routes, one method per route."""

    def __init__(self, service: Service) -> None:
        self._service, self._side = service, service.side
        self._openapi = describe_routes()

    async def learn(self, request: Request) -> Response:
        """Store labelled rows durably; the model learns them shortly afterwards."""
        body = await read_body(request)
        self._service.reject_if_behind()
        batch, packed, rejection = await self._side(len(body), self._read_learn, body)
        if rejection is not None:
            await self._service.ask_log(lambda: self._service.reject_unreadable_new_cells(batch))
        request.scope["mlca.rows"] = len(batch.ids)
        receipt = await self._service.write(Learn(batch.ids, packed, batch.labels, batch.columns))
        return JSONAnswer(_taken(receipt))

    def _read_learn(self, body: bytes) -> tuple[RequestRows, list[bytes], RequestError | None]:
        """Return a body's rows, the packed rows, and an error if a cell does not fit its column."""
        rows = parse_object(body, ("rows",)).get("rows")
        batch = read_rows(rows, self._service.columns, need_ids=True, need_labels=True, most=MOST_SENT)
        rejection = None
        try:
            self._service.reject_unreadable(batch)
        except RequestError as found:
            rejection = found
        return batch, pack_rows(batch.x), rejection

    async def label(self, request: Request) -> Response:
        """Add labels to waiting rows."""
        body = await read_body(request)
        self._service.reject_if_behind()
        labels = await self._side(len(body), _read_label, body)
        request.scope["mlca.rows"] = len(labels.ids)
        return JSONAnswer(_taken(await self._service.write(labels)))

    async def predict(self, request: Request) -> Response:
        """Predict rows; if requested, keep them until their labels arrive."""
        service = self._service
        body = await read_body(request)
        fields = ("rows", "top", "threshold", "objective", "keep", "min_position", "min_generation")
        plain = await self._side(len(body), parse_object, body, fields)
        keep, top = read_flag(plain, "keep"), read_whole(plain, "top", 5, MOST_TOP)
        if keep:
            require_scope(request, "learn", "keep")  # keeping rows writes to the log
        live = await self._live(plain)
        choice = _read_choice(plain, top, live.facts)
        columns = service.columns
        batch = await self._side(len(body), self._read_predict, plain.pop("rows", None), columns, keep)
        _reject_long_answer(len(batch.ids), min(top, len(live.facts.labels)))
        request.scope["mlca.rows"] = len(batch.ids)
        if columns is None:
            predicted = PredictedRows.of_nothing(live.facts, len(batch.ids))
        else:
            predicted = await service.predictor.predict(batch.x, choice)
        service.traffic.count_predicted(len(batch.ids), [new for new in predicted.novelty if new is not None])
        answer = {"position": predicted.facts.position, "generation": predicted.facts.generation}
        if keep:
            packed = await self._side(len(body), pack_rows, batch.x)
            answer["kept"] = (await service.write(Keep(batch.ids, packed, predicted.labels, batch.columns))).taken
        rows = (
            {"id": id or None, "labels": labels, "probabilities": best, "novelty": new}
            for id, labels, best, new in zip(
                batch.ids, predicted.labels, predicted.best, predicted.novelty, strict=True
            )
        )
        size = len(batch.ids) * (_ROW_BYTES + _PROBABILITY_BYTES * top)
        return Response(await self._side(size, encode_rows, answer, rows), media_type=JSONAnswer.media_type)

    def _read_predict(self, rows: Any, columns: Columns | None, keep: bool) -> RequestRows:
        batch = read_rows(rows, columns, need_ids=keep, need_labels=False, most=MOST_SENT)
        self._service.reject_unreadable(batch)
        return batch

    async def explain(self, request: Request) -> Response:
        """Explain the prediction of a row that the request contains or the log stores."""
        service = self._service
        body = await read_body(request)
        fields = ("x", "id", "top", "min_position", "min_generation")
        plain = await self._side(len(body), parse_object, body, fields)
        top = read_whole(plain, "top", 5, MOST_TOP)
        live = await self._live(plain)
        if ("id" in plain) == ("x" in plain):
            raise RequestError(422, "the request has both x and id, or neither", "send one of them", field="x")
        columns = service.columns
        if live.facts.width is None or columns is None:
            raise unavailable("the model has not learned anything yet", "send some rows to learn first")
        if "x" in plain:
            rows = [{"x": plain["x"]}]
            batch = read_rows(rows, columns, need_ids=False, need_labels=False, most=1)
            service.reject_unreadable(batch)
            x = batch.x
        else:
            require_scope(request, "learn", "an explanation by id")  # the response shows data sent by other clients
            id = read_id(plain["id"], None)
            packed = await service.ask_log(lambda: service.log.content(id))
            if packed is None:
                raise bad_row(None, "id", "the log has no such row, or has forgotten it", "send x instead of the ID")
            x = unpack_rows([packed], columns)
        facts, explanation = await asyncio.to_thread(live.explain, x)
        return JSONAnswer(
            {
                "position": facts.position,
                "generation": facts.generation,
                **explanation_to_json(explanation, top, columns, x),
            }
        )

    async def forget(self, request: Request) -> Response:
        """Erase rows; the model is rebuilt without them."""
        body = await read_body(request)
        plain = await self._side(len(body), parse_object, body, ("ids", "wait"))
        wait, ids = read_flag(plain, "wait"), plain.get("ids")
        if not isinstance(ids, list) or not 0 < len(ids) <= MOST_SENT:
            raise RequestError(422, f"ids is not a list of 1 to {MOST_SENT} ids", "send {'ids': [...]}", field="ids")
        ids = [read_id(id, number) for number, id in enumerate(ids)]
        receipt = await self._service.write(Forget(ids))
        generation = receipt.head.generation
        try:
            live = await self._service.live(0, generation if wait else 0)
            rebuilt = live.facts.generation >= generation
        except RequestError:
            rebuilt = False
        return JSONAnswer(
            {
                "position": receipt.head.position,
                "generation": generation,
                "forgotten": receipt.taken,
                "unknown": receipt.others,
                "rebuilt": rebuilt,
                "rebuild": None if rebuilt else self._service.rebuild_to_json(),
            }
        )

    async def row(self, request: Request) -> Response:
        """Return the state of the row with the given ID, without its content."""
        id = read_id(request.query_params.get("id"), None)
        state, position = await self._service.ask_log(lambda: self._service.log.find(id))
        return JSONAnswer({"id": id, "state": state, "position": position})

    async def model(self, request: Request) -> Response:
        """Describe the model."""
        return JSONAnswer(await self._service.ask_log(self._service.describe))

    async def model_file(self, request: Request) -> Response:
        """Send the model as a file that `mlca.load` reads."""
        minima = {name: _number_or_text(text) for name, text in request.query_params.items()}
        live = await self._live(minima)
        if live.facts.width is None:
            raise unavailable("the model has not learned anything yet", "send some rows to learn first")
        writing = asyncio.ensure_future(asyncio.to_thread(self._export, live))
        try:
            path, facts = await asyncio.shield(writing)
        except asyncio.CancelledError:  # the thread continues, and its file is removed afterwards
            writing.add_done_callback(_remove_untaken)
            raise
        headers = {
            "mlca-position": str(facts.position),
            "mlca-generation": str(facts.generation),
            "mlca-checksum": facts.checksum_text or "",
        }
        name = f"position-{facts.position}.mlca"
        return _TemporaryFile(path, headers=headers, media_type="application/octet-stream", filename=name)

    async def events(self, request: Request) -> Response:
        """Stream the state of the service every second, and events when they occur."""
        if request.method == "HEAD":  # a response without a body must not wait for the endless stream
            return Response(media_type="text/event-stream")
        first = await self._service.ask_log(self._service.state)
        return StreamingResponse(self._service.events.listen(first), media_type="text/event-stream")

    async def metrics(self, request: Request) -> Response:
        """Return all metrics for Prometheus."""
        text = await self._service.ask_log(lambda: prometheus_text(self._service))
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def alive(self, request: Request) -> Response:
        """Report that the process responds."""
        return JSONAnswer({"live": True})

    async def ready(self, request: Request) -> Response:
        """Report whether predictions are possible and the model follows the log."""
        follower = self._service.follower
        live = follower.live
        if follower.trouble is not None or live is None:
            raise unavailable(follower.unready, "try again later")
        return JSONAnswer(
            {
                "ready": True,
                "position": live.facts.position,
                "generation": live.facts.generation,
                "checksum": live.facts.checksum_text,
                "behind": follower.behind,
                "rebuild": self._service.rebuild_to_json(),
            }
        )

    async def openapi(self, request: Request) -> Response:
        """Return the OpenAPI description."""
        return JSONAnswer(self._openapi)

    async def page(self, request: Request) -> Response:
        """Return the web page."""
        return Response(PAGE, media_type="text/html; charset=utf-8", headers={"content-security-policy": PAGE_POLICY})

    async def _live(self, plain: dict[str, Any]) -> LiveModel:
        position = read_whole(plain, "min_position", 0, MOST_POSITION)
        return await self._service.live(position, read_whole(plain, "min_generation", 0, MOST_POSITION))

    def _export(self, live: LiveModel) -> tuple[Path, Facts]:
        try:
            descriptor, name = tempfile.mkstemp(dir=self._service.snapshots.folder, suffix=".export.part")
            os.close(descriptor)
            path = Path(name)
            try:
                return path, self._service.snapshots.write(live, path)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        except OSError:
            raise unavailable("the model could not be written to disk") from None


def _remove_untaken(writing: asyncio.Future[tuple[Path, Facts]]) -> None:
    if not writing.cancelled() and writing.exception() is None:
        writing.result()[0].unlink(missing_ok=True)


class _TemporaryFile(FileResponse):
    """A file response that deletes its file afterwards, and ignores range requests.

    The model may have changed between two requests, so their ranges would not fit together.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.headers["accept-ranges"] = "none"
        headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
        try:
            await super().__call__({**scope, "headers": headers}, receive, send)
        finally:
            Path(self.path).unlink(missing_ok=True)


def _read_label(body: bytes) -> Label:
    rows = parse_object(body, ("rows",)).get("rows")
    check_list(rows, MOST_SENT)
    ids, labels = [], []
    for number, row in enumerate(rows):  # type: ignore[arg-type]
        check_keys(row, number, ("id", "labels"))
        ids.append(read_id(row.get("id"), number))
        labels.append(read_labels(row, number))
    return Label(ids, labels)


def _read_choice(plain: dict[str, Any], top: int, facts: Facts) -> Choice:
    """Return how the request chooses labels: by an objective or a threshold."""
    objective: Any = plain.get("objective")
    threshold, field = plain.get("threshold"), "threshold"
    if "objective" in plain and "threshold" in plain:
        problem = "the request has both threshold and objective"
        raise RequestError(422, problem, "send one of them: a threshold replaces the objective", field=field)
    try:
        if "threshold" in plain:
            read_threshold(threshold, facts.labels)
        field = "objective"
        if "objective" in plain:
            check_objective(objective, facts.decision)
    except ValueError as error:
        raise RequestError(422, excerpt(error, _MOST_QUOTED), "leave it out or correct it", field=field) from None
    return Choice(top, objective, threshold)


def _reject_long_answer(n_rows: int, n_labels: int) -> None:
    """Reject a request whose response would contain too many probabilities."""
    if n_rows * n_labels > MOST_TOLD:
        problem = f"{n_rows:,} rows with {n_labels:,} probabilities each exceed the limit of {MOST_TOLD:,}"
        raise RequestError(413, problem, "send fewer rows at a time, or a smaller top", field="top")


def _number_or_text(text: str) -> int | str:
    """Return a query parameter as an integer, or else as text, which `read_whole` rejects."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text


def _taken(receipt: Any) -> dict[str, Any]:
    return {
        "position": receipt.head.position,
        "generation": receipt.head.generation,
        "learned": receipt.taken,
        "duplicates": receipt.others,
    }
