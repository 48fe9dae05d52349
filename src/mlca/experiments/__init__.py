"""The experiments of the paper, run again by ``mlca reproduce``."""
