"""Models in files, each of a stated position: short cuts through the log, never more than that.

A snapshot is a model file as `MLCA.save` writes it, with a note among its extras: the note's format version, the log
that it belongs to, position, generation and measures. It appears whole or not at all, and is believed only after the
file's check sum, the model and the note have been read; one that fails is removed, and the one before is taken. Nothing
is lost with a snapshot but the time to replay.

Old ones are thinned out such that their distances to the newest about double: some twenty of them reach back to
the beginning of any log, so that rows can be forgotten without replaying all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from mlca.replacing import flush_directory, replacing
from mlca.serve.live import NOTE, Facts, Learned, LiveModel
from mlca.serve.measures import LogMeasures

NOTE_VERSION = 1
_NAME = re.compile(r"(\d{12})-(\d{6})\.mlca")


class Snapshots:
    """The snapshots of a folder.

    Parameters
    ----------
    folder : Path
        Where they are; made where there is none.
    identity : str
        The log that they belong to.
    on_trouble : callable
        Told in a sentence about every snapshot that cannot be used.
    """

    def __init__(self, folder: Path, identity: str, on_trouble: Callable[[str], None]) -> None:
        self.folder = folder
        self._identity = identity
        self._on_trouble = on_trouble
        folder.mkdir(exist_ok=True)
        for leftover in folder.glob("*part*"):
            leftover.unlink()

    def save(self, live: LiveModel) -> Path:
        """Save the model as it is now."""
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
        """Write the model as it is now to a file of any name; return where it stands."""
        return live.snapshot(path, {"version": NOTE_VERSION, "log": self._identity})

    def newest(self, is_right: Callable[[int, int], bool]) -> Learned | None:
        """Return the newest good one; remove those that are damaged or, by position and generation, not right."""
        for position, generation, path in self._all():
            if is_right(position, generation):
                learned = self.read(path)
                if learned is not None:
                    return learned
            path.unlink(missing_ok=True)
        return None

    def read(self, path: Path) -> Learned | None:
        """Return what a snapshot holds; None, and a word about it, where it is damaged or of another log."""
        from mlca.classifier import load
        from mlca.model import extras_of

        try:
            model = load(path)
            note = extras_of(model)[NOTE]
            if note["version"] != NOTE_VERSION:
                raise ValueError(f"it has format version {note['version']}, not {NOTE_VERSION}")
            if note["log"] != self._identity:
                raise ValueError("it belongs to another log")
            measures = LogMeasures.from_json(note["measures"])
            learned = Learned(model, measures, int(note["position"]), int(note["generation"]))
            if path.name != _name_of(learned.facts()):
                raise ValueError("its name contradicts its content")
            return learned
        except (ValueError, KeyError, TypeError, OSError) as error:
            self._on_trouble(f"snapshot {path.name} cannot be used ({error}); taking the one before")
            return None

    def take_in(self, content: bytes, position: int, generation: int) -> Learned | None:
        """Keep a snapshot that another service made, and return what it holds."""
        path = self.folder / _name_of(Facts(position, generation))
        with replacing(path) as file:
            file.write(content)
        learned = self.read(path)
        if learned is None:
            path.unlink()
        return learned

    def drop_from(self, position: int) -> None:
        """Remove all of a position and behind: they know a row that must be forgotten."""
        for at, _, path in self._all():
            if at >= position:
                path.unlink(missing_ok=True)
        flush_directory(self.folder)

    def positions(self) -> list[int]:
        """Return the positions that there are snapshots of, the newest first."""
        return [position for position, _, _ in self._all()]

    def _all(self) -> list[tuple[int, int, Path]]:
        found = ((_NAME.fullmatch(path.name), path) for path in self.folder.iterdir())
        return sorted(((int(name[1]), int(name[2]), path) for name, path in found if name), reverse=True)

    def _thin(self) -> None:
        """Keep the two newest, and the oldest of those between 2, 4, 8, ... rows behind the newest."""
        all_of_them = self._all()
        newest = all_of_them[0][0]
        oldest = {(newest - position).bit_length(): path for position, _, path in all_of_them[2:]}
        for _, _, path in all_of_them[2:]:
            if path not in oldest.values():
                path.unlink(missing_ok=True)


def _name_of(facts: Facts) -> str:
    return f"{facts.position:012}-{facts.generation:06}.mlca"
