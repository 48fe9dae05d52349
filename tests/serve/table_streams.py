"""A stream of table rows: numbers, categories, free text, dates, booleans, missing values, and late columns."""

import numpy as np
import pandas as pd

WORDS = ["printer", "screen", "keyboard", "password", "account", "invoice", "refund", "delivery", "crash", "update"]
SITES = ["A", "B", "C", "D"]


def make_table(n, start=0, seed=0, texts=True, late=True):
    """Return rows t0, t1, ...; a category is new from row 60 on, a column from row 90 on."""
    rows = []
    for number in range(start, start + n):
        rng = np.random.default_rng([seed, number])
        site = SITES[rng.integers(3)] if number < 60 or rng.random() < 0.7 else SITES[3]
        words = rng.choice(WORDS, 5).tolist()
        x = {"temp": round(float(rng.normal(10, 5)), 3), "site": site, "urgent": bool(rng.random() < 0.3)}
        if texts:
            x["note"] = " ".join(words)
        if rng.random() < 0.2:
            x["temp"] = None
        if rng.random() < 0.1:
            del x["site"]
        if late and number >= 90 and rng.random() < 0.5:
            x["height"] = float(rng.normal())
        labels = [name for name in ("printer", "invoice", "crash") if name in words]
        if x.get("site") in ("A", "D"):
            labels.append("north")
        rows.append({"id": f"t{number}", "x": x, "labels": labels})
    return rows


def frame_of(rows):
    """Return the rows as a DataFrame, with columns in the order of their first appearance."""
    names = dict.fromkeys(name for row in rows for name in sorted(row["x"]))
    return pd.DataFrame({name: pd.Series([row["x"].get(name) for row in rows], dtype=object) for name in names})
