"""Measure the results on alarms in docs/streams.md: detection delay, and false alarms.

Uses three generated streams of 6,000 rows with five seeds each, in batches of 50, with a change in the middle. Prints
for each stream how many rows after a sudden change the first alarm is raised, and how many alarms are false.
"""

from mlca import MLCA
from mlca.datasets import random_rbf, random_tree, rotating_hyperplane
from mlca.metrics import prequential

N_ROWS, N_SEEDS = 6000, 5


def alarms(stream, change, seed):
    """Return the rows of a generated stream at which a drift alarm is raised."""
    rows = stream(N_ROWS, change=change, chunk=50, random_state=seed)
    return [alarm.row for alarm in prequential(MLCA(), rows).alarms if alarm.kind == "drift"]


if __name__ == "__main__":
    for stream in (rotating_hyperplane, random_rbf, random_tree):
        found = [alarms(stream, "sudden", seed) for seed in range(N_SEEDS)]
        late = [min((row for row in rows if row >= N_ROWS // 2), default=N_ROWS) - N_ROWS // 2 for rows in found]
        early = sum(row < N_ROWS // 2 for rows in found for row in rows)
        false = [len(alarms(stream, "none", seed)) for seed in range(N_SEEDS)]
        print(f"{stream.__name__}: first alarm after {late} rows; false ones before it {early}, without change {false}")
