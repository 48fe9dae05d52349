"""Results of a test-then-train run."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mlca.metrics.stream.alarms import Alarm
from mlca.optional import needing

if TYPE_CHECKING:
    import pandas as pd

NAN = float("nan")
# Largest number of alarms that are printed.
_SHOWN = 12


@dataclass(frozen=True)
class StreamMeasures:
    """Measures over some rows of a stream, named as in `mlca.metrics.MEASURES`.

    The last four need scores and are NaN without them.
    """

    exact_match: float
    example_f1: float
    jaccard: float
    hamming_loss: float
    micro_f1: float
    ranking_loss: float = NAN
    coverage: float = NAN
    average_precision: float = NAN
    one_error: float = NAN


@dataclass(frozen=True)
class Record:
    """The results of a test-then-train run after a number of rows.

    Attributes
    ----------
    row : int
        The number of rows learned so far.
    running, windowed : StreamMeasures
        The measures over all rows predicted so far, and over the last `window` of them.
    n_labels : int
        The number of labels known so far.
    n_nodes : int or None
        The model's number of nodes (`n_nodes_`, or `n_nodes` for River's models); None if it has no nodes.
    rows_per_second : float
        The number of rows predicted and learned per second since the previous record, counting only the time spent in
        the model.
    model_bytes : int or None
        The size of the pickled model; None if it cannot be pickled.
    segments : tuple of (int, float)
        The model's `segments_`: the first node of each segment and the trust in that segment; empty if there are none.
    """

    row: int
    running: StreamMeasures
    windowed: StreamMeasures
    n_labels: int
    n_nodes: int | None
    rows_per_second: float
    model_bytes: int | None
    segments: tuple[tuple[int, float], ...] = ()

    def as_dict(self) -> dict[str, float | int | None]:
        """Return the record, without segments, as a dict; `window_` marks windowed measures."""
        flat: dict[str, Any] = {"row": self.row}
        flat.update(asdict(self.running))
        flat.update({f"window_{name}": value for name, value in asdict(self.windowed).items()})
        for name in ("n_labels", "n_nodes", "rows_per_second", "model_bytes"):
            flat[name] = getattr(self, name)
        return flat


@dataclass(frozen=True)
class Prequential:
    """The records of a test-then-train run; prints as a table.

    Attributes
    ----------
    records : tuple of Record
        The records in the order of the stream.
    labels_appeared : dict
        For each label that the model did not know before the stream: the row, counted from 0, where it was first true.
    window : int
        The number of rows over which the windowed measures are computed.
    alarms : tuple of Alarm
        The alarms in the order of the stream.
    """

    records: tuple[Record, ...]
    labels_appeared: dict[Hashable, int]
    window: int
    alarms: tuple[Alarm, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the records as a pandas DataFrame, one row per record."""
        with needing("to_frame", "frames"):
            import pandas as pd
        return pd.DataFrame([record.as_dict() for record in self.records])

    def __str__(self) -> str:
        lines = [
            f"{'':>8}  {'all rows so far':^20} | {f'last {self.window} rows':^20}".rstrip(),
            f"{'row':>8}  {'exact':>6} {'F1':>6} {'Hamm.':>6} | {'exact':>6} {'F1':>6} {'Hamm.':>6}"
            f"  {'labels':>6} {'nodes':>7} {'rows/s':>9} {'MB':>7}",
        ]
        lines += [_line(record) for record in self.records]
        lines += [str(alarm) for alarm in self.alarms[:_SHOWN]]
        if len(self.alarms) > _SHOWN:
            lines.append(f"and {len(self.alarms) - _SHOWN} more alarms")
        return "\n".join(lines)


def _line(record: Record) -> str:
    shown = " | ".join(
        f"{m.exact_match:>6.4f} {m.example_f1:>6.4f} {m.hamming_loss:>6.4f}" for m in (record.running, record.windowed)
    )
    nodes = "-" if record.n_nodes is None else str(record.n_nodes)
    megabytes = "-" if record.model_bytes is None else f"{record.model_bytes / 1e6:.3f}"
    return f"{record.row:>8}  {shown}  {record.n_labels:>6} {nodes:>7} {record.rows_per_second:>9.0f} {megabytes:>7}"
