"""One thread that learns: from the newest good snapshot, through the rest of the log, and on with every new row.

When rows are forgotten that the model knows, it is rebuilt from the last snapshot before them. Until that is done the
old model goes on answering but learns nothing more: whatever answers in generation g at position p has
learned just the rows that the log had in generation g up to p, whoever answers.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlca.metrics.stream.alarms import Watch
from mlca.serve.alarms import look
from mlca.serve.database import LogError
from mlca.serve.live import Learned, LiveModel, new_model
from mlca.serve.log import Log
from mlca.serve.refusals import RefusalError
from mlca.serve.snapshots import Snapshots

# Rows that are learned while predictions wait: some milliseconds' worth.
_CHUNK = 50
# Rows that are read at once, and learned at once while nobody waits; fewer where they are wide.
_CHAPTER = 1000
_CHAPTER_BYTES = 2**24
_TABLE_CHAPTER = 250
# Seconds after which the log is looked at even if nobody called.
_POLL = 0.5
# A snapshot is due after so many rows, or after so many seconds with any; never sooner than the first number.
_SNAPSHOT_ROWS = 10_000
_SNAPSHOT_SECONDS = (5.0, 60.0)
# What saving may cost at most, as a share of the time.
_SAVING_SHARE = 0.05


class Follower:
    """Keeps the model up with the log.

    Parameters
    ----------
    log : Log
        What is learned.
    snapshots : Snapshots
        The short cuts.
    n_jobs : int or None
        Threads of the model; they never change a result.
    on_progress : callable
        Called after every step with the number of rows learned in it.
    on_event : callable
        Told by name and facts about a new label, a forgetting, a rebuilt model, an alarm.
    on_trouble : callable
        Told in a sentence what does not work.
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
        self.rebuilding = False
        self.trouble: str | None = None

    def start(self) -> None:
        """Begin to learn."""
        self._thread.start()

    def stop(self) -> None:
        """End after the chunk at hand, and save the model."""
        self._stopping.set()
        self._log.database.wake()
        if self._thread.is_alive():
            self._thread.join()
        if self.live is not None and self.live.facts.position > self._saved_position:
            self.save(self.live)

    @property
    def behind(self) -> int:
        """How many rows of the log the model does not know yet."""
        known = 0 if self.live is None else self.live.facts.position
        return max(0, self._log.head.position - known)

    def save(self, live: LiveModel) -> Path | None:
        """Take a snapshot; None, and a word about it, where that is not possible now."""
        began = time.monotonic()
        self._saved_at = began
        path = None
        try:
            forgotten = self._log.first_forgotten(live.facts.generation)
            if forgotten is not None and forgotten <= live.facts.position:
                self._snapshots.drop_from(forgotten)  # and none of a model that knows what must be forgotten
            elif live.facts.seen and live.facts.settled:
                # Before that, a model does not tell the rows that decide about its columns: they are read again.
                path = self._snapshots.save(live)
                self._saved_position = int(path.name.split("-")[0])
                self._share(path)
        except (OSError, LogError, RefusalError) as error:
            self._on_trouble(f"no snapshot could be taken ({error}); the log has everything")
        self._saving_took = time.monotonic() - began
        return path

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                worked = self._step() if self.live is not None else self._recover()
                self.trouble = None
                if not worked and not self._stopping.is_set():
                    self._log.database.wait(_POLL)
            except (LogError, OSError) as error:
                self._tell_trouble(f"the log cannot be followed: {error}")
                self._stopping.wait(_POLL)
            except Exception as error:
                # A model that has failed itself lets nobody ask or save it from now on: a restart replays the log.
                self._tell_trouble(f"learning has stopped: {error!r}; restart the service")
                return

    def _tell_trouble(self, sentence: str) -> None:
        if sentence != self.trouble:
            self._on_trouble(sentence)
        self.trouble = sentence

    def _recover(self) -> bool:
        learned = self._nearest_snapshot() or self._beginning()
        self._saved_position = learned.position
        if self._replay(learned):
            self.live = LiveModel(learned)
            self._on_progress(0)
        return True

    def _step(self) -> bool:
        """Learn what is new; tell whether anything was."""
        live = self.live
        assert live is not None
        facts = live.facts
        if self._log.erasing_due.is_set() and time.monotonic() >= self._erase_at:
            self._erase()
        chapter = self._log.read(facts.position, facts.generation, self._limit())
        if chapter.head.position < facts.position or chapter.head.generation < facts.generation:
            # As after a change to a standby that had not got everything: what is gone must leave the model, too.
            self._on_trouble(f"the log has gone back to position {chapter.head.position}; the model follows")
            self._log.go_back(chapter.head)
            self._rebuild(live, chapter.head.position + 1)
            return True
        if chapter.head.generation != facts.generation:
            self._log.erasing_due.set()  # also if it was forgotten at another service
            if chapter.forgotten is not None and chapter.forgotten <= facts.position:
                self._on_event("forgotten", {"generation": chapter.head.generation})
                self._rebuild(live, chapter.forgotten)
            else:
                live.adopt(chapter.head.generation)
                self._on_progress(0)
            return True
        if self._watch is None:
            self._watch = Watch(facts.labels)
        for start in range(0, len(chapter.rows), _CHUNK):
            rows = chapter.rows[start : start + _CHUNK]
            count = live.learn(rows, chapter.head.columns)
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
        return bool(chapter.rows)

    def _erase(self) -> None:
        """Take what was forgotten off the disk, or try again a little later."""
        self._log.erasing_due.clear()
        try:
            self._log.database.erase()
        except LogError as error:
            self._log.erasing_due.set()
            self._erase_at = time.monotonic() + _SNAPSHOT_SECONDS[0]
            self._on_trouble(str(error))

    def _rebuild(self, live: LiveModel, first: int) -> None:
        self.rebuilding = True
        self._snapshots.drop_from(first)
        learned = self._nearest_snapshot() or self._beginning()
        if self._replay(learned):
            live.become(learned)
            self._saved_position = min(self._saved_position, first - 1)
            self.rebuilding = False
            self._on_event("rebuilt", {"generation": learned.generation, "position": learned.position})
            self._on_progress(0)
            self.save(live)

    def _replay(self, learned: Learned) -> bool:
        """Learn the log to its end; False where a forgetting or the end of the service came in between."""
        while not self._stopping.is_set():
            chapter = self._log.read(learned.position, learned.generation, self._limit())
            if chapter.forgotten is not None and chapter.forgotten <= learned.position:
                return False
            learned.generation = chapter.head.generation
            if not chapter.rows:
                return True
            learned.learn(chapter.rows, chapter.head.columns)
            learned.measures.note(learned.position, learned.facts().nodes)
        return False

    def _beginning(self) -> Learned:
        """Return the model before the first row."""
        from mlca.classifier import load

        beginning = self._log.beginning
        if beginning.start is None:
            return Learned(new_model(beginning.parameters, self._n_jobs))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "start.mlca"
            path.write_bytes(beginning.start)
            return Learned(load(path).set_params(n_jobs=self._n_jobs))

    def _nearest_snapshot(self) -> Learned | None:
        """Return the newest snapshot that knows nothing forgotten, our own or a shared one."""

        def is_right(position: int, generation: int) -> bool:
            forgotten = self._log.first_forgotten(generation)
            return position <= self._log.head.position and (forgotten is None or forgotten > position)

        local = self._snapshots.newest(is_right)
        found = local
        if self._log.database.shared and self._log.shared_position() > (local.position if local else 0):
            shared = self._log.shared_snapshot()
            found = (self._snapshots.take_in(*shared) if shared is not None else None) or local
        if found is not None:
            found.model.set_params(n_jobs=self._n_jobs)
        return found

    def _share(self, path: Path) -> None:
        """Leave a snapshot for other machines, unless one of them has just done so."""
        position, generation = map(int, path.stem.split("-"))
        if self._log.database.shared and position - self._log.shared_position() >= _SNAPSHOT_ROWS // 2:
            self._log.share(position, generation, path.read_bytes())

    def _is_snapshot_due(self, position: int) -> bool:
        rows, seconds = position - self._saved_position, time.monotonic() - self._saved_at
        soon, late = _SNAPSHOT_SECONDS
        soon = max(soon, self._saving_took / _SAVING_SHARE)
        return (rows >= _SNAPSHOT_ROWS and seconds >= soon) or (rows > 0 and seconds >= max(soon, late))

    def _limit(self) -> int:
        columns = self._log.head.columns
        if columns is None:
            return _CHAPTER
        if columns.table:  # of which a row may be long
            return _TABLE_CHAPTER
        return max(1, min(_CHAPTER, _CHAPTER_BYTES // (8 * columns.width)))
