"""`mlca.dask.fit`: blocks are learned on workers, and the result depends on the blocks alone."""

import os
import signal
from functools import partial

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import mlca.dask
from mlca import MLCA, load, merge
from mlca.peers import MLkNN
from tests.learner.model_comparison import assert_exactly_same

RNG = np.random.default_rng(0)
X = RNG.normal(0, 1, (1200, 4))
Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X[:, 2] + RNG.normal(0, 0.3, 1200) > 0.5]).astype(int)
CHUNKS = 60  # twenty blocks, so that two levels of the tree have several models
# Time limit, in seconds, of everything that waits for workers.
DEADLINE = 600.0


def blocks(array, chunks=CHUNKS):
    return da.from_array(array, chunks=(chunks, array.shape[1]))


def learned_here(rows, targets, chunks=CHUNKS, **options):
    """Return the expected result of `fit`, computed without Dask."""
    models = [
        MLCA(**options).fit(rows[low : low + chunks], targets[low : low + chunks])
        for low in range(0, len(rows), chunks)
    ]
    while len(models) > 1:
        models = [merge(models[low : low + 8], how="append") for low in range(0, len(models), 8)]
    return models[0]


@pytest.fixture(scope="module")
def expected():
    return learned_here(X, Y)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_without_a_cluster_blocks_are_learned_and_merged(expected, scheduler, tmp_path):
    template = MLCA()
    with dask.config.set(scheduler=scheduler):
        model = mlca.dask.fit(template, blocks(X), blocks(Y))
    assert_exactly_same(model, expected)
    assert not hasattr(template, "labels_")
    model.save(tmp_path / "model.mlca")
    assert_exactly_same(load(tmp_path / "model.mlca").partial_fit(X, Y), model.partial_fit(X, Y))


def test_two_workers_give_the_same_bits(cluster, expected):
    assert len(cluster.nthreads()) == 2
    for _ in range(2):
        assert_exactly_same(mlca.dask.fit(MLCA(), blocks(X), blocks(Y), timeout=DEADLINE), expected)
    bounded = mlca.dask.fit(MLCA(max_nodes=300), blocks(X), blocks(Y), timeout=DEADLINE)
    assert_exactly_same(bounded, learned_here(X, Y, max_nodes=300))
    assert bounded.n_nodes_ == 300 and bounded.n_seen_ == 1200


def killing_once(block, marker, block_info=None):
    """Return a block, but end the first process that loads the seventh block."""
    if block_info[0]["chunk-location"][0] != 6:
        return block
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return block
    os.kill(os.getpid(), signal.SIGKILL)


def test_work_of_a_killed_worker_is_repeated_bit_for_bit(expected, tmp_path):
    marker = tmp_path / "killed"
    rows = blocks(X).map_blocks(partial(killing_once, marker=str(marker)), dtype=X.dtype, meta=np.empty((0, 4)))
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as workers,
        Client(workers) as client,
    ):
        client.wait_for_workers(2, timeout=DEADLINE)
        before = set(client.run(os.getpid).values())
        model = mlca.dask.fit(MLCA(), rows, blocks(Y), timeout=DEADLINE)
        client.wait_for_workers(2, timeout=DEADLINE)
        after = set(client.run(os.getpid).values())
    assert marker.exists()
    assert len(before & after) == 1
    assert_exactly_same(model, expected)


def test_stalled_workers_raise_timeout():
    with (
        LocalCluster(n_workers=0, processes=True, host="127.0.0.1", dashboard_address=None) as workers,
        Client(workers),
        pytest.raises(TimeoutError, match=r"no block was finished within 0\.5 s; 21 tasks are left.* 0 workers"),
    ):
        mlca.dask.fit(MLCA(), blocks(X), blocks(Y), timeout=0.5)


def test_number_of_a_block_that_cannot_be_learned_is_reported(cluster):
    rows = X.copy()
    rows[500] = np.inf
    with pytest.raises(ValueError, match="infinity") as raised:
        mlca.dask.fit(MLCA(), blocks(rows), blocks(Y), timeout=DEADLINE)
    assert raised.value.__notes__ == ["This was block 8 of X and y."]


def test_frames_series_bags_and_empty_blocks_are_learned():
    frame = pd.DataFrame(X, columns=list("abcd"))
    labels = pd.DataFrame(Y, columns=["sea", "sun", "snow"])

    def parts(table, starts=(0, 400, 9999, 800)):
        return dd.from_map(lambda start: table.iloc[start : start + 400], starts, meta=table.iloc[:0])

    whole = mlca.dask.fit(MLCA(), parts(frame), parts(labels))
    assert_exactly_same(whole, learned_here(frame, labels, 400))
    assert whole.feature_names_in_.tolist() == list("abcd")
    names = [["up"] if x[0] > 0 else ["down"] if j > 700 else [] for j, x in enumerate(X)]
    for targets in (db.from_sequence(names, partition_size=400), dd.from_pandas(pd.Series(names), npartitions=3)):
        named = mlca.dask.fit(MLCA(), blocks(X, 400), targets)
        assert_exactly_same(named, learned_here(X, names, 400))
    assert set(named.classes_) == {"up", "down"}
    with pytest.raises(ValueError, match="X has no rows"):
        mlca.dask.fit(MLCA(), parts(frame, [9999]), parts(labels, [9999]))


def test_single_block_gives_a_fitted_model():
    assert_exactly_same(mlca.dask.fit(MLCA(), blocks(X, 1200), blocks(Y, 1200)), MLCA().fit(X, Y))


def test_verbose_model_shows_progress(capsys, monkeypatch):
    monkeypatch.setattr("mlca.progress.PAUSE", -1.0)
    assert mlca.dask.fit(MLCA(verbose=True), blocks(X), blocks(Y)).verbose is True
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 20
    assert lines[-1].startswith("1,200 rows,") and "1,200 nodes" in lines[-1]
    mlca.dask.fit(MLCA(), blocks(X), blocks(Y))
    assert capsys.readouterr().err == ""


def test_models_that_cannot_be_merged_are_rejected_before_training():
    with pytest.raises(TypeError, match=r"model must be an MLCA.*got a MLkNN"):
        mlca.dask.fit(MLkNN(), blocks(X), blocks(Y))
    with pytest.raises(ValueError, match="vigilance='auto'"):
        mlca.dask.fit(MLCA(vigilance="auto"), blocks(X), blocks(Y))
