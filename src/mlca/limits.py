"""Limits within which results are exact; `fit` and `load` reject values beyond them."""

from __future__ import annotations

# A distance is summed over features in 64-bit integers, in units of 2^-40. With more features, it could overflow.
MOST_FEATURES = 2**22

# Squares of larger values would overflow.
LARGEST_VALUE = 1e150

# Larger counts are not always exact as floating-point numbers.
MOST_ROWS = 2**53

# The learned similarity sums ranks over rows, and the calibrated decision sums fractions of rows, in 64-bit integers.
MOST_ROWS_OF_OUR_RULE = 2**40

# Each label has a counter per neighbour, and the window is stored: larger values would need too much memory.
MOST_NEIGHBORS = 2**16
MOST_WINDOW = 2**20
MOST_JOBS = 2**10

# Compiled code counts nodes in 64 bits. `max_nodes=sys.maxsize` is allowed, but can never be reached.
MOST_NODES = 2**63 - 1

# Seeds are drawn below 2^31; user-defined seeds may be larger.
MOST_SEED = 2**63 - 1

# Default and maximum number of features per text column; docs/measurements.md explains the default.
TEXT_FEATURES = 16_384
MOST_TEXT_FEATURES = 2**20
