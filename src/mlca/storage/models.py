"""Conversion of models to headers and arrays, and back."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import asdict, fields
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np

from mlca import __version__
from mlca.learner.checking import (
    PERSISTENCE_ARRAYS,
    State,
    capture,
    check_one_label_each,
    require_countable,
    restore,
    state_schema,
)
from mlca.learner.core import n_labels_of
from mlca.learner.parameters import Parameters
from mlca.limits import MOST_SEED
from mlca.model import LearnedModel, extras_of
from mlca.replacing import replacing
from mlca.storage.archive import HEADER, checksum, read_archive, read_array, read_json, write_archive
from mlca.targets import Form, LabelSet

Kind = TypeVar("Kind", bound=LearnedModel)

FORMAT = "mlca model"
VERSION = 6


def write_model(model: LearnedModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file; a crash leaves either the old file or the new one.

    Parameters
    ----------
    model : LearnedModel
        The model.
    path : path-like
        The file; an existing one is replaced. If it is a link, its target is replaced.
    """
    learner = model._learner
    settings, parameters = _plain_settings(model), asdict(learner.parameters)
    _read_settings(settings, type(model))  # raises on settings that `read_model` would reject
    _read_parameters(parameters, type(model))
    state = capture(learner)
    require_countable(int(state["tally"][1]), learner.parameters)
    labels = model._labels.first(n_labels_of(state))  # another thread may have added labels
    # The column names of a model trained on tables are in the extras.
    names = () if model._reads_tables else getattr(model, "feature_names_in_", ())
    header = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"mlca {__version__}",
        "parameters": settings,
        "resolved": parameters,
        "n_features": learner.n_features,
        "n_labels": len(labels.names),
        "sparse": learner.sparse_nodes,
        "labels": [_plain_name(name) for name in labels.names],
        "single": labels.single,
        "form": labels.form,
        "feature_names": [str(name) for name in names],
        "extras": extras_of(model),
    }
    header["checksum"] = checksum(header, state)
    with replacing(path) as file:
        write_archive(file, header, state)


def read_model(path: str | os.PathLike[str], kind: type[Kind]) -> Kind:
    """Read a model that `write_model` wrote.

    Parameters
    ----------
    path : path-like
        The file.
    kind : type of LearnedModel
        The class of the model; its constructor takes the parameters in the file and checks them.

    Returns
    -------
    LearnedModel
        The model, an instance of `kind`.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file is damaged, is not a model, was written by a newer version, or is inconsistent.
    """
    path = Path(path)
    mode = path.stat().st_mode  # before opening, because opening a FIFO waits for its writer
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ValueError(f"{path} is a device or a FIFO, not a model file")
    with path.open("rb") as file:
        try:
            return _read_model(read_archive(file), kind)
        except OSError:
            raise
        except MemoryError:
            raise ValueError(f"{path}: needs more memory than is available") from None
        except Exception as error:  # a forged file may cause any error; callers get one type
            raise ValueError(f"{path}: {error}") from None


def _read_model(members: dict[str, bytes], kind: type[Kind]) -> Kind:
    if HEADER not in members:
        raise ValueError(f"a zip file without {HEADER}: not an mlca model")
    header = read_json(members.pop(HEADER))
    version = _check_version(header)
    sparse_nodes = _field(header, "sparse", bool)
    upgraded = header
    for upgrade in _UPGRADES[version - 1 :]:
        upgraded = upgrade(upgraded)
    model = _read_settings(_field(upgraded, "parameters", dict), kind)
    parameters = _read_parameters(_field(upgraded, "resolved", dict), kind)
    schema = state_schema(parameters, sparse_nodes)
    added = PERSISTENCE_ARRAYS.keys() & schema.keys() if version < 6 else set()
    state = _read_state(members, {name: kind for name, kind in schema.items() if name not in added})
    if version > 1 and header.get("checksum") != checksum(header, state):
        raise ValueError("the checksum is wrong: the file is damaged, or was assembled from several files")
    if added:
        state |= _no_persistence(len(state["decision.totals"]))
    header = upgraded
    n_features, n_labels = _whole(header, "n_features"), _whole(header, "n_labels")
    labels = _read_labels(header)
    if len(labels.names) != n_labels or len(set(labels.names)) != n_labels:
        raise ValueError(f"has {len(labels.names)} label names; expected {n_labels} different names")
    model._learner = restore(parameters, n_features, n_labels, sparse_nodes, state)
    if model._learner.n_seen == 0:
        raise ValueError("contains no rows, learned or waiting")
    if labels.single:
        check_one_label_each(state)
    model.labels_ = labels
    model.n_features_in_ = n_features
    feature_names = _field(header, "feature_names", list)
    if feature_names:
        if len(feature_names) != n_features or not all(isinstance(name, str) for name in feature_names):
            raise ValueError(f"has {len(feature_names)} feature names; expected {n_features}, all of them strings")
        model.feature_names_in_ = np.array(feature_names, dtype=object)
    extras = _field(header, "extras", dict)
    if extras:
        model.__dict__["extras_"] = extras
    return model


