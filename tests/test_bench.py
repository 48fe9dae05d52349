"""Benchmarks are run small: what they measure is there, whatever the machine."""

from mlca.bench.clock import STATUS
from mlca.bench.running import Bench, _bounded


def test_a_stream_in_bounded_memory_is_told_tenth_by_tenth(capsys):
    bench = Bench()
    _bounded(bench, 20_000, max_nodes=60, chunk=1000)
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in said[:10]] == [f"tenth {i}" for i in range(1, 11)]
    assert bench.lines[0].rows == 20_000
    level, *memory = bench.targets
    assert 0 < level.found <= 1
    if STATUS.exists():
        assert memory[0].reached, "less than a MiB of rows and sixty nodes cannot make a process grow"
