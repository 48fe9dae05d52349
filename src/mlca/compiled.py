"""How Python loops become machine code."""

from __future__ import annotations

from collections.abc import Callable
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
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # Numba found no folder that it may write to
        return numba.njit(cache=False, **options)(function)  # type: ignore[no-any-return]


def _keep_apart(typing_context: Any) -> Any:
    """Keep LLVM from inlining the compiled function that calls this.

    Inlined into a larger loop, a kernel can lose its vector instructions.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), build


keep_apart: Any = intrinsic(_keep_apart)
