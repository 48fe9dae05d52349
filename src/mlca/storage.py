"""Models in files: a zip of .npy arrays and a JSON header, which can be read but never run.

A file holds `mlca.json` (what the file is, its format version, parameters, label and feature names, and the
recipe of the columns where the command line trained the model) and one `.npy` member an array of the
learner's state. Nothing is compressed, so a file cannot unfold into more than its own size; nothing is
pickled, so it cannot execute; every array is checked against the others before compiled code sees it. Files
of older format versions stay readable.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlca import __version__
from mlca.classifier import MLCA
from mlca.learner.similarity import Parameters
from mlca.learner.state import State, capture, restore, state_schema
from mlca.tables.recipe import Recipe, recipe_from_json
from mlca.targets import LabelSet

FORMAT = "mlca model"
VERSION = 1
HEADER = "mlca.json"


def save(model: MLCA, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file; a crash leaves the old file or the new one.

    Parameters
    ----------
    model : MLCA
        The model.
    path : path-like
        Where to; an existing file is replaced.
    """
    learner = model._learner
    header = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"mlca {__version__}",
        "parameters": _plain_parameters(model),
        "seed": learner.parameters.seed,
        "n_features": learner.n_features,
        "n_labels": learner.n_labels,
        "sparse": learner.sparse_nodes,
        "labels": [_plain_name(name) for name in model.labels_.names],
        "single": model.labels_.single,
        "feature_names": list(getattr(model, "feature_names_in_", [])),
    }
    recipe = recipe_of(model)
    if recipe is not None:
        header["recipe"] = recipe.to_json()
    state = capture(learner)
    _write_atomically(Path(path), header, state)


def load(path: str | os.PathLike[str]) -> MLCA:
    """Read a model that `MLCA.save` wrote; it goes on learning as the original would have.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    MLCA
        The model.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, is not a model, was written by a newer version, or contradicts itself.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mlca import MLCA, load
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.mlca"
    >>> MLCA().fit([[0.0], [1.0]], [{"low"}, {"high"}]).save(file)
    >>> load(file).partial_fit([[2.0]], [{"higher"}]).classes_.tolist()
    ['low', 'high', 'higher']
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(archive, path.stat().st_size)
            header = _read_header(archive)
            return _READERS[header["version"]](archive, header)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: not an mlca model, or cut short ({error})") from None
    except _BadModelError as error:
        raise ValueError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, EOFError) as error:
        raise ValueError(f"{path}: damaged or not written by mlca ({error})") from None
    except NotImplementedError as error:  # encrypted or exotic zip members
        raise ValueError(f"{path}: not written by mlca ({error})") from None


def recipe_of(model: MLCA) -> Recipe | None:
    """Return how a model's tables are read; None if it was not trained by the command line."""
    recipe: Recipe | None = vars(model).get("recipe_")
    if recipe is not None and recipe.layout.n_features != model.n_features_in_:
        return None  # the model was fitted anew, to other columns
    return recipe


def set_recipe(model: MLCA, recipe: Recipe) -> None:
    """Let a model remember how its tables are read; `save` keeps it and `load` brings it back."""
    model.__dict__["recipe_"] = recipe


class _BadModelError(ValueError):
    """A fault of a file that can be named in a sentence."""


