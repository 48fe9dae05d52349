"""Snapshots: model files with a position, so that a start need not replay the whole log.

A snapshot is a model file, as written by `MLCA.save`, with metadata in its extras: the format version of the metadata,
the identity of the log, position, generation, the checksum of the log at that position, and measures. It is written
atomically, and used only after the file's checksum, the model and the metadata have been verified. An invalid snapshot
is removed, and the previous one is used.

While the log exists, losing a snapshot costs only the time to replay. If the log is lost or was replaced, the snapshots
are the last copies of the model. So a snapshot that the log contradicts is never removed: either the service does not
start, or it moves the snapshot to the folder `set-aside`.

Old snapshots are thinned out, so that the distance to the newest roughly doubles from each snapshot to the next older
one. About twenty snapshots thus cover any log, and rows can be forgotten without replaying all of it.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mlca.replacing import flush_directory, replacing
from mlca.serve.live_model import NOTE, Facts, Learned, LiveModel
from mlca.serve.log import LogView
from mlca.serve.measures import LogMeasures

# Supported versions of the metadata; version 1 has no checksum.
NOTE_VERSIONS = (1, 2)
_NAME = re.compile(r"(\d{12})-(\d{6})\.mlca")


class Contradiction(NamedTuple):
    """A snapshot that the log contradicts, and the reason."""

    path: Path
    reason: str


class Snapshots:
    """The snapshots of a service, in a folder.

    Parameters
    ----------
    folder : Path
        The folder; created if it does not exist.
    identity : str
        The identity of the log that the snapshots belong to.
    on_trouble : callable
        Called with a message about each snapshot that cannot be used.
    """

    def __init__(self, folder: Path, identity: str, on_trouble: Callable[[str], None]) -> None:
        self.folder = folder
        self._identity = identity
        self._on_trouble = on_trouble
        folder.mkdir(exist_ok=True)
        for leftover in folder.glob("*part*"):
            leftover.unlink()

    def save(self, live: LiveModel) -> Path:
        """Save the current model as a snapshot, and thin out old snapshots."""
        temporary = self.folder / "new.part"
        try:
            path = self.folder / _name_of(self.write(live, temporary))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        flush_directory(self.folder)
        self._thin()
        return path

    def write(self, live: LiveModel, path: Path) -> Facts:
        """Write the current model to a file; return the status of the written model."""
        return live.snapshot(path, {"version": NOTE_VERSIONS[-1], "log": self._identity})

    def newest(self, view: LogView) -> Learned | None:
        """Return the newest snapshot that fits the log.

        Snapshots that are damaged, or whose models learned forgotten rows, are removed. Snapshots that the log
        contradicts are set aside.
        """
        for position, generation, path in stored_snapshots(self.folder):
            forgotten = view.first_forgotten(generation)
            if forgotten is not None and forgotten <= position:
                path.unlink(missing_ok=True)
                continue
            learned = self.read(path)
            if learned is None:
                path.unlink(missing_ok=True)
            elif view.fits(position, generation, learned.checksum):
                return learned
            else:
                self._on_trouble(f"snapshot {path.name} has other rows than the log; it is moved to {_aside(path)}")
                set_aside(path)
        return None

    def read(self, path: Path) -> Learned | None:
        """Load a snapshot; report it and return None if it cannot be used."""
        from mlca.classifier import load
        from mlca.model import extras_of

        try:
            model = load(path)
            note = extras_of(model)[NOTE]
            if note["version"] not in NOTE_VERSIONS:
                raise ValueError(f"it has format version {note['version']}, not {NOTE_VERSIONS[-1]}")
            if note["log"] != self._identity:
                raise ValueError("it belongs to another log")
            measures = LogMeasures.from_json(note["measures"])
            checksum = _checksum_of(note)
            learned = Learned(model, measures, int(note["position"]), int(note["generation"]), checksum)
            if path.name != _name_of(learned.facts()):
                raise ValueError("its name contradicts its content")
            return learned
        except (ValueError, KeyError, TypeError, OSError) as error:
            self._on_trouble(f"snapshot {path.name} cannot be used ({error}); using an older one")
            return None

    def take_in(self, view: LogView, content: bytes, position: int, generation: int) -> Learned | None:
        """Store and load a snapshot from another service; None if it does not fit the log."""
        path = self.folder / _name_of(Facts(position, generation))
        with replacing(path) as file:
            file.write(content)
        learned = self.read(path)
        if learned is None or not view.fits(position, generation, learned.checksum):
            path.unlink()
            return None
        return learned

    def drop_from(self, position: int) -> None:
        """Remove the snapshots at or after a position, whose models learned a forgotten row."""
        for at, _, path in stored_snapshots(self.folder):
            if at >= position:
                path.unlink(missing_ok=True)
        flush_directory(self.folder)

    def positions(self) -> list[int]:
        """Return the positions of the snapshots, newest first."""
        return [position for position, _, _ in stored_snapshots(self.folder)]

    def _thin(self) -> None:
        """Keep the two newest snapshots, and one per doubling of the distance to the newest."""
        all_of_them = stored_snapshots(self.folder)
        newest = all_of_them[0][0]
        oldest = {(newest - position).bit_length(): path for position, _, path in all_of_them[2:]}
        for _, _, path in all_of_them[2:]:
            if path not in oldest.values():
                path.unlink(missing_ok=True)


def stored_snapshots(folder: Path) -> list[tuple[int, int, Path]]:
    """Return position, generation and path of all snapshots in a folder, newest first."""
    if not folder.is_dir():
        return []
    # Only regular files are listed, because opening a named pipe would block.
    found = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_file())
    return sorted(((int(name[1]), int(name[2]), path) for name, path in found if name), reverse=True)


def contradictions(folder: Path, identity: str | None, view: LogView | None) -> Iterator[Contradiction]:
    """Yield the snapshots that a log contradicts, newest first.

    Parameters
    ----------
    folder : Path
        The folder of the snapshots.
    identity : str or None
        The identity of the log; None if there is no log.
    view : LogView or None
        A view of the log; None if there is no log.
    """
    for position, generation, path in stored_snapshots(folder):
        note = _note_of(path)
        if view is None:
            yield Contradiction(path, f"it has position {position:,}, but there is no log")
            continue
        if note is None:
            continue  # a damaged snapshot is not used, and cannot contradict the log
        position, generation = note["position"], note["generation"]  # the name of a copied file may be wrong
        if note.get("log") != identity:
            yield Contradiction(path, f"it has position {position:,} of another log")
        elif position > view.head.position:
            yield Contradiction(path, f"it has position {position:,}, but the log ends at {view.head.position:,}")
        elif generation > view.head.generation:
            problem = f"it has generation {generation:,}, but the log has generation {view.head.generation:,}"
            yield Contradiction(path, problem)
        elif not view.fits(position, generation, _checksum_of(note)):
            yield Contradiction(path, f"up to its position {position:,} the log has other rows than the snapshot")


def set_aside(path: Path) -> None:
    """Move a snapshot to the folder `set-aside` beside its folder, under an unused name."""
    folder = _aside(path)
    folder.mkdir(mode=0o700, exist_ok=True)
    target, number = folder / path.name, 1
    while target.exists():
        target, number = folder / f"{path.stem}-{number}.mlca", number + 1
    path.rename(target)
    flush_directory(folder)
    flush_directory(path.parent)


def _aside(path: Path) -> Path:
    return path.parent.parent / "set-aside"


def _note_of(path: Path) -> dict[str, Any] | None:
    """Return a snapshot's metadata without loading the model; None if damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            note = json.loads(archive.read("mlca.json"))["extras"][NOTE]
        whole = isinstance(note, dict) and all(isinstance(note.get(name), int) for name in ("position", "generation"))
        return note if whole else None
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None


def _checksum_of(note: dict[str, Any]) -> bytes | None:
    checksum = note.get("checksum")
    return None if checksum is None else bytes.fromhex(checksum)


def _name_of(facts: Facts) -> str:
    return f"{facts.position:012}-{facts.generation:06}.mlca"
