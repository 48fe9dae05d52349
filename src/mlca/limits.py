"""Bounds within which a model is exact; `fit` and `load` reject values beyond them."""

from __future__ import annotations

# Sums of distances are 64-bit integers in units of 2^-40, which more features could overflow.
MOST_FEATURES = 2**22

# Squares of larger values would overflow.
LARGEST_VALUE = 1e150

# Counts beyond this are no longer exact as floating-point numbers.
MOST_ROWS = 2**53

# In 64-bit integers, the learned similarity sums ranks over rows, and the calibrated decision sums fractions of rows.
MOST_ROWS_OF_OUR_RULE = 2**40

# Each label has a counter per neighbour, and the window is stored: larger values would need too much memory.
MOST_NEIGHBORS = 2**16
MOST_WINDOW = 2**20
MOST_JOBS = 2**10

# Compiled code counts nodes in 64 bits, so a bound of sys.maxsize has no effect.
MOST_NODES = 2**63 - 1

# Seeds are drawn below 2^31; user-defined seeds may be larger.
MOST_SEED = 2**63 - 1

# Default and maximum number of features per text column (docs/measurements.md has the measurement).
TEXT_FEATURES = 16_384
MOST_TEXT_FEATURES = 2**20
