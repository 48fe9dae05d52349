"""Parameter checks; their messages name the parameter, the expected and the actual value.

The checks are in this order: those that every estimator uses, categorical features, all parameters of MLCA, and
whether parameters have changed since training began.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache, wraps
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mlca.limits import MOST_JOBS, MOST_NEIGHBORS, MOST_NODES, MOST_SEED, MOST_TEXT_FEATURES, MOST_WINDOW
from mlca.messages import shown, warn
from mlca.options import CHOICES, COLUMN_KINDS, OBJECTIVES, decision_for, search_for, without_effect

Init = TypeVar("Init", bound=Callable[..., None])
Method = TypeVar("Method", bound=Callable[..., Any])

# Number of names that a message lists.
_SHOWN_NAMES = 5

_IS = {"above": operator.gt, "at least": operator.ge, "below": operator.lt, "at most": operator.le}


def check_real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> None:
    """Raise ValueError unless `value` is a finite number within the given bounds."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not _is_finite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    _check_bounds(name, value, {"above": above, "at least": at_least, "below": below, "at most": at_most})


def check_whole(name: str, value: Any, *, at_least: int | None = None, at_most: int | None = None) -> None:
    """Raise ValueError unless `value` is a whole number within the given bounds."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    _check_bounds(name, value, {"at least": at_least, "at most": at_most})


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise ValueError unless `value` is one of the words in `choices`."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, not {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, not {value!r}")


def read_threshold(threshold: Any, names: Sequence[Hashable]) -> float | NDArray[np.float64]:
    """Return a checked threshold: one for all labels, or one per label (default 0.5).

    Examples
    --------
    >>> read_threshold({"storm": 0.2}, ["calm", "storm"]).tolist()
    [0.5, 0.2]
    >>> read_threshold({"sun": 0.2}, ["calm", "storm"])
    Traceback (most recent call last):
        ...
    ValueError: threshold names the label 'sun', which the model does not know; it knows 'calm', 'storm'
    """
    if not isinstance(threshold, Mapping):
        with _hint("a mapping of labels to such numbers is also supported"):
            check_real("threshold", threshold, at_least=0, at_most=1)
        return float(threshold)
    column = {name: j for j, name in enumerate(names)}
    cuts = np.full(len(names), 0.5)
    for name, cut in threshold.items():
        if name not in column:
            known = [shown(repr(one)) for one in names[:_SHOWN_NAMES]] + ["..."] * (len(names) > _SHOWN_NAMES)
            problem = f"threshold names the label {shown(repr(name))}, which the model does not know"
            raise ValueError(f"{problem}; it knows {', '.join(known) or 'none yet'}")
        check_real(f"threshold of the label {shown(repr(name))}", cut, at_least=0, at_most=1)
        cuts[column[name]] = cut
    return cuts


def check_objective(objective: str, decision: str) -> None:
    """Raise ValueError unless the decision supports the objective."""
    check_choice("objective", objective, OBJECTIVES)
    if objective == "f1" and decision != "mixed":
        raise ValueError(
            'objective="f1" needs decision="mixed" with similarity="learned", which records the F1 that each threshold '
            "would have reached"
        )


def by_name(init: Init) -> Init:
    """Make a keyword-only constructor reject positional arguments with a helpful message."""

    @wraps(init)
    def checked(self: Any, *args: Any, **parameters: Any) -> None:
        if args:
            kind = type(self).__name__
            raise TypeError(
                f"{kind} takes its parameters by name, but got {args[0]!r:.40} without a name; "
                f"write for instance {kind}(vigilance=0.1)"
            )
        init(self, **parameters)

    return cast(Init, checked)


def rejects_sample_weight(method: Method) -> Method:
    """Make a training method reject sample weights with a message that shows the remedy."""

    @wraps(method)
    def checked(self: Any, X: Any, y: Any, *args: Any, **arguments: Any) -> Any:
        if arguments.pop("sample_weight", None) is not None:
            raise TypeError(
                "sample_weight is not supported, because each copy of a row must be predicted before it is learned; to "
                "favour a rare label, pass predict(X, threshold={label: 0.2}); rows that occurred several times may be "
                "repeated: rows = np.repeat(np.arange(len(X)), weights), then use X.iloc[rows] of a DataFrame or "
                "X[rows] of an array, and the same rows of y"
            )
        return method(self, X, y, *args, **arguments)

    return cast(Method, checked)


@contextmanager
def _hint(hint: str) -> Iterator[None]:
    """Append a hint to the message of a ValueError raised in the `with` block."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error}; {hint}") from None


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer with hundreds of digits
        return False


