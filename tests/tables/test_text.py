"""Free text: exact match on generated tickets, compared with TF-IDF and logistic regression."""

import pytest

from docs.scripts.measure_tickets import ours, reference
from tests.tables.tickets import tickets

# Allowed difference below the reference; MLCA() is above it (0.91 and 0.85 here, 0.94 and 0.86 at 3,000 rows).
ALLOWED = 0.05


@pytest.mark.filterwarnings("ignore:left out")
def test_default_mlca_on_tickets_is_near_a_batch_learner_of_text():
    train, test = tickets(1500, 1), tickets(500, 2)
    expected = reference(train, test)
    assert expected > 0.7  # the corpus can be learned, but is not trivial
    assert ours(train, test) >= expected - ALLOWED


@pytest.mark.filterwarnings("ignore:left out")
def test_text_column_improves_predictions():
    train, test = tickets(1000, 3), tickets(300, 4)
    without = tuple((frame.drop(columns="text"), topics) for frame, topics in (train, test))
    assert ours(train, test, vote="frequencies") > ours(*without, vote="frequencies") + 0.3
