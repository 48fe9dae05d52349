"""Counts and gauges in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mlca.serve.measures import BOUNDS

if TYPE_CHECKING:
    from mlca.serve.service import Service


def prometheus_text(service: Service) -> str:
    """Return everything that can be counted."""
    return "\n".join(_lines(service)) + "\n"


def _lines(service: Service) -> Iterator[str]:
    live, traffic = service.follower.live, service.traffic
    yield from _gauge("mlca_log_position", "Rows in the log.", service.log.head.position)
    yield from _gauge("mlca_behind_rows", "Rows that the model does not know yet.", service.follower.behind)
    yield from _gauge("mlca_waiting_rows", "Rows that wait for labels.", service.log.count_waiting())
    yield from _gauge("mlca_ready", "Whether the model answers.", int(live is not None))
    yield from _gauge("mlca_rebuilding", "Whether the model is rebuilt without rows.", int(service.follower.rebuilding))
    if live is not None:
        facts = live.facts
        yield from _gauge("mlca_position", "The position of the model.", facts.position)
        yield from _gauge("mlca_generation", "Forgettings that the model has followed.", facts.generation)
        yield from _gauge("mlca_nodes", "Nodes of the model.", facts.nodes)
        yield from _gauge("mlca_labels", "Labels that the model knows.", len(facts.labels))
        with live.measures() as measures:
            pairs, running, recent = measures.pairs, measures.running(), measures.recently()
        yield from _counter("mlca_pairs_total", "Rows predicted before their labels came.", [("", pairs)])
        for place, name in enumerate(("exact_match", "f1")):
            yield f"# TYPE mlca_prequential_{name} gauge"
            for over, values in (("all", running), ("recent", recent)):
                if values[place] is not None:
                    yield f'mlca_prequential_{name}{{over="{over}"}} {values[place]}'
    yield from _counter("mlca_rows_learned_total", "Rows learned by this process.", [("", traffic.learned)])
    yield from _counter("mlca_rows_predicted_total", "Rows predicted by this process.", [("", traffic.predicted)])
    alarms = [(f'{{kind="{kind}"}}', count) for kind, count in traffic.alarms()[1].items()]
    yield from _counter("mlca_alarms_total", "Alarms raised by this process.", alarms)
    requests, histograms, seconds = traffic.counts()
    answers = [(f'{{route="{route}",status="{status}"}}', n) for (route, status), n in sorted(requests.items())]
    yield from _counter("mlca_requests_total", "Answers, by route and status.", answers)
    yield "# HELP mlca_request_seconds How long requests took that were answered well."
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
