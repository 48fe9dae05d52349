"""How Python loops become machine code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function with Numba when it is first called, and keep the result on disk.

    The next process loads it instead of compiling again. Where nothing may be written, neither beside
    the source nor in the user's cache folder, each process compiles for itself. The GIL is released.
    Floating-point arithmetic is strict: no operation is fused, reordered or dropped.
    """
    return _compile(function, fastmath=False)


def compiled_loosely(function: F) -> F:
    """Compile like `compiled`, but let products and sums fuse.

    For arithmetic whose error is bounded rather than exact.
    """
    return _compile(function, fastmath={"contract"})


def _compile(function: F, fastmath: bool | set[str]) -> F:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # Numba found no folder that it may write to
        return numba.njit(cache=False, **options)(function)  # type: ignore[no-any-return]
    # Numba takes what is on disk for valid as long as the function's own file is unchanged. But what was compiled
    # contains the functions that it calls, from other files; so it is valid while none of them changed.
    dispatcher._cache._cache_file._source_stamp = _sources()
    return dispatcher  # type: ignore[no-any-return]


@cache
def _sources() -> str:
    """Return a fingerprint of all files that hold compiled functions."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for folder in (".", "bench", "learner/kernels", "peers"):
        for file in sorted(package.glob(f"{folder}/*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _keep_apart(typing_context: Any) -> Any:
    """Keep LLVM from inlining the compiled function that calls this.

    Inlined into a larger loop, a kernel can lose its vector instructions.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), build


keep_apart: Any = intrinsic(_keep_apart)
