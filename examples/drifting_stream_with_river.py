"""Follow a drifting stream with River: sensors of a machine, faults as labels.

The load of the machine increases, so its sensors move into new ranges. After a third of the stream a new fault appears,
which is hardly visible in the pressure. After two thirds a flow meter is added, which shows the fault clearly. The
model is not prepared for these changes: it predicts each row, then learns it. It keeps what it learned earlier.
"""

from collections.abc import Iterator

import numpy as np
from river import metrics

from mlca.river import MLCAClassifier

N_ROWS = 9_000
SHOWN_EVERY = 1_000
Row = tuple[dict[str, float], dict[str, bool]]


def machine(seed: int = 0) -> Iterator[Row]:
    """Yield rows of sensor values and the faults behind them."""
    rng = np.random.default_rng(seed)
    for number in range(N_ROWS):
        load = rng.normal(20 + 80 * number / N_ROWS, 5)
        overheated, worn, leak = rng.random(3) < (0.25, 0.15, 0.2)
        x = {
            "load": load,
            "temperature": 40 + 0.4 * load + 12 * overheated + rng.normal(0, 2),
            "vibration": 10 + 0.2 * load + 8 * worn + rng.normal(0, 1),
            "pressure": 80.0 + rng.normal(0, 2),
        }
        y = {"overheated": bool(overheated), "worn bearing": bool(worn)}
        if number >= N_ROWS // 3:
            x["pressure"] -= 4 * leak
            y["leak"] = bool(leak)
        if number >= 2 * N_ROWS // 3:
            x["flow"] = 30 - 10 * leak + rng.normal(0, 1)
        yield x, y


def main() -> None:
    """Predict and learn row by row; print the accuracy on the latest rows."""
    model = MLCAClassifier(vigilance=0.1)
    latest = metrics.multioutput.ExactMatch()
    print("  rows  exact match of the latest  nodes  labels and features known")
    for number, (x, y) in enumerate(machine(), start=1):
        predicted = model.predict_one(x)
        if predicted:
            latest.update(y, predicted)
        model.learn_one(x, y)
        if number % SHOWN_EVERY == 0:
            known = f"{', '.join(predicted)}; {', '.join(x)}"
            print(f"{number:>6}  {latest.get():>25.3f}  {model.n_nodes:>5}  {known}", flush=True)
            latest = metrics.multioutput.ExactMatch()


if __name__ == "__main__":
    main()