def _check_bounds(name: str, value: Any, bounds: dict[str, float | None]) -> None:
    given = {word: bound for word, bound in bounds.items() if bound is not None}
    if broken := {word for word, bound in given.items() if not _IS[word](value, bound)}:
        # Technical limits, such as 2^31, are mentioned only if they are exceeded.
        stated = {word: bound for word, bound in given.items() if word in broken or bound < 2**31}
        wanted = " and ".join(f"{word} {bound}" for word, bound in stated.items())
        raise ValueError(f"{name} must be {wanted}, not {value!r}")


def resolve_categories(columns: Any, n_features: int, names: Sequence[str] | None) -> tuple[int, ...]:
    """Return the indices of the categorical columns, ascending.

    Parameters
    ----------
    columns : "from_dtype", None, or sequence of bool, int or str
        A mask has one entry per column. None and "from_dtype" select no columns: `mlca.tables` reads dtypes itself.
    n_features : int
        The number of columns.
    names : sequence of str or None
        The names of the columns, if they have any.

    Returns
    -------
    tuple of int

    Raises
    ------
    ValueError
        If a column does not exist, or is given by name although the columns have no names.

    Examples
    --------
    >>> resolve_categories(["colour"], 3, ["size", "colour", "price"])
    (1,)
    >>> resolve_categories([True, False, True], 3, None)
    (0, 2)
    >>> resolve_categories([3], 3, None)
    Traceback (most recent call last):
        ...
    ValueError: categorical_features names column 3; X has 3 columns, numbered from 0
    """
    if columns is None or (isinstance(columns, str) and columns == "from_dtype"):
        return ()
    entries = _entries(columns)
    if entries and all(isinstance(entry, bool) for entry in entries):
        if len(entries) != n_features:
            raise ValueError(f"categorical_features is a mask of {len(entries)} columns; X has {n_features}")
        return tuple(column for column, flag in enumerate(entries) if flag)
    return tuple(sorted({_column(entry, n_features, names) for entry in entries}))


def check_categories(columns: Any) -> None:
    """Raise ValueError unless `columns` is a valid value of `categorical_features`."""
    if columns is not None and not (isinstance(columns, str) and columns == "from_dtype"):
        _entries(columns)


def require_same_categories(before: tuple[int, ...], now: tuple[int, ...]) -> None:
    """Raise ValueError if the categorical columns differ from those of earlier training."""
    if now != before:
        raise ValueError(
            f"categorical_features were columns {list(before)} when training began and are {list(now)} now; "
            "training continues with the old ones only: restore them, or call fit to start again"
        )


def _entries(columns: Any) -> list[bool | int | str]:
    listed = columns.tolist() if isinstance(columns, np.ndarray) else columns
    if isinstance(listed, list | tuple):
        entries = [entry.item() if isinstance(entry, np.generic) else entry for entry in listed]
        kinds = {type(entry) for entry in entries}
        if len(kinds) <= 1 and kinds <= {bool, int, str}:
            return entries
    raise ValueError(
        f'categorical_features is {columns!r:.80}: pass columns by index, by name or as a mask, "from_dtype" or None'
    )


def _column(entry: bool | int | str, n_features: int, names: Sequence[str] | None) -> int:
    if isinstance(entry, str):
        if names is None:
            raise ValueError(f"categorical_features names {entry!r}, but X has no column names: pass column indices")
        if entry not in names:
            raise ValueError(f"categorical_features names {entry!r}, which is not among the columns of X")
        return list(names).index(entry)
    if not 0 <= entry < n_features:
        raise ValueError(f"categorical_features names column {entry}; X has {n_features} columns, numbered from 0")
    return int(entry)


