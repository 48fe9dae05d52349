"""Model files: zip archives of .npy arrays and a JSON header, without executable code.

A file holds `mlca.json` (format version, parameters, label and feature names, and extras such as the column recipe) and
one `.npy` member per array of the learner's state. For writing, `models` converts a model to header and arrays,
`archive` stores them as an uncompressed zip, and `mlca.replacing` replaces the file atomically. Reading reverses these
steps and checks everything:

1. `archive` accepts only the zip layout that it writes itself, with members one after another. So nothing is
   hidden or overlaps, and nothing expands beyond the file's own size.
2. The header is strict JSON: no key occurs twice, and numbers are finite.
3. The checksum over header and arrays (since version 2) reveals damaged files, and files assembled from several others.
   An attacker can forge the checksum, so safety does not depend on it.
4. `mlca.learner.checking` compares every array with the others before compiled code sees it.

Files of older format versions stay readable: `models` converts their headers to the current version.
"""

from mlca.storage.archive import HEADER, checksum
from mlca.storage.models import VERSION, read_model, write_model

__all__ = ["HEADER", "VERSION", "checksum", "read_model", "write_model"]
