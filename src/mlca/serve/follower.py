"""The learner thread: loads the newest valid snapshot, then learns the rows after it.

When rows that the model has learned are forgotten, the model is rebuilt from the last snapshot before them. Until the
rebuild is complete, the old model predicts but does not learn. A model of generation g at position p has therefore
learned exactly the rows up to p that the log contained in generation g, on any machine.

A rebuild reads the log in one transaction, so it finishes even if more rows are forgotten meanwhile; the next rebuild
removes those. The model thus makes progress even if rows are forgotten faster than it can be rebuilt.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from mlca.metrics.stream.alarms import Watch
from mlca.serve.database import DamageError, LogError
from mlca.serve.live_model import Learned, LiveModel, new_model
from mlca.serve.log import Log, LogView
from mlca.serve.measures import look
from mlca.serve.request_errors import RequestError
from mlca.serve.request_rows import Columns
from mlca.serve.snapshots import Snapshots

# Number of rows per chunk. The model learns a chunk in a few milliseconds; predictions wait for at most one chunk.
_CHUNK = 50
# Limits per read of the log, and per learning step of a rebuild: rows, bytes of numeric rows, and rows of a table.
_CHAPTER = 1000
_CHAPTER_BYTES = 2**24
_TABLE_CHAPTER = 250
# Seconds after which the log is checked even without a notification.
_POLL = 0.5
# A snapshot is due after _SNAPSHOT_ROWS new rows, or with fewer new rows after the longer time, in seconds. The shorter
# one is the minimum time between two snapshots.
_SNAPSHOT_ROWS = 10_000
_SNAPSHOT_SECONDS = (5.0, 60.0)
# Largest share of time spent on saving snapshots.
_SAVING_SHARE = 0.05


class Rebuild(NamedTuple):
    """Progress of a rebuild: its generation, current position and final position."""

    generation: int
    position: int
    end: int

    def __str__(self) -> str:
        return f"{self.position:,} of {self.end:,} rows"


class Follower:
    """Keeps the model up to date with the log.

    Parameters
    ----------
    log : Log
        The log.
    snapshots : Snapshots
        The snapshots of this service.
    n_jobs : int or None
        The number of threads of the model; it does not affect results.
    on_progress : callable
        Called after each step with the number of rows learned in it.
    on_event : callable
        Called with the name and the data of an event: a new label, forgotten rows, a rebuilt model, or an alarm.
    on_trouble : callable
        Called with a message about a failure.
    """

    def __init__(
        self,
        log: Log,
        snapshots: Snapshots,
        n_jobs: int | None,
        on_progress: Callable[[int], None],
        on_event: Callable[[str, dict[str, Any]], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self._log, self._snapshots, self._n_jobs = log, snapshots, n_jobs
        self._on_progress, self._on_event, self._on_trouble = on_progress, on_event, on_trouble
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mlca-follower", daemon=True)
        self._saved_position = 0
        self._saved_at = time.monotonic()
        self._saving_took = 0.0
        self._erase_at = 0.0
        self._watch: Watch | None = None
        self.live: LiveModel | None = None
        self.rebuild: Rebuild | None = None
        self.trouble: str | None = None

    def start(self) -> None:
        """Start learning."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current chunk, and save the model."""
        self._stopping.set()
        self._log.database.wake()
        if self._thread.is_alive():
            self._thread.join()
        if self.live is not None and self.live.facts.position > self._saved_position:
            self.save(self.live)

    @property
    def rebuilding(self) -> bool:
        """Whether the model is being rebuilt."""
        return self.live is not None and self.rebuild is not None

    @property
    def unready(self) -> str:
        """The reason why predictions are unavailable, or why the model does not follow the log."""
        if self.trouble is not None:
            return self.trouble
        return f"the model is being restored from snapshot and log{f': {self.rebuild}' if self.rebuild else ''}"

    @property
    def behind(self) -> int:
        """The number of rows of the log that the model has not learned yet."""
        known = 0 if self.live is None else self.live.facts.position
        return max(0, self._log.head.position - known)

    def save(self, live: LiveModel) -> Path | None:
        """Save a snapshot and return its path; None if it must not be saved, or on a failure."""
        began = time.monotonic()
        self._saved_at = began
        path = None
        try:
            forgotten = self._log.first_forgotten(live.facts.generation)
            if forgotten is not None and forgotten <= live.facts.position:
                self._snapshots.drop_from(forgotten)  # the model has learned forgotten rows and must not be saved
            elif live.facts.seen and live.facts.settled:
                # Only once the kinds of columns are final: a snapshot lacks the rows from which they are inferred.
                path = self._snapshots.save(live)
                self._saved_position = int(path.name.split("-")[0])
                self._share(path)
        except (OSError, LogError, RequestError) as error:
            self._on_trouble(f"no snapshot could be saved ({error}); no rows are lost, since the log has them")
        self._saving_took = time.monotonic() - began
        return path

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                worked = self._step() if self.live is not None else self._recover()
                self.trouble = None
                if not worked and not self._stopping.is_set():
                    self._log.database.wait(_POLL)
            except DamageError as error:
                self._report_trouble(f"learning has stopped: {error}")
                return
            except (LogError, OSError) as error:
                self._report_trouble(f"the log cannot be followed: {error}")
                self._stopping.wait(_POLL)
            except Exception as error:
                # A model that failed while learning is not used or saved any more; a restart replays the log.
                self._report_trouble(f"learning has stopped: {error!r}; restart the service")
                return

    def _report_trouble(self, sentence: str) -> None:
        if sentence != self.trouble:
            self._on_trouble(sentence)
        self.trouble = sentence

    def _recover(self) -> bool:
        with self._log.viewing() as view:
            learned = self._nearest_snapshot(view) or self._beginning()
            self._saved_position = learned.position
            done = self._replay(view, learned)
        if done:
            self.live = LiveModel(learned)
            self.rebuild = None
            self._on_progress(0)
        return True

    def _step(self) -> bool:
        """Learn new rows, or start a rebuild; return whether there was anything to do."""
        live = self.live
        assert live is not None
        facts = live.facts
        if self._log.erasing_due.is_set() and time.monotonic() >= self._erase_at:
            self._erase()
        with self._log.viewing() as view:
            head, forgotten = view.head, view.first_forgotten(facts.generation)
            fits = view.fits(facts.position, facts.generation, facts.checksum)
            followed = fits and head.generation == facts.generation
            chapter = view.read(facts.position, self._limit(head.columns)) if followed else []
        if not fits:
            # For example, a failover to a standby database lost the last rows, so the model must forget them.
            self._on_trouble(
                f"the log has gone back to position {head.position}, or has other rows; rebuilding the model"
            )
            self._log.go_back(head)
            self._rebuild(live)
            return True
        if not followed:
            self._log.erasing_due.set()  # another service may have forgotten the rows
            if forgotten is not None and forgotten <= facts.position:
                self._on_event("forgotten", {"generation": head.generation})
                self._snapshots.drop_from(forgotten)
                self._saved_position = min(self._saved_position, forgotten - 1)
                self._rebuild(live)
            else:
                live.set_generation(head.generation)
                self._on_progress(0)
            return True
        if self._watch is None:
            self._watch = Watch(facts.labels)
        for start in range(0, len(chapter), _CHUNK):
            rows = chapter[start : start + _CHUNK]
            count = live.learn(rows, head.columns)
            self._on_progress(count)
            for label in live.facts.labels[len(facts.labels) :]:
                self._on_event("label", {"label": label, "position": live.facts.position})
            for alarm in look(self._watch, rows):
                self._on_event("alarm", alarm)
            facts = live.facts
            if self._stopping.is_set():
                break
        if self._is_snapshot_due(facts.position):
            self.save(live)
        return bool(chapter)

    def _erase(self) -> None:
        """Remove forgotten data from the disk; on failure, schedule another attempt."""
        self._log.erasing_due.clear()
        try:
            self._log.database.erase()
        except LogError as error:
            self._log.erasing_due.set()
            self._erase_at = time.monotonic() + _SNAPSHOT_SECONDS[0]
            self._on_trouble(str(error))

    def _rebuild(self, live: LiveModel) -> None:
        """Replace the model with one built from the current log.

        Rows forgotten meanwhile remain in the view of the log; the next step rebuilds the model without them.
        """
        with self._log.viewing() as view:
            self.rebuild = Rebuild(view.head.generation, 0, view.head.position)
            learned = self._nearest_snapshot(view) or self._beginning()
            done = self._replay(view, learned)
        if done:
            live.replace(learned)
            self._saved_position = min(self._saved_position, learned.position)
            self.rebuild = None
            self._on_event("rebuilt", {"generation": learned.generation, "position": learned.position})
            self._on_progress(0)
            self.save(live)

    def _replay(self, view: LogView, learned: Learned) -> bool:
        """Learn all rows of a log view; return False if the service is stopped before the end."""
        head = view.head
        learned.generation = head.generation
        if learned.checksum is None:  # a snapshot from before checksums existed
            learned.checksum = view.checksum_at(learned.position)
        while learned.position < head.position:
            if self._stopping.is_set():
                return False
            self.rebuild = Rebuild(head.generation, learned.position, head.position)
            learned.learn(view.read(learned.position, self._limit(head.columns)), head.columns)
            learned.measures.note(learned.position, learned.facts().nodes)
        return True

    def _beginning(self) -> Learned:
        """Return the initial model: a new one, or the one from which the log started."""
        from mlca.classifier import load

        beginning = self._log.beginning
        if beginning.start is None:
            return Learned(new_model(beginning.parameters, self._n_jobs), checksum=beginning.checksum)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "start.mlca"
            path.write_bytes(beginning.start)
            return Learned(load(path).set_params(n_jobs=self._n_jobs), checksum=beginning.checksum)

    def _nearest_snapshot(self, view: LogView) -> Learned | None:
        """Return the newest snapshot that fits the log, local or shared; None if there is none."""
        local = self._snapshots.newest(view)
        found = local
        if self._log.database.shared and view.shared_position() > (local.position if local else 0):
            shared = view.shared_snapshot()
            found = (self._snapshots.take_in(view, *shared) if shared is not None else None) or local
        if found is not None:
            found.model.set_params(n_jobs=self._n_jobs)
        return found

    def _share(self, path: Path) -> None:
        """Store a snapshot in a shared database, unless the newest one there is recent."""
        position, generation = map(int, path.stem.split("-"))
        if not self._log.database.shared:
            return
        with self._log.viewing() as view:
            newest = view.shared_position()
        if position - newest >= _SNAPSHOT_ROWS // 2:
            self._log.share(position, generation, path.read_bytes())

    def _is_snapshot_due(self, position: int) -> bool:
        rows, seconds = position - self._saved_position, time.monotonic() - self._saved_at
        soon, late = _SNAPSHOT_SECONDS
        soon = max(soon, self._saving_took / _SAVING_SHARE)
        return (rows >= _SNAPSHOT_ROWS and seconds >= soon) or (rows > 0 and seconds >= max(soon, late))

    def _limit(self, columns: Columns | None) -> int:
        if columns is None:
            return _CHAPTER
        if columns.table:  # rows of a table may be long
            return _TABLE_CHAPTER
        return max(1, min(_CHAPTER, _CHAPTER_BYTES // (8 * columns.width)))