def _write_atomically(path: Path, header: dict[str, Any], state: State) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(HEADER, json.dumps(header, indent=1, allow_nan=False))
                for name, array in state.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _flush_directory(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _flush_directory(directory: Path) -> None:
    """Make a rename survive a power failure, where the system can."""
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _plain_parameters(model: MLCA) -> dict[str, Any]:
    """Return constructor parameters as JSON has them; a generator object is not kept, its seed is."""
    plain = {}
    for name, value in model.get_params().items():
        if isinstance(value, np.generic):
            value = value.item()
        plain[name] = value if isinstance(value, str | int | float | None) else None
    return plain


def _plain_name(name: Any) -> Any:
    if isinstance(name, str | bool | int) or (isinstance(name, float) and np.isfinite(name)):
        return name
    raise ValueError(f"label {name!r} is a {type(name).__name__}; a file can hold labels that are strings or numbers")


def _check_members(archive: zipfile.ZipFile, file_size: int) -> None:
    members = archive.infolist()
    if HEADER not in archive.namelist():
        raise _BadModelError(f"a zip file without {HEADER}: not an mlca model")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise _BadModelError("has compressed members; mlca writes none")
    if len({member.filename for member in members}) < len(members):
        raise _BadModelError("has two members of one name")
    if sum(member.file_size for member in members) > file_size:
        raise _BadModelError("claims to hold more than the file's size")


def _read_header(archive: zipfile.ZipFile) -> dict[str, Any]:
    header = json.loads(archive.read(HEADER))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _BadModelError(f"{HEADER} does not describe an mlca model")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise _BadModelError(f"has no format version but {version!r}")
    if version > VERSION:
        raise _BadModelError(
            f"has format version {version}, written by {header.get('written_by')!r}; this is mlca {__version__}, "
            f"which reads up to version {VERSION}: upgrade mlca to open it"
        )
    return header


def _read_version_1(archive: zipfile.ZipFile, header: dict[str, Any]) -> MLCA:
    model = MLCA(**header["parameters"])
    model._check_parameters()
    names = {field: getattr(model, field) for field in Parameters.__dataclass_fields__ if field != "seed"}
    n_features = _whole(header, "n_features", 1)
    n_labels = _whole(header, "n_labels", 0)
    seed = _whole(header, "seed", 0)
    sparse_nodes = bool(header["sparse"])
    labels = LabelSet(tuple(_plain_name(name) for name in header["labels"]), bool(header["single"]))
    if len(labels.names) != n_labels or len(set(labels.names)) != n_labels:
        raise _BadModelError(f"names {len(labels.names)} labels, not {n_labels} different ones")
    state = _read_state(archive, sparse_nodes)
    model._learner = restore(Parameters(**names, seed=seed), n_features, n_labels, sparse_nodes, state)
    model.labels_ = labels
    model.n_features_in_ = n_features
    if header["feature_names"]:
        feature_names = np.array([str(name) for name in header["feature_names"]], dtype=object)
        if len(feature_names) != n_features:
            raise _BadModelError(f"names {len(feature_names)} features, not {n_features}")
        model.feature_names_in_ = feature_names
    if header.get("recipe") is not None:
        set_recipe(model, recipe_from_json(header["recipe"], n_features))
    return model


_READERS = {1: _read_version_1}


def _whole(header: dict[str, Any], name: str, smallest: int) -> int:
    value = header[name]
    if type(value) is not int or not smallest <= value < 2**31:
        raise _BadModelError(f"{name} is {value!r}")
    return value


def _read_state(archive: zipfile.ZipFile, sparse_nodes: bool) -> State:
    schema = state_schema(sparse_nodes)
    missing = [name for name in schema if f"{name}.npy" not in archive.namelist()]
    if missing:
        raise _BadModelError(f"lacks the array {missing[0]!r}")
    return {name: _read_array(archive, name, *kind) for name, kind in schema.items()}


def _read_array(archive: zipfile.ZipFile, name: str, dtype: str, n_dimensions: int) -> NDArray[Any]:
    """Read an array whose header tells the truth about its kind and size."""
    content = archive.read(f"{name}.npy")
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise _BadModelError(f"array {name!r} has an unknown .npy version")
        shape, fortran_order, found = np.lib.format.read_array_header_1_0(stream)
    except Exception as error:  # NumPy's parser passes on whatever its tokenizer raises
        raise _BadModelError(f"array {name!r} has no readable header ({error})") from None
    if found != np.dtype(dtype) or found.hasobject or fortran_order or len(shape) != n_dimensions:
        raise _BadModelError(f"array {name!r} is of another kind than mlca writes")
    size = len(content) - stream.tell()
    if any(n < 0 for n in shape) or int(np.prod([1, *shape], dtype=object)) * found.itemsize != size:
        raise _BadModelError(f"array {name!r} claims shape {shape} but holds {size} bytes")
    return np.frombuffer(content, found, offset=stream.tell()).reshape(shape)
