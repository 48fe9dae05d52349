"""Models in files: a zip of .npy arrays and a JSON header, which can be read but never run.

A file holds `mlca.json` (what the file is, its format version, parameters, label and feature names, and extras such
as the recipe of the columns where the command line trained the model) and one `.npy` member an array of the
learner's state. Out: `models` turns a model into header and arrays, `archive` lays them out as a zip without
compression, and `mlca.replacing` puts the file in its place, whole or not at all. In, the same way back, each step
believing nothing that it has not checked:

1. `archive` takes only a zip that is laid out as we write it, member behind member: so nothing is hidden, nothing
   overlaps, and nothing unfolds into more than the file's own size.
2. The header is strict JSON: no key occurs twice, and numbers are finite.
3. The checksum over header and arrays binds them together (since version 2): what was damaged or put together from
   several files is refused. Who forges a file can forge its checksum too, so nothing rests on it.
4. `mlca.learner.checking` compares every array with the others before compiled code sees it.

Files of older format versions stay readable: `models` turns their headers into today's.
"""

from mlca.storage.archive import HEADER, checksum
from mlca.storage.models import VERSION, read_model, write_model

__all__ = ["HEADER", "VERSION", "checksum", "read_model", "write_model"]
