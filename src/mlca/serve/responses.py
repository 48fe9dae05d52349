"""The responses of the service: JSON, metrics for Prometheus, and the web page.

The page is a single document, joined from markup, style and script when this module is imported. Its content security
policy contains the hashes of style and script, so that nothing else can be executed or loaded, even if the name of a
label contains HTML. The script itself draws the curves as SVG in about a hundred lines, so no library has to be
bundled, updated and trusted.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import Response

from mlca.serve.measures import BOUNDS
from mlca.serve.request_rows import Columns, RowsOfX
from mlca.serve.table_cells import NamedCells
from mlca.tables.cells import as_text, is_missing

if TYPE_CHECKING:
    from mlca.explanation import Explanation
    from mlca.serve.service import Service

# Created once: json.dumps would create an encoder per response.
encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

# Number of characters after which a shown cell is cut off.
_LONGEST_SHOWN = 200

# Largest number of terms shown of a label's logit.
_MOST_REASONS = 8


def explanation_to_json(explanation: Explanation, top: int, columns: Columns, x: RowsOfX) -> dict[str, Any]:
    """Return an explanation as JSON: voting nodes, and likely labels with their evidence.

    Parameters
    ----------
    explanation : Explanation
        The result of `MLCA.explain`.
    top : int
        The number of most likely labels to list; raised to the number of predicted labels if that is larger.
    columns : Columns
        The format of the rows, with the names of the columns; unnamed columns are called x0, x1, ...
    x : ndarray or list of dict
        The explained row; `x` has no other rows.
    """
    names = explanation.labels
    called = {f"x{place}": name for place, name in enumerate(columns.names or ())}
    calibrated = explanation.none is not None
    order = np.argsort(-explanation.posterior, kind="stable")
    predicted = [name for name in names if name in explanation.predicted]
    return {
        "labels": predicted,
        "nodes": [
            {
                "node": int(node),
                "distance": float(distance),
                "rows": int(count),
                "weight": float(weight) if calibrated else None,
                "labels": {str(names[j]): float(label_counts[j]) for j in np.flatnonzero(label_counts)},
            }
            for node, distance, count, weight, label_counts in zip(
                explanation.nodes,
                explanation.distances,
                explanation.counts,
                explanation.weights if calibrated else explanation.distances,
                explanation.label_counts,
                strict=True,
            )
        ],
        "probabilities": [
            {
                "label": str(names[j]),
                "probability": float(explanation.posterior[j]),
                "prior": float(explanation.prior[j]),
                "votes": float(explanation.votes[j]),
                "calibrated": float(explanation.calibrated[j + 1]) if calibrated else None,
                "background": _background(explanation, int(j)),
                "reasons": _reasons(explanation, int(j), called),
            }
            for j in order[: max(top, len(predicted))]
        ],
        "none": explanation.none,
        "novelty": explanation.novelty,
        "far": explanation.far,
        "experts": dict(zip(explanation.experts, explanation.expert_weights.tolist(), strict=True)),
        "segments": explanation.trust.tolist(),
        "agreement": {called.get(name, name): share for name, share in explanation.agreement},
        "values": _values(explanation, x[0]) if isinstance(x, list) else [],
    }


def _values(explanation: Explanation, cells: NamedCells) -> list[dict[str, Any]]:
    """Return each column's cell in the explained row, and its values in the nearest nodes."""
    return [
        {"column": name, "row": words[0] if is_missing(cells.get(name)) else _shortly(cells[name]), "nodes": words[1:]}
        for name, words in explanation.values
    ]


def _shortly(cell: Any) -> str:
    text = as_text(cell)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]} …"


def _reasons(explanation: Explanation, label: int, called: dict[str, str]) -> dict[str, float]:
    """Return the largest terms of a label's logit by name; empty if the model has no mixer."""
    if not explanation.inputs:
        return {}
    named = {}
    for reason, added in explanation.reasons(explanation.labels[label])[:_MOST_REASONS]:
        feature, space, rest = reason.partition(" ")
        named[f"{called.get(feature, feature)}{space}{rest}"] = added
    return named


def _background(explanation: Explanation, label: int) -> float | None:
    """Return the linear score of a label; None if the model has no linear scores."""
    shift = len(explanation.background) - len(explanation.labels)  # 1 if the score of "no label" comes first
    return None if shift < 0 else float(explanation.background[label + shift])


class JSONAnswer(Response):
    """A JSON response."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the encoded content."""
        return encode_json(content).encode()


