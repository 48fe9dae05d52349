"""Every classifier of the package, with parameters suitable for small data."""

from __future__ import annotations

from typing import Any

from mlca import MLCA
from mlca.base import StreamClassifier
from mlca.peers import GLOCAL, MCIC, MLODM, MLkNN, MLSAkNN, MuENL

CLASSIFIERS: dict[str, Any] = {
    "MLCA()": MLCA(window=10),
    "MLCA() of streams": MLCA(window=10, recency=True, drift="follow", max_nodes=50),
    "MLCA": MLCA.published("MLCA", n_neighbors=3, window=10),
    "MLCA-I": MLCA.published("MLCA-I", n_neighbors=3, window=10),
    "MLCA-C": MLCA.published("MLCA-C", n_neighbors=3, window=10),
    "MLkNN": MLkNN(k=3),
    "MLSAkNN": MLSAkNN(m_max=40, k_adj_max=10, m_min=10),
    "MCIC": MCIC(theta=0.1, initial_labels=2),
    "MuENL": MuENL(sweeps=3, n_trees=10),
    "MLODM": MLODM(),
    "GLOCAL": GLOCAL(k=3, rank=3, max_rounds=3, max_steps=10),
}
STREAM_CLASSIFIERS = [name for name, model in CLASSIFIERS.items() if isinstance(model, StreamClassifier)]
