"""Smoke test of a wheel in an environment with only its requirements: `python tests/smoke.py`.

`make check-wheel` and the release run it in an empty environment.
"""

import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    import numpy as np

    import mlca
    from mlca import MLCA, kernels, load

    sources = Path(__file__).parents[1] / "src"  # only src: the environment itself may be inside the checkout
    assert sources not in Path(mlca.__file__).parents, "these are the checkout's sources, not what was installed"
    assert version("mlca") == mlca.__version__
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (200, 3)), rng.normal(9, 1, (200, 3))])
    model = MLCA(n_jobs=2)
    model.partial_fit(X[:200], [{"calm"}] * 200)
    model.partial_fit(X[200:], [{"storm", "alarm"}] * 200)
    assert model.predict_labels([[9, 9, 9], [0, 0, 0]]) == [{"storm", "alarm"}, {"calm"}]
    assert "storm" in str(model.explain([9, 9, 9]))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "weather.mlca")
        model.save(file)
        np.testing.assert_array_equal(load(file).predict_proba(X), model.predict_proba(X))
        inspected = subprocess.run(
            [sys.executable, "-m", "mlca", "inspect", str(file)], capture_output=True, check=True
        )
        assert b"storm" in inspected.stdout, inspected.stdout
    for level in kernels.available():  # all levels that this processor supports, not only the best
        kernels.load_level(level)
    print(f"mlca {mlca.__version__} on Python {sys.version.split()[0]}, levels {', '.join(kernels.available())}: works")


if __name__ == "__main__":
    main()
