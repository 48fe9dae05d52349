"""The function `load_dataset`, which loads a dataset by name and downloads it if needed."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from mlca.datasets.catalogue import Entry, entry_of
from mlca.datasets.locations import fetch, find, manual_download
from mlca.datasets.table import LabelledTable
from mlca.optional import needing

Subset: TypeAlias = Literal["all", "train", "test"]


def load_dataset(name: str, *, subset: Subset = "all", as_frame: bool = False) -> Bunch:
    """Load a benchmark dataset by name.

    The function looks in the folder that the environment variable ``MLCA_DATA`` names, then in the cache. If the
    dataset is in neither, it is downloaded into the cache.

    Parameters
    ----------
    name : str
        A name in the catalogue; ``mlca datasets list`` shows all names.
    subset : {"all", "train", "test"}, default="all"
        All rows, or one part of the official split, if there is one.
    as_frame : bool, default=False
        Whether to return X and Y as pandas data frames, with sparse columns if the rows are sparse.

    Returns
    -------
    Bunch
        - ``X`` : ndarray or csr_array of float64, sparse if the file is and this takes less memory; missing values
          are NaN
        - ``Y`` : csr_array of uint8, one column per label
        - ``feature_names``, ``label_names`` : lists of str
        - ``categorical`` : ndarray of bool, True for categorical features
        - ``categories`` : dict, the values of nominal features in the order of their codes
        - ``split`` : row indices of the train and of the test part; None if there is no official split, or if
          `subset` selects one part of it
        - ``name``, ``DESCR`` : str, the latter with source, citation and notes

    Raises
    ------
    ValueError
        If there is no such dataset or part, or if a file is damaged.
    DownloadError
        If the dataset is missing and cannot be downloaded.

    Examples
    --------
    >>> from mlca.datasets import load_dataset
    >>> load_dataset("emotion")
    Traceback (most recent call last):
        ...
    ValueError: no dataset is called 'emotion'; there are flags, emotions, birds, ...
    """
    if subset not in get_args(Subset):
        raise ValueError(f"`subset` must be one of {', '.join(map(repr, get_args(Subset)))}; got {subset!r}")
    entry = entry_of(name)
    if subset != "all" and not entry.official_split:
        raise ValueError(f"{entry.name} has no official split; load all of it and split it yourself")
    table = _load_all(entry)
    if subset != "all":
        if table.split is None:
            raise ValueError(f"the files of {entry.name} do not contain its official split. {manual_download(entry)}")
        table = table.rows(table.split[subset == "test"])
    return _bunch(entry, table, as_frame=as_frame)


def _load_all(entry: Entry) -> LabelledTable:
    found = find(entry)
    if found is None:
        fetch(entry)
        found = find(entry)
    if found is None:
        raise ValueError(f"{entry.name} was downloaded, but a file is missing. {manual_download(entry)}")
    layout, paths = found
    table = layout.read(paths).without(entry.drop)
    shape = (*table.X.shape, table.Y.shape[1])
    if shape != entry.shape:
        raise ValueError(
            f"{entry.name} in {next(iter(paths.values())).parent} has {shape[0]} rows, {shape[1]} features "
            f"and {shape[2]} labels; expected {entry.shape}. It is another dataset, or damaged: remove it"
        )
    return table


def _bunch(entry: Entry, table: LabelledTable, *, as_frame: bool) -> Bunch:
    n_features, n_labels = table.X.shape[1], table.Y.shape[1]
    feature_names = list(table.feature_names or (f"x{column}" for column in range(n_features)))
    label_names = list(table.label_names or (f"y{column}" for column in range(n_labels)))
    declared = np.zeros(n_features, bool) if table.categorical is None else table.categorical
    categorical = {"declared": declared, "all": np.ones(n_features, bool), "none": np.zeros(n_features, bool)}
    X = _smaller(table.X)
    return Bunch(
        X=_frame(X, feature_names) if as_frame else X,
        Y=_frame(table.Y, label_names) if as_frame else table.Y,
        feature_names=feature_names,
        label_names=label_names,
        categorical=categorical[entry.categorical],
        categories=dict(table.categories),
        split=table.split if entry.official_split else None,
        name=entry.name,
        DESCR=_describe(entry),
    )


def _smaller(X: Any) -> Any:
    """Return rows as a dense array if that takes less memory, as for data with few zeros."""
    if not sparse.issparse(X):
        return X
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.toarray() if X.dtype.itemsize * X.shape[0] * X.shape[1] <= size else X


def _frame(matrix: Any, names: list[str]) -> Any:
    with needing("as_frame=True", "frames"):
        import pandas as pd
    if sparse.issparse(matrix):
        return pd.DataFrame.sparse.from_spmatrix(matrix, columns=names)  # type: ignore[attr-defined]
    return pd.DataFrame(matrix, columns=names)


def _describe(entry: Entry) -> str:
    lines = [f"{entry.name}: {entry.title}.", f"Source: {entry.source}", f"Cite: {entry.citation}"]
    return "\n".join([*lines, f"Note: {entry.note}"] if entry.note else lines)
