"""The routes: what each request asks of the service, and the form of the answer."""

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

from mlca.serve import page
from mlca.serve.database import LogError
from mlca.serve.explaining import explanation_to_json
from mlca.serve.gate import Gate, JSONAnswer, guarded, read_flag, read_object, read_whole, require_scope
from mlca.serve.live import LiveModel
from mlca.serve.metrics import prometheus
from mlca.serve.openapi import MOST_POSITION, MOST_SENT, MOST_TOP, describe_routes
from mlca.serve.predicting import Verdict
from mlca.serve.refusals import RefusalError, bad_row, unavailable
from mlca.serve.requests import Forget, Keep, Label, Learn
from mlca.serve.rows import check_keys, check_list, pack_rows, read_id, read_labels, read_rows, unpack_rows
from mlca.serve.service import Service
from mlca.serve.tokens import Tokens


def make_app(service: Service, tokens: Tokens | None) -> Gate:
    """Return the ASGI application of a service.

    Parameters
    ----------
    service : Service
        What answers; started and stopped along with the application.
    tokens : Tokens or None
        Who may do what; None lets everybody do everything.
    """
    routes = Routes(service)
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
        table.setdefault(path, {})[method] = guarded(handler, path, scope, tokens)

    @asynccontextmanager
    async def at_work() -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    return Gate(table, at_work, service.traffic, open_hosts=tokens is not None)


