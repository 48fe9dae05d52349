"""The compiled parts of the learned similarity and the calibrated decision, beside the plain learner at every step."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np

from tests.learner.learned import NONE

HERE = Path(__file__).parent
KERNELS = HERE.parent.parent / "src" / "kernels"
NAMES = ["-DMLCA_LEVEL=plain", "-DMLCA_MODULE=_kernels", "-DMLCA_ARITHMETIC=exact"]
STRICT = ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-ffinite-math-only"]


def compile_library(folder, level):
    """Return the library, or None where no compiler is at hand or it does not know the level."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    target = Path(folder) / "beyond.so"
    command = [compiler, *NAMES, "-std=c++20", "-O3", f"-march={level}", *STRICT]
    command += ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, f"-I{KERNELS}", str(HERE / "beyond_library.cpp"), "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))
    integer, real, pointer, flag = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p, ctypes.c_int
    for name, result, arguments in (
        ("power_of_half_of", real, [real]),
        ("ln_of", real, [real]),
        ("shifted_of", real, [real, real]),
        ("create", pointer, [integer, flag, flag, flag]),
        ("destroy", None, [pointer]),
        ("set_node", None, [pointer, integer, pointer]),
        ("place", None, [pointer, integer, pointer, integer]),
        ("recompute", flag, [pointer]),
        ("restore", flag, [pointer]),
        ("far_of", integer, [pointer]),
        ("keys_of", None, [pointer, pointer, pointer]),
        ("set_counts", None, [pointer, integer, integer, pointer, pointer, integer]),
        ("ask", flag, [integer, pointer, pointer, real, integer, flag, integer]),
        ("probabilities", real, [pointer, pointer]),
        ("choose_of", integer, [pointer, pointer, pointer]),
        ("learn", None, [pointer, pointer, integer]),
        ("array_of", integer, [pointer, ctypes.c_char_p, pointer]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Compiled:
    """Plain values in, plain values out."""

    def __init__(self, library, d, is_sparse, recency, drift):
        self.library, self.whole = library, library.create(d, is_sparse, recency, drift)
        self.d, self.n_slots, self.fails, self.failures = d, 1, False, 0

    def __del__(self):
        self.library.destroy(self.whole)

    def keys(self, x, n):
        keys = np.zeros(n, np.int64)
        self.library.keys_of(self.whole, _as(x, np.float64), keys.ctypes.data)
        return keys.tolist()

    def ask(self, keys, ruler, slots):
        self.n_slots = max(self.n_slots, 1 + max(slots, default=NONE))  # no label is known before it comes
        question = self.whole, _as(keys, np.int64), ruler.unit, ruler.far, ruler.squared, self.n_slots
        granted = 0 if self.fails else -1  # so many allocations succeed before one fails; -1: none fails
        while not self.library.ask(granted, *question):
            granted += 1
            self.failures += 1

    def probabilities(self):
        p = np.zeros(self.n_slots)
        novelty = self.library.probabilities(self.whole, p.ctypes.data)
        chosen = np.zeros(self.n_slots, np.int32)
        n = self.library.choose_of(self.whole, p.ctypes.data, chosen.ctypes.data)
        return p.tolist(), novelty, sorted(chosen[:n].tolist())

    def learn(self, own):
        self.library.learn(self.whole, _as(own, np.int32), len(own))

    def set_node(self, k, weights):
        assert len(weights) == self.d
        self.library.set_node(self.whole, k, _as(weights, np.float64))

    def set_counts(self, k, count, labels):
        slots, rows = np.array(list(labels), np.int32), np.array(list(labels.values()), np.int64)
        self.library.set_counts(self.whole, k, count, slots.ctypes.data, rows.ctypes.data, len(rows))

    def place(self, node, own):
        self.library.place(self.whole, node, _as(own, np.int32), len(own))

    def recompute(self):
        assert self.library.recompute(self.whole)

    def far(self):
        return self.library.far_of(self.whole)

    def restore(self):
        return self.library.restore(self.whole)

    def array(self, name, kind=np.int64):
        result = np.zeros(self.library.array_of(self.whole, name.encode(), None), kind)
        self.library.array_of(self.whole, name.encode(), result.ctypes.data)
        return result.tolist()


def _as(values, kind):
    array = np.array(values, kind)
    _as.alive = array  # until the next call, which is after the one that needs it
    return array.ctypes.data


class Beside:
    """Mixed into a plain learner: the compiled parts do the same, and everything must be equal at once."""

    def attach(self, library, d, is_sparse, drift=False):
        self.compiled = Compiled(library, d, is_sparse, self.recency is not None, drift)
        self.known = {}
        return self

    def keys(self, x, predicting):
        keys, ruler = super().keys(x, predicting)
        if self.similarity == "learned" and self.y:
            assert self.compiled.keys(x, len(keys)) == keys
        return keys, ruler

    def probabilities(self, x):
        p = super().probabilities(x)
        self.compiled.ask(*self.keys([float(v) for v in x], predicting=True), [])
        compiled, novelty, chosen = self.compiled.probabilities()
        assert compiled == [p.get(slot, 0.0) for slot in range(self.compiled.n_slots)]
        assert novelty == self.novelty(x)
        assert chosen == [i + 1 for i, v in enumerate(self.predicted_of(p)) if v]
        return p

    def note(self, x, own, keys, ruler):
        self.compiled.ask(keys, ruler, own)
        super().note(x, own, keys, ruler)
        self.compiled.learn(own)

    def place(self, x, labels, own, keys):
        node = super().place(x, labels, own, keys)
        for k, y in enumerate(self.y):
            if self.known.get(k) is not y:
                self.known[k] = y
                self.compiled.set_node(k, y)
        self.compiled.place(node, own)
        return node

    def learn(self, x, labels):
        before = self.learned
        super().learn(x, labels)
        if self.learned is not before:
            self.compiled.recompute()
            self.check_similarity()
            assert self.rows % 2 or self.compiled.restore()
        self.check_decision()

    def check_similarity(self):
        assert self.compiled.array("weights") == self.learned.weights
        assert self.compiled.far() == self.learned.far
        starts, centres = self.compiled.array("starts"), self.compiled.array("centres")
        attributes, coefficients = (
            self.compiled.array("attributes", np.int32),
            self.compiled.array("coefficients", np.int32),
        )
        deviations = self.compiled.array("deviations", np.float64)
        background = self.learned.background or {}
        for slot, deviation in enumerate(deviations):
            assert (deviation > 0) == (slot in background)
            if slot in background:
                own, part = background[slot], slice(starts[slot], starts[slot + 1])
                assert dict(zip(attributes[part], coefficients[part], strict=True)) == own.coefficients
                assert (centres[slot], deviation) == (own.centre, own.deviation)

    def check_decision(self):
        slots = range(self.compiled.n_slots)
        assert self.compiled.array("totals") == [self.totals.get(slot, 0) for slot in slots]
        assert self.compiled.array("arrived", np.int32) == [slot for slot in self.totals if slot != NONE]
        assert self.compiled.array("novelty") == self.novelties.rows
        for e, calibration in enumerate(self.calibrations):
            for part, name in enumerate(("total", "present")):
                cells = [calibration.cells.get(slot, ([0] * 11, [0] * 11))[part] for slot in slots]
                assert self.compiled.array(f"{name}{e}") == [count for of_slot in cells for count in of_slot]
        if self.pool:
            assert self.compiled.array("log_weights", np.float64) == self.pool.log_weights
        if self.recency:
            counts = [self.recency.counts.get(slot, [0.0] * 4) for slot in slots]
            assert self.compiled.array("recent", np.float64) == [count for of_slot in counts for count in of_slot]
