"""Download of datasets from OpenML with scikit-learn, and conversion to Mulan files."""

from __future__ import annotations

import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from sklearn.datasets import fetch_openml

from mlca.replacing import replacing


def fetch_from_openml(name: str, version: int, folder: Path, *, timeout: float = 30.0) -> None:
    """Fetch a numeric dataset from OpenML and write it as ``<name>-openml.arff`` and ``.xml``.

    Parameters
    ----------
    name, version : str, int
        The dataset's name and version on OpenML. Its targets must be the labels, as TRUE or FALSE.
    folder : Path
        The target folder.
    timeout : float, default=30.0
        Seconds without data before the download fails.

    Raises
    ------
    OSError or ValueError
        If OpenML cannot be reached or its response is invalid.
    """
    found = _ask(name, version, timeout)
    X = np.asarray(found.data, dtype=np.float64)
    Y = np.asarray(found.target).reshape(len(X), -1)
    if not np.isin(Y, ("FALSE", "TRUE")).all():
        raise ValueError(f"OpenML's dataset {name!r}, version {version}, has targets other than TRUE and FALSE")
    folder.mkdir(parents=True, exist_ok=True)
    labels = "".join(f"<label name={quoteattr(label)}/>\n" for label in found.target_names)
    written = {"xml": f"<labels>\n{labels}</labels>\n", "arff": _as_arff(name, X, Y == "TRUE", found)}
    for suffix, text in written.items():
        with replacing(folder / f"{name}-openml.{suffix}") as file:
            file.write(text.encode())


def _ask(name: str, version: int, timeout: float) -> Any:
    with _socket_timeout(timeout), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example about retries; the final error gives the reason
        try:
            return fetch_openml(
                name=name,
                version=version,
                cache=False,
                as_frame=False,
                parser="liac-arff",
                n_retries=1,
                delay=0.1,
            )
        except (LookupError, TypeError) as error:  # scikit-learn does not check the response
            raise ValueError(f"OpenML's response for {name!r} is invalid ({error!r})") from None


def _as_arff(name: str, X: Any, Y: Any, found: Any) -> str:
    header = [f"@attribute {_quoted(feature)} numeric" for feature in found.feature_names]
    header += [f"@attribute {_quoted(label)} {{0,1}}" for label in found.target_names]
    rows = (
        ",".join("?" if np.isnan(value) else repr(float(value)) for value in values)
        + "".join(f",{flag:d}" for flag in flags)
        for values, flags in zip(X, Y, strict=True)
    )
    return "\n".join([f"@relation {_quoted(name)}", *header, "@data", *rows, ""])


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@contextmanager
def _socket_timeout(seconds: float) -> Iterator[None]:
    """Set a timeout for all new connections, because scikit-learn has no such option."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
