"""Small runs of the benchmarks: all results exist, on any machine."""

from mlca.bench.benchmarks import Bench, _bounded, _cells
from mlca.bench.probes import STATUS
from mlca.bench.samples import Sample, generated
from mlca.bench.workloads import decisions, decisions_row_by_row


def test_long_stream_is_reported_by_tenths(capsys):
    bench = Bench()
    _bounded(bench, 20_000, max_nodes=60, chunk=1000)
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in said[:10]] == [f"tenth {i}" for i in range(1, 11)]
    assert bench.lines[0].rows == 20_000
    level, *memory = bench.targets
    assert 0 < level.found <= 1
    if STATUS.exists():
        assert memory[0].reached, "less than a MiB of rows and sixty nodes cannot make a process grow"


def test_decisions_are_compared_in_learning_predicting_and_single_rows():
    data = generated("yeast")
    few = Sample("few", data.X[:300], data.Y[:300], real=False)
    pairs = [*decisions(few, n_rows=50, repeats=1), decisions_row_by_row(few, n_known=290)]
    assert [ours.rows for ours, _ in pairs] == [300, 50, 10]
    for ours, calibrated in pairs:
        assert ours.work == calibrated.work
        assert (ours.who, calibrated.who) == ("MLCA(), CPU time", 'MLCA(decision="calibrated"), CPU time')


def test_rows_are_learned_and_predicted_at_two_numbers_of_nodes():
    bench = Bench()
    _cells(bench, few=300, many=1200, n_rows=40)
    assert [line.work.split(" x 32")[0] for line in bench.lines] == [
        f"{verb} at {n} nodes" for n in ("300", "1,200") for _ in range(2) for verb in ("learn", "predict a single row")
    ]
    assert [target.wanted for target in bench.targets] == [2, 1, 2]
    assert all(target.found > 0 for target in bench.targets)
