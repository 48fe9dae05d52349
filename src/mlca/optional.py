"""Optional packages, and the message when one of them is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def install(extra: str) -> str:
    """Return the command that installs an optional extra of mlca."""
    return f'pip install "mlca[{extra}]"'


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Add the command that installs a package to the error if its import fails in the block.

    Parameters
    ----------
    what : str
        The feature that needs the imported packages, such as "mlca.river".
    extra : str
        The extra of mlca that installs the packages.

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
        if package == "mlca":  # an error in mlca itself, which no installation would fix
            raise
        missing = package or f"a package that cannot be imported ({error})"
        raise ImportError(f"{what} needs {missing}: {install(extra)}", name=error.name) from None


def in_pandas(table: Any) -> Any:
    """Return a polars, Arrow or Dask table as a pandas table; anything else unchanged."""
    if not hasattr(type(table), "columns"):  # class lookup, because a column may be called "compute"
        return table
    if hasattr(type(table), "compute"):
        table = table.compute()
    elif type(table).__name__ == "LazyFrame":  # by name, because `collect` of other types returns lists
        table = table.collect()
    if not hasattr(type(table), "to_pandas"):
        return table
    with needing("a table of polars or Arrow", "frames"):
        return table.to_pandas()
