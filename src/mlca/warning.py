"""Warnings that show the user's own line, however many rooms of this package lie between it and what was found."""

from __future__ import annotations

import sys
import warnings

# What may stand between the user's line and ours: scikit-learn wraps methods, and pipelines and searches call them.
_NOT_THE_USER = frozenset({"mlca", "sklearn", "joblib", "river"})


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn whoever called into this package.

    Parameters
    ----------
    message : str
        What was found, and what to do about it.
    category : type of Warning, default=UserWarning
        What kind of warning it is.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
