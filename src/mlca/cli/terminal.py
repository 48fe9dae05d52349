"""A curve as one line of text."""

from __future__ import annotations

from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], highest: float = 1.0, width: int = 60) -> str:
    """Draw values between 0 and `highest`; beyond `width` values, neighbours share a block. NaN is a gap.

    Examples
    --------
    >>> sparkline([0.0, 0.5, 1.0])
    '▁▅█'
    """
    step = -(-len(values) // width) or 1
    groups = [values[i : i + step] for i in range(0, len(values), step)]
    return "".join(_block([value for value in group if value == value], highest) for group in groups)


def _block(values: Sequence[float], highest: float) -> str:
    if not values or highest <= 0:
        return " "
    share = sum(values) / len(values) / highest
    return _BLOCKS[min(len(_BLOCKS) - 1, max(0, round(share * (len(_BLOCKS) - 1))))]