def _check_version(header: dict[str, Any]) -> int:
    if header.get("format") != FORMAT:
        raise ValueError(f"{HEADER} does not describe an mlca model")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"has the invalid format version {version!r:.80}")
    if version > VERSION:
        raise ValueError(
            f"has format version {version}, written by {header.get('written_by')!r:.80}; this is mlca {__version__}, "
            f"which reads up to version {VERSION}: upgrade mlca to open it"
        )
    return version


def _from_version_1(header: dict[str, Any]) -> dict[str, Any]:
    """Convert a header of version 1 to 2, which adds resolved parameters and extras."""
    settings = _field(header, "parameters", dict)
    used = {field.name: settings[field.name] for field in fields(Parameters) if field.name in settings}
    recipe = header.get("recipe")
    return {
        **header,
        "form": None,
        "resolved": {**used, "seed": header.get("seed")},
        "extras": {} if recipe is None else {"recipe": recipe},
    }


# Values of parameters that were added in version 3: earlier models behave as with these values.
_PUBLISHED = {"similarity": "correntropy", "decision": "bayes", "recency": False, "drift": "off", "max_nodes": None}
_PUBLISHED_SETTINGS = _PUBLISHED | {"categorical_features": None}
_PUBLISHED_PARAMETERS = _PUBLISHED | {"categorical_features": []}


def _from_version_2(header: dict[str, Any]) -> dict[str, Any]:
    """Convert a header of version 2 to 3; models of version 2 use the paper's algorithm."""
    return {
        **header,
        "parameters": _PUBLISHED_SETTINGS | _field(header, "parameters", dict),
        "resolved": _PUBLISHED_PARAMETERS | _field(header, "resolved", dict),
    }


def _from_version_3(header: dict[str, Any]) -> dict[str, Any]:
    """Convert a header of version 3 to 4, which adds `objective`; earlier models use "exact"."""
    return {**header, "parameters": {"objective": "exact"} | _field(header, "parameters", dict)}


def _from_version_4(header: dict[str, Any]) -> dict[str, Any]:
    """Convert a header of version 4 to 5, which adds `search`; earlier models use "exact"."""
    exact = {"search": "exact"}
    parameters, resolved = (exact | _field(header, name, dict) for name in ("parameters", "resolved"))
    return {**header, "parameters": parameters, "resolved": resolved}


# Conversions from each version to the next, oldest first.
_UPGRADES: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (
    _from_version_1,
    _from_version_2,
    _from_version_3,
    _from_version_4,
)


def _no_persistence(n_slots: int) -> State:
    """Return the arrays that version 6 added, with their values before the first row."""
    return {
        "persistence.rows": np.zeros(1, "<i8"),
        "persistence.counts": np.zeros((n_slots, 3), "<i8"),
        "persistence.last": np.zeros(0, "<i4"),
    }


def _read_state(members: dict[str, bytes], schema: dict[str, tuple[str, int]]) -> State:
    for name in schema:
        if f"{name}.npy" not in members:
            raise ValueError(f"lacks the array {name!r}")
    foreign = members.keys() - {f"{name}.npy" for name in schema}
    if foreign:
        raise ValueError(f"has a member {min(foreign)!r:.80}, which models do not have")
    return {name: read_array(members.pop(f"{name}.npy"), name, *kind) for name, kind in schema.items()}


def _read_settings(parameters: dict[str, Any], kind: type[Kind]) -> Kind:
    """Return an untrained model with the settings in a header."""
    model = _new_model(parameters, kind)
    seed = model.random_state
    if seed is not None and type(seed) is not int:
        raise ValueError(f"random_state is {seed!r:.80}; expected None or a whole number")
    return model


