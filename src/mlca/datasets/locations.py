"""The locations of datasets: the user's own folder, the cache, the network."""

from __future__ import annotations

import os
import shutil
import uuid
import zipfile
import zlib
from pathlib import Path

from mlca.datasets.catalogue import Archive, Entry
from mlca.datasets.download import DownloadError, download
from mlca.datasets.filesets import FileSet, locate
from mlca.replacing import replacing
from mlca.tables.byte_streams import MOST_GROWTH, expansion_limit


def cache_folder() -> Path:
    """Return the folder of downloaded datasets.

    The environment variable ``MLCA_CACHE`` sets the folder. The default is ``mlca`` in the user's cache folder, which
    is ``XDG_CACHE_HOME`` or ``~/.cache``.

    Returns
    -------
    Path
        The folder, which may not exist yet.
    """
    if chosen := os.environ.get("MLCA_CACHE"):
        return Path(chosen)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "mlca"


def find(entry: Entry) -> tuple[FileSet, dict[str, Path]] | None:
    """Find the files of a dataset on this machine.

    Parameters
    ----------
    entry : Entry
        The dataset.

    Returns
    -------
    tuple of (FileSet, dict of str to Path), or None
        The fileset, and the path of each of its files, in the folder ``MLCA_DATA`` if all are there, else in the cache.
        None if neither has a complete fileset.
    """
    chosen = os.environ.get("MLCA_DATA")
    for root in ([Path(chosen)] if chosen else []) + [cache_folder()]:
        for fileset in entry.filesets:
            paths = locate(fileset, root / entry.name)
            if paths is not None:
                return fileset, paths
    return None


def fetch(entry: Entry, *, timeout: float = 30.0) -> Path:
    """Download a dataset into the cache.

    OpenML is tried first if it has the dataset, then the public address in the catalogue.

    Parameters
    ----------
    entry : Entry
        The dataset.
    timeout : float, default=30.0
        Seconds without data before the download fails.

    Returns
    -------
    Path
        The dataset's folder in the cache.

    Raises
    ------
    DownloadError
        If the download fails; the message gives instructions for a manual download.
    """
    folder = cache_folder() / entry.name
    troubles = []
    if entry.openml is not None:
        from mlca.datasets.openml import fetch_from_openml

        name, version = entry.openml
        try:
            fetch_from_openml(name, version, folder, timeout=timeout)
            return folder
        except (OSError, ValueError) as error:
            troubles.append(f"OpenML: {error}")
    try:
        _fetch_archive(entry.archive, folder, timeout)
        return folder
    except (DownloadError, ValueError) as error:
        troubles.append(str(error))
    raise DownloadError(f"{entry.name} could not be downloaded.\n  " + "\n  ".join([*troubles, manual_download(entry)]))


def manual_download(entry: Entry) -> str:
    """Return instructions for a manual download."""
    ways = " or ".join(", ".join(fileset.files) for fileset in (*entry.collected, entry.archive.fileset))
    return (
        f"To download it manually, get the dataset from {entry.source} or {entry.archive.url}, and put {ways} into "
        f"{cache_folder() / entry.name}, or into your own folder {entry.name!r} and set MLCA_DATA to its parent folder."
    )


def _fetch_archive(archive: Archive, folder: Path, timeout: float) -> None:
    """Download a zip file, unpack the required files, and remove the zip file."""
    packed = folder / f"{uuid.uuid4().hex}.zip"
    download(archive.url, packed, checksum=archive.checksum, timeout=timeout)
    try:
        with zipfile.ZipFile(packed) as contents:
            _unpack(contents, archive, folder, expansion_limit(packed))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{archive.url}: the download is not the expected archive ({error})") from None
    finally:
        packed.unlink(missing_ok=True)


def _unpack(contents: zipfile.ZipFile, archive: Archive, folder: Path, n_bytes_left: int) -> None:
    # Folders and case differ between copies of the same archive.
    present = {Path(member.filename).name.lower(): member for member in contents.infolist()}
    for theirs, ours in archive.members.items():
        member = present.get(theirs.lower())
        if member is None:
            raise ValueError(f"{archive.url}: the archive does not contain {theirs}")
        n_bytes_left -= member.file_size
        if n_bytes_left < 0:
            raise ValueError(f"{archive.url}: the archive expands to more than {MOST_GROWTH} times its size")
        with contents.open(member) as packed, replacing(folder / ours) as file:
            shutil.copyfileobj(packed, file)
