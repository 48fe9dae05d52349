"""Options of MLCA for tests: named variants of the algorithm, and strategies that draw options."""

import operator

from hypothesis import strategies as st

PAPER = {"similarity": "correntropy", "decision": "bayes", "recency": False, "drift": "off"}
# This package's rule, and parts of it combined with the paper's rule.
VARIANTS = {
    "mixed": PAPER | {"similarity": "learned", "decision": "mixed"},
    "mixed recency": PAPER | {"similarity": "learned", "decision": "mixed", "recency": True},
    "mixed drift": PAPER | {"similarity": "learned", "decision": "mixed", "recency": True, "drift": "follow"},
    "calibrated": PAPER | {"similarity": "learned", "decision": "calibrated"},
    "recency": PAPER | {"similarity": "learned", "decision": "calibrated", "recency": True},
    "drift": PAPER | {"similarity": "learned", "decision": "calibrated", "drift": "follow"},
    "all": PAPER | {"similarity": "learned", "decision": "calibrated", "drift": "follow", "recency": True},
    "learned bayes": PAPER | {"similarity": "learned"},
    "mixed cells": PAPER | {"similarity": "learned", "decision": "mixed", "search": "cells"},
    "cells": PAPER | {"similarity": "learned", "decision": "calibrated", "search": "cells"},
    "learned bayes cells": PAPER | {"similarity": "learned", "search": "cells"},
    "correntropy": PAPER | {"decision": "calibrated"},
    "correntropy all": PAPER | {"decision": "calibrated", "drift": "follow", "recency": True},
}
MIXED = tuple(name for name, variant in VARIANTS.items() if variant["decision"] == "mixed")
BOUNDS = st.sampled_from([{}, {"max_nodes": 20}])
FEATURE_MODES = ("common", "individual", "clustered")
SMALL_WINDOW = {"vigilance": 0.1, "window": 20}


def _node_options(vigilances):
    return st.fixed_dictionaries(
        {
            "vigilance": st.sampled_from(vigilances),
            "n_neighbors": st.sampled_from([2, 3, 10]),
            "window": st.sampled_from([2, 5, 20, 50]),
            "smoothing": st.sampled_from([0.5, 1.0]),
            "attributes": st.sampled_from(FEATURE_MODES),
            "rule": st.sampled_from(["published", "released", "text"]),
            "vote": st.sampled_from(["counts", "frequencies"]),
        }
    )


def paper_options():
    """Draw options of the paper's algorithms."""
    return _node_options([0.0, 0.01, 0.1, 0.3, 0.6]).map(lambda chosen: chosen | PAPER)


def our_options(variants=tuple(VARIANTS)):
    """Draw options of this package's rule, including an estimated vigilance."""
    variant = st.sampled_from(variants).map(VARIANTS.get)
    return st.builds(operator.or_, _node_options([0.01, 0.1, 0.3, "auto"]), variant)


def mixed_options():
    """Draw options of the mixed decision, some with bounded memory."""
    return st.builds(operator.or_, our_options(MIXED), BOUNDS)


def any_options():
    """Draw options of the paper's or this package's algorithms, some with bounded memory."""
    return st.one_of(paper_options(), st.builds(operator.or_, our_options(), BOUNDS))
