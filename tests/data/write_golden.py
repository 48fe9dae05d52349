"""Write the golden files and their predictions; run this once per format version."""

import json
from pathlib import Path

import numpy as np
from scipy import sparse

from mlca import MLCA
from mlca.model import set_extra
from mlca.storage import VERSION

HERE = Path(__file__).parent


def main():
    if (HERE / f"golden_v{VERSION}.json").exists():
        raise SystemExit(f"the golden files of version {VERSION} are there, and stay as they are")
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(0, 1, (120, 4)), 2)
    X[np.abs(X) < 0.5] = 0
    Y = [{name for name, x in zip(("a", "b", "c"), row, strict=False) if x > 0.5} for row in X]
    with_gaps = np.where(rng.random(X.shape) < 0.2, np.nan, np.round(X))
    streaming = {"recency": True, "drift": "follow"}
    models = {
        "dense": MLCA.published("MLCA", vigilance=0.3, n_neighbors=3, window=20).fit(X, Y),
        "sparse_clustered": MLCA.published("MLCA-C", vigilance=0.2, window=20, vote="frequencies").fit(
            sparse.csr_array(X), Y
        ),
        "waiting_individual": MLCA.published("MLCA-I").fit(X[:30], Y[:30]),
        "beyond": MLCA(vigilance=0.2, window=20).fit(X, Y),
        "beyond_streaming": MLCA(vigilance=0.2, window=20, **streaming).fit(X, Y),
        "beyond_f1_bounded": MLCA(window=20, max_nodes=40, objective="f1").fit(X, Y),
        "calibrated_streaming": MLCA(decision="calibrated", window=20, **streaming).fit(X, Y),
        "beyond_sparse_auto": MLCA(vigilance="auto", window=20).fit(sparse.csr_array(X), Y),
        "calibrated_bounded": MLCA(window=20, max_nodes=40, similarity="correntropy", decision="calibrated").fit(X, Y),
        "beyond_bayes": MLCA(window=20, decision="bayes").fit(X, Y),
        "beyond_cells": MLCA(window=20, search="cells").fit(X, Y),
        "mixed": MLCA(vigilance=0.2, window=20, categorical_features=[3]).fit(with_gaps, Y),
        "mixed_sparse_individual": MLCA(window=20, attributes="individual").fit(sparse.csr_array(with_gaps), Y),
    }
    answers = {}
    for name, model in models.items():
        set_extra(model, "note", {"of": name})
        model.save(HERE / f"golden_v{VERSION}_{name}.mlca")
        rows = X[::17]
        answers[name] = {
            "n_nodes": model.n_nodes_,
            "n_seen": model.n_seen_,
            "classes": model.classes_.tolist(),
            "rows": rows.tolist(),
            "proba": model.predict_proba(rows).tolist(),
        }
        model.partial_fit(rows, [{"new"}] * len(rows))
        answers[name]["proba_after"] = model.predict_proba(rows).tolist()
    (HERE / f"golden_v{VERSION}.json").write_text(json.dumps(answers, indent=1))


if __name__ == "__main__":
    main()
