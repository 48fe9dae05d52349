"""Test-then-train evaluation: every row is predicted first and learned afterwards.

`prequential` takes the items of a stream one by one. `adapters` converts them to the input format of the model
(arrays for scikit-learn's interface, dicts for River's), and converts its predictions to a matrix with one column per
label known so far; a label that the model has not seen is a column of zeros, so it counts as missed. `tally` averages
the measures over all rows and over the latest rows. `alarms` detects drift, new labels and rising novelty. `records`
stores the results at regular intervals.
"""

from mlca.metrics.stream.alarms import Alarm
from mlca.metrics.stream.prequential import prequential
from mlca.metrics.stream.records import Prequential, Record, StreamMeasures

__all__ = ["Alarm", "Prequential", "Record", "StreamMeasures", "prequential"]
