"""Download of one file: resumable, verified, and atomic.

Received data are stored beside the target in a ``.part`` file named after the address. A process that resumes it first
renames it to a unique name, so that two processes never write to one file; if it fails, it restores the name.
"""

from __future__ import annotations

import hashlib
import http.client
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

_BLOCK = 2**16
_ATTEMPTS = 3
_LARGEST = 2**31  # larger than any dataset here; stops a download that would never end


class DownloadError(OSError):
    """Raised if a file cannot be downloaded; the message gives the reason."""


def download(url: str, target: Path, *, checksum: str | None = None, timeout: float = 30.0) -> Path:
    """Fetch a file from a public address.

    Parameters
    ----------
    url : str
        The address.
    target : Path
        The path to write to, which is replaced atomically.
    checksum : str, optional
        Algorithm and hexadecimal digest, such as ``"sha256:9f86..."``.
    timeout : float, default=30.0
        Seconds without data before the download fails.

    Returns
    -------
    Path
        The target path.

    Raises
    ------
    DownloadError
        If the server does not send the file, or sends a different file.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    waiting = target.with_name(f"{uuid.uuid5(uuid.NAMESPACE_URL, url).hex}.part")
    partial_file = target.with_name(f"{uuid.uuid4().hex}.part")
    with suppress(FileNotFoundError):
        waiting.rename(partial_file)
    try:
        _fetch_whole(url, partial_file, timeout)
        _check(partial_file, checksum, url)
        partial_file.replace(target)
    finally:
        with suppress(FileNotFoundError):
            partial_file.replace(waiting)
    return target


def _fetch_whole(url: str, part: Path, timeout: float) -> None:
    """Fetch the rest of a partial file, and retry if the connection breaks."""
    trouble = ""
    for _ in range(_ATTEMPTS):
        try:
            _fetch_rest(url, part, timeout)
            return
        except HTTPError as error:
            if error.code != 416:
                raise DownloadError(f"{url}: the server responded with {error.code} {error.reason}") from None
            part.unlink()  # longer than the file on the server, so it belongs to another file
            trouble = "the server cannot continue the partial download"
        except (URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            trouble = "the server stopped sending data" if isinstance(reason, TimeoutError) else str(reason)
    raise DownloadError(f"{url}: {trouble} ({_ATTEMPTS} attempts)")


def _fetch_rest(url: str, part: Path, timeout: float) -> None:
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "mlca", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with urlopen(Request(url, headers=headers), timeout=timeout) as answer:
        if have and not _continues(answer, have):
            have = 0  # the server sends the file from its beginning
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length and length.isdigit() else None
        with part.open("ab" if have else "wb") as file, _progress(url, have, total) as advance:
            while block := answer.read1(_BLOCK):
                file.write(block)
                have += len(block)
                advance(len(block))
                if have > _LARGEST:
                    part.unlink()
                    raise DownloadError(f"{url}: more than {_LARGEST} bytes; this is not the expected file")
    if total is not None and have < total:
        raise http.client.IncompleteRead(b"", total - have)


def _continues(answer: http.client.HTTPResponse, have: int) -> bool:
    """Return whether a response continues at the end of the partial file."""
    return answer.status == 206 and (answer.headers.get("Content-Range") or "").startswith(f"bytes {have}-")


def _check(part: Path, checksum: str | None, url: str) -> None:
    if checksum is None:
        return
    algorithm, _, expected = checksum.partition(":")
    with part.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
    if found != expected:
        part.unlink()
        raise DownloadError(f"{url}: the {algorithm} checksum of the download is {found}; expected {expected}")


@contextmanager
def _progress(url: str, have: int, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, if rich is installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
    except ImportError:
        yield lambda _: None
        return
    with Progress(
        "{task.description}",
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task(url.rpartition("/")[2][:40], completed=have, total=total)
        yield lambda size: bar.advance(task, size)