class Routes:
    """One method a route."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._openapi = describe_routes()

    async def learn(self, request: Request) -> Response:
        """Make rows with labels durable; the model learns them at once."""
        plain = await read_object(request, ("rows",))
        self._service.refuse_if_behind()
        batch = read_rows(plain.get("rows"), self._service.columns, need_ids=True, need_labels=True, most=MOST_SENT)
        try:
            self._service.refuse_unreadable(batch)
        except RefusalError:
            await asyncio.to_thread(self._ask_log, lambda: self._service.refuse_unreadable_news(batch))
        request.scope["mlca.rows"] = len(batch.ids)
        receipt = await self._service.write(Learn(batch.ids, pack_rows(batch.x), batch.labels, batch.columns))
        return JSONAnswer(_taken(receipt))

    async def label(self, request: Request) -> Response:
        """Give rows that wait their labels."""
        plain = await read_object(request, ("rows",))
        self._service.refuse_if_behind()
        rows = plain.get("rows")
        check_list(rows, MOST_SENT)
        ids, labels = [], []
        for number, row in enumerate(rows):  # type: ignore[arg-type]
            check_keys(row, number, ("id", "labels"))
            ids.append(read_id(row.get("id"), number))
            labels.append(read_labels(row, number))
        request.scope["mlca.rows"] = len(ids)
        return JSONAnswer(_taken(await self._service.write(Label(ids, labels))))

    async def predict(self, request: Request) -> Response:
        """Judge rows; keep them for their labels where that is asked for."""
        service = self._service
        plain = await read_object(request, ("rows", "top", "keep", "min_position", "min_generation"))
        keep, top = read_flag(plain, "keep"), read_whole(plain, "top", 5, MOST_TOP)
        live = await self._live(plain)
        columns = service.columns
        batch = read_rows(plain.get("rows"), columns, need_ids=keep, need_labels=False, most=MOST_SENT)
        service.refuse_unreadable(batch)
        request.scope["mlca.rows"] = len(batch.ids)
        if columns is None:
            verdict = Verdict.of_nothing(live.facts, len(batch.ids))
        else:
            verdict = await service.predictor.judge(batch.x, top)
        service.traffic.count_predicted(len(batch.ids), [new for new in verdict.novelty if new is not None])
        answer: dict[str, Any] = {
            "position": verdict.facts.position,
            "generation": verdict.facts.generation,
            "rows": [
                {"id": id or None, "labels": labels, "probabilities": best, "novelty": new}
                for id, labels, best, new in zip(batch.ids, verdict.labels, verdict.best, verdict.novelty, strict=True)
            ],
        }
        if keep:
            receipt = await service.write(Keep(batch.ids, pack_rows(batch.x), verdict.labels, batch.columns))
            answer["kept"] = receipt.taken
        return JSONAnswer(answer)

    async def explain(self, request: Request) -> Response:
        """Tell why a row gets its labels: one of the request, or one that the log knows."""
        service = self._service
        plain = await read_object(request, ("x", "id", "top", "min_position", "min_generation"))
        top = read_whole(plain, "top", 5, MOST_TOP)
        live = await self._live(plain)
        if ("id" in plain) == ("x" in plain):
            raise RefusalError(422, "the request has both x and id, or neither", "send one of them", field="x")
        columns = service.columns
        if live.facts.width is None or columns is None:
            raise unavailable("the model has not learned anything yet", "let it learn some rows first")
        if "x" in plain:
            rows = [{"x": plain["x"]}]
            batch = read_rows(rows, columns, need_ids=False, need_labels=False, most=1)
            service.refuse_unreadable(batch)
            x = batch.x
        else:
            require_scope(request, "learn")  # the answer shows what others have sent
            _, _, packed = await asyncio.to_thread(self._find, read_id(plain["id"], None))
            if packed is None:
                raise bad_row(None, "id", "the log has no such row, or has forgotten it", "send x in place of the id")
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
        plain = await read_object(request, ("ids", "wait"))
        wait, ids = read_flag(plain, "wait"), plain.get("ids")
        if not isinstance(ids, list) or not 0 < len(ids) <= MOST_SENT:
            raise RefusalError(422, f"ids is no list of 1 to {MOST_SENT} ids", "send {'ids': [...]}", field="ids")
        ids = [read_id(id, number) for number, id in enumerate(ids)]
        receipt = await self._service.write(Forget(ids))
        generation = receipt.head.generation
        try:
            live = await self._service.live(0, generation if wait else 0)
            rebuilt = live.facts.generation >= generation
        except RefusalError:
            rebuilt = False
        return JSONAnswer(
            {
                "position": receipt.head.position,
                "generation": generation,
                "forgotten": receipt.taken,
                "unknown": receipt.others,
                "rebuilt": rebuilt,
            }
        )

    async def row(self, request: Request) -> Response:
        """Tell what the log knows of an id, without what the row holds."""
        id = read_id(request.query_params.get("id"), None)
        state, position, _ = await asyncio.to_thread(self._find, id)
        return JSONAnswer({"id": id, "state": state, "position": position})

    async def model(self, request: Request) -> Response:
        """Describe the model."""
        return JSONAnswer(await asyncio.to_thread(self._ask_log, self._service.describe))

    async def model_file(self, request: Request) -> Response:
        """Send the model as a file that `mlca.load` reads."""
        asked = {name: _number_or_text(text) for name, text in request.query_params.items()}
        live = await self._live(asked)
        if live.facts.width is None:
            raise unavailable("the model has not learned anything yet", "let it learn some rows first")
        path, facts = await asyncio.to_thread(self._export, live)
        headers = {"mlca-position": str(facts.position), "mlca-generation": str(facts.generation)}
        name = f"position-{facts.position}.mlca"
        return _TemporaryFile(path, headers=headers, media_type="application/octet-stream", filename=name)

    async def events(self, request: Request) -> Response:
        """Stream the state every second, and what happens in between."""
        first = await asyncio.to_thread(self._ask_log, self._service.state)
        return StreamingResponse(self._service.events.listen(first), media_type="text/event-stream")

    async def metrics(self, request: Request) -> Response:
        """Tell Prometheus everything that can be counted."""
        text = await asyncio.to_thread(self._ask_log, lambda: prometheus(self._service))
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def alive(self, request: Request) -> Response:
        """Answer."""
        return JSONAnswer({"live": True})

    async def ready(self, request: Request) -> Response:
        """Tell whether predictions are answered and the log is followed."""
        follower = self._service.follower
        live = follower.live
        if follower.trouble is not None or live is None:
            raise unavailable(follower.trouble or "the model is being read from snapshot and log", "wait a little")
        return JSONAnswer(
            {
                "ready": True,
                "position": live.facts.position,
                "generation": live.facts.generation,
                "behind": follower.behind,
            }
        )

    async def openapi(self, request: Request) -> Response:
        """Describe all this."""
        return JSONAnswer(self._openapi)

    async def page(self, request: Request) -> Response:
        """Send the page."""
        return Response(
            page.HTML, media_type="text/html; charset=utf-8", headers={"content-security-policy": page.POLICY}
        )

    async def _live(self, plain: dict[str, Any]) -> LiveModel:
        position = read_whole(plain, "min_position", 0, MOST_POSITION)
        return await self._service.live(position, read_whole(plain, "min_generation", 0, MOST_POSITION))

    def _find(self, id: str) -> tuple[str, int | None, bytes | None]:
        return self._ask_log(lambda: self._service.log.find(id))  # type: ignore[no-any-return]

    def _ask_log(self, question: Any) -> Any:
        try:
            return question()
        except LogError:
            raise unavailable("the log cannot be read now") from None

    def _export(self, live: LiveModel) -> tuple[Path, Any]:
        descriptor, name = tempfile.mkstemp(dir=self._service.snapshots.folder, suffix=".export.part")
        path = Path(name)
        try:
            os.close(descriptor)
            return path, self._service.snapshots.write(live, path)
        except OSError:
            path.unlink(missing_ok=True)
            raise unavailable("the model could not be written to disk") from None


class _TemporaryFile(FileResponse):
    """A file that is removed once it was sent, or was not."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            Path(self.path).unlink(missing_ok=True)


def _number_or_text(text: str) -> int | str:
    """Read a parameter of an address; what is longer than any position stays text, which `read_whole` refuses."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text


def _taken(receipt: Any) -> dict[str, Any]:
    return {
        "position": receipt.head.position,
        "generation": receipt.head.generation,
        "learned": receipt.taken,
        "duplicates": receipt.others,
    }