def check_parameters(settings: Mapping[str, Any], defaults: Any) -> None:
    """Raise ValueError on an invalid parameter of MLCA; warn of parameters without effect."""
    vigilance = settings["vigilance"]
    if not isinstance(vigilance, str) or vigilance != "auto":
        with _hint('"auto" estimates it from the first rows'):
            check_real("vigilance", vigilance, at_least=0, below=1)
    check_whole("n_neighbors", settings["n_neighbors"], at_least=2, at_most=MOST_NEIGHBORS)
    check_whole("window", settings["window"], at_least=2, at_most=MOST_WINDOW)
    check_real("smoothing", settings["smoothing"], above=0)
    for name, words in CHOICES.items():
        check_choice(name, settings[name], words)
    check_flag("recency", settings["recency"])
    check_flag("verbose", settings["verbose"])
    if settings["max_nodes"] is not None:
        with _hint("leave it out to keep all nodes"):
            check_whole("max_nodes", settings["max_nodes"], at_least=2, at_most=MOST_NODES)
    if settings["decision"] == "bayes" and (settings["recency"] or settings["drift"] != "off"):
        raise ValueError('recency and drift="follow" need decision="mixed" or "calibrated"')
    check_objective(settings["objective"], decision_for(settings["decision"], settings["similarity"]))
    check_categories(settings["categorical_features"])
    _check_kinds(settings["columns"])
    check_whole("text_features", settings["text_features"], at_least=1, at_most=MOST_TEXT_FEATURES)
    check_whole("epochs", settings["epochs"], at_least=1)
    if settings["n_jobs"] is not None:
        check_n_jobs(settings["n_jobs"])
    if isinstance(settings["random_state"], int | np.integer):
        check_whole("random_state", settings["random_state"], at_least=0, at_most=MOST_SEED)
    for name in without_effect(settings):
        if settings[name] != getattr(defaults, name):
            given = f"{name}={settings[name]!r}"
            warn(f'{given} has no effect unless decision="bayes": choose that, or leave it at its default')


def _check_kinds(columns: Any) -> None:
    if columns is None:
        return
    if not isinstance(columns, Mapping):
        raise ValueError(f'`columns` must map names to kinds, such as {{"notes": "text"}}, not {columns!r:.80}')
    for name, kind in columns.items():
        if not isinstance(name, str) or kind not in COLUMN_KINDS:
            raise ValueError(f"`columns` maps {name!r:.40} to {kind!r:.40}; expected one of {', '.join(COLUMN_KINDS)}")


def check_n_jobs(n_jobs: Any) -> None:
    """Raise ValueError unless `n_jobs` is a valid number of threads."""
    check_whole("n_jobs", n_jobs, at_least=-MOST_JOBS, at_most=MOST_JOBS)
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of threads, or -1 for one per core, not 0")


def require_same_parameters(settings: Any, learned: Any) -> None:
    """Raise ValueError if the settings of a model differ from those when training began.

    Parameters
    ----------
    settings : object
        A model; its parameters are attributes.
    learned : dataclass instance
        The parameters of its learner.
    """
    names, values_of = _compared(learned.__class__)
    decision, search = settings.decision, settings.search
    if decision != learned.decision:
        decision = decision_for(decision, settings.similarity)
    if search != learned.search:
        search = search_for(search, settings.similarity, settings.drift)
    if values_of(settings) == values_of(learned) and (decision, search) == (learned.decision, learned.search):
        return
    now_of = dict(zip(names, values_of(settings), strict=True)) | {"decision": decision, "search": search}
    for name, now in now_of.items():
        before = getattr(learned, name)
        if name == "vigilance" and before is None:
            before = "auto"
        if isinstance(before, float) and not isinstance(now, int) and isinstance(now, Real):
            now = float(now)  # converted as in the first call, which rounds Fraction(1, 3), for example
        if now != before:
            raise ValueError(
                f"{name} was {before!r} when training began and is {now!r} "
                "now; training continues with the old value only: restore it, or call fit to start again"
            )


@cache
def _compared(kind: Any) -> tuple[tuple[str, ...], operator.attrgetter[tuple[Any, ...]]]:
    """Return the names of the parameters to compare, and a function that reads their values.

    The seed is left out because it is drawn once, categories because `require_same_categories` compares them, and
    `decision` and `search` because their values also depend on other parameters.
    """
    others = {"seed", "categorical_features", "decision", "search"}
    names = tuple(field.name for field in fields(kind) if field.name not in others)
    return names, operator.attrgetter(*names)
