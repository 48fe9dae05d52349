"""Startup of a service: its settings, and the creation, check or repair of its log.

A service does not start on a damaged log, or on a log that the snapshots beside it contradict because it is missing,
truncated, older than the snapshots, or a different one. Otherwise acknowledged rows would be lost silently, and so
would the snapshots, which may be the last copies of the model. In these cases nothing is changed, and the error message
lists the options. With `accept_log` the service continues with the log as it is, and sets contradicted snapshots aside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlca.serve.database import Database
from mlca.serve.live_model import Learned, new_model, new_parameters
from mlca.serve.log import Log, LogView, create_log, open_log
from mlca.serve.log_upkeep import accept_log
from mlca.serve.operator_log import log_event
from mlca.serve.request_rows import TABLE, Columns
from mlca.serve.snapshots import contradictions, set_aside, stored_snapshots
from mlca.serve.sqlite import SQLite


@dataclass(frozen=True)
class ServiceSettings:
    """The settings of a service.

    Attributes
    ----------
    data : Path
        The folder of the log and the snapshots.
    log : str or None
        The address of a PostgreSQL database for the log; None stores the log in the folder.
    model : Path or None
        The model file from which training starts; None starts with a new model.
    parameters : dict
        The parameters set by the user for a new model.
    n_jobs : int or None
        The number of threads of the model.
    accept_log : bool
        Whether to continue with a log that is damaged, or that snapshots contradict.
    """

    data: Path
    log: str | None = None
    model: Path | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None
    accept_log: bool = False

    @property
    def snapshots(self) -> Path:
        """The folder of snapshots."""
        return self.data / "snapshots"

    def database(self) -> Database:
        """Return the database of the log."""
        if self.log is None:
            return SQLite(self.data / "log.sqlite")
        from mlca.serve.postgresql import PostgreSQL

        return PostgreSQL(self.log)


def open_service_log(database: Database, settings: ServiceSettings) -> Log:
    """Return the log of a database after checking it, or a new one if there is none.

    Raises
    ------
    LogError
        If the log cannot be read, or is damaged.
    ValueError
        If the log began with other parameters or another model, or if snapshots contradict it.
    """
    log = open_log(database)
    if log is None:
        start, columns = (None, None) if settings.model is None else _read_start(settings.model)
        parameters = {} if start is not None else new_parameters(settings.parameters)
        if start is not None and settings.parameters:
            raise ValueError("the model file of --model sets all parameters; leave the other options out")
        _settle(settings, None, None)
        return create_log(database, parameters, start, columns)
    _check_beginning(log, settings)
    if settings.accept_log:
        log = _accepted(database, settings)
    log.check()
    with log.viewing() as view:
        _settle(settings, log.beginning.identity, view)
    return log


def _check_beginning(log: Log, settings: ServiceSettings) -> None:
    if settings.model is not None and settings.model.read_bytes() != log.beginning.start:
        raise ValueError(f"{settings.model}: the log started from another model; omit --model, or use a new folder")
    began = {} if log.beginning.start is not None else new_model(log.beginning.parameters, None).get_params()
    for name, value in settings.parameters.items():
        if began.get(name) != value:
            raise ValueError(
                f"the log started with {name}={began.get(name)!r}, not {value!r}; omit this option, or use a new "
                "folder and send the rows again"
            )


def _accepted(database: Database, settings: ServiceSettings) -> Log:
    with database.writing() as session:
        repairs = accept_log(session)
    if repairs.erased:  # snapshots at or after the first erased row include it
        for position, _, path in stored_snapshots(settings.snapshots):
            if position >= repairs.erased[0]:
                set_aside(path)
    log_event("accepted", rows=repairs.position, erased=len(repairs.erased), corrected=repairs.corrected)
    return Log(database)


def _settle(settings: ServiceSettings, identity: str | None, view: LogView | None) -> None:
    """Raise ValueError if snapshots contradict the log; with `accept_log`, set them aside."""
    found = list(contradictions(settings.snapshots, identity, view))
    if found and not settings.accept_log:
        path, reason = found[0]
        raise ValueError(
            f"{settings.data}: the log does not match the snapshots, so rows may be missing ({path.name}: {reason}"
            f"{f'; {len(found) - 1} more' if len(found) > 1 else ''}). Nothing was changed. Restore the log from a "
            "backup, or mount its disk; or pass --accept-log to continue with the log as it is, which moves these "
            f"snapshots to {settings.data / 'set-aside'}; or begin a new log from a snapshot: "
            f"mlca serve --data NEW --model {path}"
        )
    for path, reason in found:
        set_aside(path)
        log_event("set aside", snapshot=path.name, reason=reason)


def _read_start(path: Path) -> tuple[bytes, Columns]:
    """Read the starting model, and check that it accepts label names; return file and columns."""
    import numpy as np

    from mlca.classifier import load
    from mlca.tables.first_rows import TableRows

    learned = Learned(load(path))
    model = learned.model
    if not all(isinstance(name, str) for name in model.classes_.tolist()):
        raise ValueError(f"{path}: the labels of this model are numbers; train it with names as labels")
    names = getattr(model, "feature_names_in_", None)
    columns = Columns(model.n_features_in_, None if names is None else tuple(map(str, names)))
    try:
        if learned.table is not None:
            learned.table.learn(TableRows({}, 1), [()])
            columns = TABLE
        else:
            model.partial_fit(np.zeros((1, columns.width)), [()])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return path.read_bytes(), columns