def encode_rows(about: dict[str, Any], rows: Iterable[dict[str, Any]]) -> bytes:
    """Return a response with rows as JSON bytes, encoded row by row.

    Examples
    --------
    >>> encode_rows({"position": 7}, [{"id": "a"}, {"id": "b"}])
    b'{"position":7,"rows":[{"id":"a"},{"id":"b"}]}'
    """
    return f'{encode_json(about)[:-1]},"rows":[{",".join(map(encode_json, rows))}]}}'.encode()


def prometheus_text(service: Service) -> str:
    """Return all metrics in Prometheus' text format."""
    return "\n".join(_metrics(service)) + "\n"


def _metrics(service: Service) -> Iterator[str]:
    live, traffic = service.follower.live, service.traffic
    yield from _gauge("mlca_log_position", "Rows in the log.", service.log.head.position)
    yield from _gauge("mlca_behind_rows", "Rows that the model has not learned yet.", service.follower.behind)
    yield from _gauge("mlca_waiting_rows", "Rows that wait for labels.", service.log.count_waiting())
    yield from _gauge("mlca_ready", "Whether the model is ready.", int(live is not None))
    yield from _gauge("mlca_rebuilding", "Whether the model is being rebuilt.", int(service.follower.rebuilding))
    rebuild = service.follower.rebuild
    if rebuild is not None:
        yield from _gauge("mlca_rebuild_position", "Rows learned so far in the rebuild.", rebuild.position)
        yield from _gauge("mlca_rebuild_end", "Rows to learn in the rebuild.", rebuild.end)
    if live is not None:
        facts = live.facts
        yield from _gauge("mlca_position", "The position of the model.", facts.position)
        yield from _gauge("mlca_generation", "Erasures that the model has applied.", facts.generation)
        yield from _gauge("mlca_nodes", "Nodes of the model.", facts.nodes)
        yield from _gauge("mlca_labels", "Labels that the model knows.", len(facts.labels))
        with live.measures() as measures:
            pairs, running, recent = measures.pairs, measures.running(), measures.recently()
        yield from _counter("mlca_pairs_total", "Rows predicted before their labels arrived.", [("", pairs)])
        for place, name in enumerate(("exact_match", "f1")):
            yield f"# TYPE mlca_prequential_{name} gauge"
            for over, values in (("all", running), ("recent", recent)):
                if values[place] is not None:
                    yield f'mlca_prequential_{name}{{over="{over}"}} {values[place]}'
    yield from _counter("mlca_rows_learned_total", "Rows learned by this process.", [("", traffic.learned)])
    yield from _counter("mlca_rows_predicted_total", "Rows predicted by this process.", [("", traffic.predicted)])
    yield from _counter("mlca_wrong_tokens_total", "Requests with an unknown token.", [("", traffic.wrong_tokens)])
    alarms = [(f'{{kind="{kind}"}}', count) for kind, count in traffic.alarms()[1].items()]
    yield from _counter("mlca_alarms_total", "Alarms raised by this process.", alarms)
    requests, histograms, seconds = traffic.counts()
    answers = [(f'{{route="{route}",status="{status}"}}', n) for (route, status), n in sorted(requests.items())]
    yield from _counter("mlca_requests_total", "Responses, by route and status.", answers)
    yield "# HELP mlca_request_seconds Duration of successful requests."
    yield "# TYPE mlca_request_seconds histogram"
    for route, counts in sorted(histograms.items()):
        total = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
            total += count
            yield f'mlca_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
        yield f'mlca_request_seconds_sum{{route="{route}"}} {seconds[route]}'
        yield f'mlca_request_seconds_count{{route="{route}"}} {total}'


def _gauge(name: str, meaning: str, value: float) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} gauge"
    yield f"{name} {value}"


def _counter(name: str, meaning: str, values: list[tuple[str, int]]) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} counter"
    for labels, value in values:
        yield f"{name}{labels} {value}"


def _page_file(name: str) -> str:
    return files("mlca.serve").joinpath(name).read_text(encoding="utf-8")


def _policy_hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


_STYLE, _SCRIPT = _page_file("page.css"), _page_file("page.js")

PAGE = _page_file("page.html").replace("/* style */", _STYLE).replace("/* script */", _SCRIPT)

PAGE_POLICY = "; ".join(
    [
        "default-src 'none'",
        f"style-src {_policy_hash(_STYLE)}",
        f"script-src {_policy_hash(_SCRIPT)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
