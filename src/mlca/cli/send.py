"""Send the rows of a table in order to `mlca serve`.

Run the command again after an interruption to resume. Each row gets an ID: the value of the --id column, or an ID made
from the file name, the first row and the row number. The service learns each ID once, so you can send a file
again after it has grown or after lines were corrected.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from mlca.cli.repeated import Gathered
from mlca.cli.tablefiles import Faults, add_data_arguments, positive
from mlca.progress import Progress

if TYPE_CHECKING:
    from mlca.client import Client
    from mlca.tables.sources import Source

# The line number of a row in the file, and the row in the format of the service.
Placed = tuple[int, dict[str, Any]]

# Number of first rows from which the format of the labels is detected.
_FIRST_ROWS = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_data_arguments(parser)
    parser.add_argument(
        "--to", metavar="URL", required=True, help="address of the service, such as http://127.0.0.1:8000"
    )
    parser.add_argument(
        "--labels", action=Gathered, metavar="COLUMNS", help="one column of labels, or one column of 0 and 1 per label"
    )
    parser.add_argument("--separator", metavar="TEXT", help="separator between labels (default: detected, | ; or ,)")
    parser.add_argument("--id", metavar="COLUMN", help="column of row IDs (default: generated IDs, see above)")
    parser.add_argument("--batch", type=positive, default=100, metavar="N", help="rows per request (default: 100)")
    parser.add_argument(
        "--token-file", metavar="FILE", help="file with the token (default: the environment variable MLCA_TOKEN)"
    )
    parser.add_argument(
        "--predict-first",
        action="store_true",
        help="predict each row before its labels are sent, so that the service measures accuracy",
    )


def run(args: argparse.Namespace) -> int:
    """Send the file; return the exit code."""
    from mlca.client import Client, ServiceError
    from mlca.tables.byte_streams import ByteStream
    from mlca.tables.formats import open_source

    sent = known = 0
    with Client(args.to, _token(args)) as client, ByteStream(args.data) as stream, Progress() as progress:
        source = open_source(stream, args.format)
        try:
            to_x, on_fault = _cells if _takes_tables(client) else _numbers, Faults(args)
            rows = _rows(args, source, to_x, on_fault)
            position = None
            while batch := list(islice(rows, args.batch)):
                answer = _send_good(client, batch, args.predict_first, source, on_fault)
                if answer is not None:
                    sent += answer["learned"]
                    known += len(answer["duplicates"])
                    position = answer["position"]
                progress.advance(len(batch), source.fraction())
        except ServiceError as error:
            raise ValueError(f"{args.to}: {error}\n{sent:,} rows were sent; run the command again to resume") from None
        facts = {"sent": sent, "known": known, "position": position}
        seconds = progress.seconds
    if args.json:
        print(json.dumps(facts))
    else:
        print(f"Sent {sent:,} new rows in {seconds:.1f} s; {known:,} rows were already in the log")
    return 0


def _token(args: argparse.Namespace) -> str | None:
    if args.token_file is None:
        return os.environ.get("MLCA_TOKEN")
    return Path(args.token_file).read_text(encoding="utf-8").strip()


def _takes_tables(client: Client) -> bool:
    """Return whether the service accepts tables; True if the token lacks the scope to ask."""
    from mlca.client import ServiceError

    try:
        columns = client.model()["columns"]
    except ServiceError as error:
        if error.status != 403:
            raise
        return True
    return columns is None or bool(columns["table"])


def _rows(
    args: argparse.Namespace,
    source: Source,
    to_x: Callable[[Iterator[tuple[str, Any]]], dict[str, Any]],
    on_fault: Callable[[str], None],
) -> Iterator[Placed]:
    """Yield the rows of the file, in the format of the service, with their line numbers."""
    from mlca.tables.cells import id_of
    from mlca.tables.label_columns import LabelReader, decide_labels
    from mlca.tables.sources import Fault

    if args.id is not None and args.id not in source.columns:
        raise ValueError(f"{source.name}: there is no column {args.id!r}; the columns are {', '.join(source.columns)}")
    rows = source.rows()
    first = list(islice(rows, _FIRST_ROWS))
    looked_at = [cells for _, cells in first if not isinstance(cells, Fault)]
    reader = LabelReader(decide_labels(source, looked_at, args.labels, args.separator), source.columns)
    columns = [(i, name) for i, name in enumerate(source.columns) if name not in (*reader.columns, args.id)]
    made_up = f"{PurePath(source.name).name}-{_fingerprint(source.columns, first)}"
    for count, (line, cells) in enumerate(chain(first, rows), 1):
        labels = cells if isinstance(cells, Fault) else reader.read(cells)
        if isinstance(cells, Fault) or isinstance(labels, Fault):
            assert isinstance(labels, Fault)
            on_fault(f"{source.name}, {source.place} {line}: {labels.problem}")
            continue
        try:
            x = to_x((name, cells[i]) for i, name in columns)
        except ValueError as error:
            on_fault(f"{source.name}, {source.place} {line}: {error}")
            continue
        id = f"{made_up}:{count}" if args.id is None else id_of(cells[source.columns.index(args.id)])
        if not id:
            on_fault(f"{source.name}, {source.place} {line}: {args.id!r} is empty; fill it in, or leave out --id")
            continue
        yield line, {"id": id, "x": x, "labels": labels}


def _cells(row: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    """Return a row as JSON values; text that a number would change, such as "007", stays."""
    from mlca.tables.cells import as_text, is_missing, is_number

    x: dict[str, Any] = {}
    for name, cell in row:
        if is_missing(cell):
            x[name] = None
        elif isinstance(cell, bool):
            x[name] = cell
        else:
            number = _within_bounds(name, cell) if is_number(cell) else None
            x[name] = as_text(cell) if number is None or as_text(number) != as_text(cell) else number
    return x


def _numbers(row: Iterator[tuple[str, Any]]) -> dict[str, float]:
    """Return a row's numbers by column, for a service that accepts only numbers."""
    from mlca.tables.cells import is_number

    x = dict(row)
    for name, cell in x.items():
        if not is_number(cell):
            raise ValueError(f"{name!r} is not a number, and this service accepts numbers only")
    return {name: _within_bounds(name, cell) for name, cell in x.items()}


def _within_bounds(name: str, cell: Any) -> float:
    """Return a cell as a number; raise ValueError if it is too large for the service."""
    from mlca.tables.cells import as_number

    try:
        return as_number(cell)
    except ValueError as error:
        raise ValueError(f"{name!r} is {error}, a number outside the supported range; rescale it") from None


def _fingerprint(columns: tuple[str, ...], first: list[Any]) -> str:
    """Return a hash of columns and first row, which stays the same if the file grows."""
    return hashlib.sha256(json.dumps([columns, first[:1]], default=str).encode()).hexdigest()[:12]


def _send_good(
    client: Client, batch: list[Placed], predict_first: bool, source: Source, on_fault: Callable[[str], None]
) -> dict[str, Any] | None:
    """Send rows, leaving out those that the service rejects; return None if none is left."""
    from mlca.client import ServiceError

    while batch:
        try:
            return _send(client, [row for _, row in batch], predict_first)
        except ServiceError as error:
            if error.status != 422 or error.row is None:
                raise
            line, _ = batch.pop(error.row)
            on_fault(f"{source.name}, {source.place} {line}: {error}")
    return None


def _send(client: Client, rows: list[dict[str, Any]], predict_first: bool) -> dict[str, Any]:
    if not predict_first:
        return client.learn(rows)
    client.predict([{"id": row["id"], "x": row["x"]} for row in rows], top=0, keep=True)
    return client.labels(rows)
