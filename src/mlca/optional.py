"""Optional packages, and the message when one of them is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def install(extra: str) -> str:
    """Return the command that brings an extra."""
    return f'pip install "mlca[{extra}]"'


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Let imports that fail say who needs them, and how they are had.

    Parameters
    ----------
    what : str
        Who needs the packages that are imported inside, such as "mlca.river".
    extra : str
        The extra of mlca that brings them.

    Examples
    --------
    >>> with needing("the forecast", "weather"):
    ...     import no_such_package
    Traceback (most recent call last):
    ImportError: the forecast needs no_such_package: pip install "mlca[weather]"
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package == "mlca":  # a mistake of ours: nothing that can be installed would mend it
            raise
        missing = package or f"a package that cannot be imported ({error})"
        raise ImportError(f"{what} needs {missing}: {install(extra)}", name=error.name) from None


def in_pandas(table: Any) -> Any:
    """Return a table of polars, Arrow or Dask as one of pandas, anything else as it is; it is computed if need be."""
    if not hasattr(type(table), "columns"):
        return table
    if hasattr(table, "compute"):
        table = table.compute()
    elif type(table).__name__ == "LazyFrame":  # of polars; what others collect are lists
        table = table.collect()
    if not hasattr(table, "to_pandas"):
        return table
    with needing("a table of polars or Arrow", "frames"):
        return table.to_pandas()