def _read_parameters(parameters: dict[str, Any], kind: type[LearnedModel]) -> Parameters:
    """Return the learner's checked parameters, as resolved from the user's settings."""
    names = {field.name for field in fields(Parameters)}
    if parameters.keys() != names:
        raise ValueError(f"has unexpected resolved parameters: {', '.join(sorted(map(repr, parameters)))[:200]}")
    seed, settings = parameters["seed"], {name: parameters[name] for name in names - {"seed"}}
    if type(seed) is not int or not 0 <= seed <= MOST_SEED:
        raise ValueError(f"seed is {seed!r:.80}; expected a whole number from 0 to {MOST_SEED}")
    found = settings["vigilance"] is None
    _new_model(settings | {"vigilance": "auto"} if found else settings, kind)
    reals = {name: float(settings[name]) for name in ("vigilance", "smoothing") if settings[name] is not None}
    return Parameters(**settings | reals | {"categorical_features": _columns(settings)}, seed=seed)


def _columns(settings: dict[str, Any]) -> tuple[int, ...]:
    """Return the indices of the categorical columns; raise ValueError if they do not ascend."""
    columns = settings["categorical_features"]
    if not isinstance(columns, list | tuple) or any(type(column) is not int for column in columns):
        raise ValueError(f"categorical_features must be a list of whole numbers, not {columns!r:.80}")
    if any(a >= b for a, b in pairwise(columns)):
        raise ValueError("categorical_features must be in ascending order")
    return tuple(columns)


def _new_model(parameters: dict[str, Any], kind: type[Kind]) -> Kind:
    """Return an untrained model; raise ValueError on unknown or invalid parameters."""
    unknown = parameters.keys() - kind().get_params().keys()
    if unknown:
        raise ValueError(f"has the parameter {min(unknown)!r:.80}, which {kind.__name__} does not have")
    model = kind(**parameters)
    model._check_parameters()
    return model


def _field(header: dict[str, Any], name: str, kind: type) -> Any:
    value = header.get(name)
    if type(value) is not kind:
        raise ValueError(f"{name} in {HEADER} is {value!r:.80}; expected a value of type {kind.__name__}")
    return value


def _whole(header: dict[str, Any], name: str) -> int:
    value: int = _field(header, name, int)
    if not 0 <= value < 2**31:
        raise ValueError(f"{name} is {value!r:.80}; expected a whole number from 0 to {2**31 - 1}")
    return value


def _plain_settings(model: LearnedModel) -> dict[str, Any]:
    """Return constructor parameters as JSON; a random generator is stored as None.

    `verbose` is not stored: it is not part of the model and unknown to earlier versions.
    """
    plain = {}
    for name, value in model.get_params().items():
        if name == "verbose":
            continue
        if isinstance(value, np.generic):
            value = value.item()
        if not isinstance(value, int) and isinstance(value, Real):  # such as a fraction
            value = float(value)
        if name == "categorical_features":
            value = _plain_columns(value)
        if name == "columns" and value is not None:
            value = dict(value)
        plain[name] = value if isinstance(value, str | int | float | list | dict | None) else None
    return plain


def _plain_columns(columns: Any) -> Any:
    """Return the parameter `categorical_features` as JSON."""
    if isinstance(columns, np.ndarray):
        return columns.tolist()
    if isinstance(columns, list | tuple):
        return [column.item() if isinstance(column, np.generic) else column for column in columns]
    return columns


def _read_labels(header: dict[str, Any]) -> LabelSet:
    names, single, form = _field(header, "labels", list), _field(header, "single", bool), header.get("form")
    if form not in (None, *get_args(Form)) or (single and form is not None):
        raise ValueError(f"has the unknown label form {form!r:.80}")
    if not single and any(isinstance(name, float) for name in names):
        raise ValueError("has a fraction as a label name; expected text or a whole number")
    return LabelSet(tuple(map(_plain_name, names)), single, form)


def _plain_name(name: Any) -> Any:
    if isinstance(name, str | bool | int) or (isinstance(name, float) and np.isfinite(name)):
        return name
    raise ValueError(f"label {name!r:.80} is a {type(name).__name__}; only strings and numbers can be saved as labels")
