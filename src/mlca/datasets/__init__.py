"""Data for multi-label classification."""

from mlca.datasets.synthetic import Stage, three_discs

__all__ = ["Stage", "three_discs"]
