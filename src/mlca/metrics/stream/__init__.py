"""How good a model is while it learns: every row is predicted first and learned afterwards.

`prequential` takes one item of the stream after another. `adapters` gives it to the model in the form
that the model wants (arrays for scikit-learn's face, dicts for River's) and brings the prediction
back as a matrix whose columns are all labels named so far; a label that the model has not seen is a
column of zeros, so it counts as missed. `tally` keeps each row's measures, over the whole stream and
over its last rows. `alarms` watches the same rows and tells what changes. Every now and then `records` notes
where things stand.
"""

from mlca.metrics.stream.alarms import Alarm
from mlca.metrics.stream.prequential import prequential
from mlca.metrics.stream.records import Prequential, Record, StreamMeasures

__all__ = ["Alarm", "Prequential", "Record", "StreamMeasures", "prequential"]
