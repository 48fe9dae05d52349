"""Multi-label datasets: readers of files, downloads by name, and generators.

Data flow through this package in one direction. The readers of `mlca.tables` turn a file, compressed or not, into rows
of text with line numbers. In this package (`mulan_meka` with `arff_rows`, `extreme`; `mat` for binary files), the text
becomes numbers, which are appended to the flat arrays of `sparse_rows` and returned as a `LabelledTable` (`table`). X
is dense or sparse like the file, Y is sparse, and names are included if the format has them. Readers hold the text of
one line at a time, check sizes in headers against the data, and name file and line in every error.

Datasets can also be loaded by name. `catalogue` holds what the files do not contain: authors, official splits,
categorical columns, and download addresses. `filesets` lists the files in which a dataset may be stored, `locations`
searches ``MLCA_DATA`` and the cache and downloads missing files (`download`, `openml`), and `loading` combines these
into `load_dataset`, the function that most users need.

In addition, `synthetic` generates the paper's three discs, `drifting` streams of any length with concept drift (their
rows come from `concepts`), and `summary` computes the usual statistics of a dataset.
"""

from mlca.datasets.catalogue import CATALOGUE
from mlca.datasets.download import DownloadError
from mlca.datasets.drifting import random_rbf, random_tree, rotate_labels, rotating_hyperplane
from mlca.datasets.extreme import read_xc
from mlca.datasets.loading import load_dataset
from mlca.datasets.mat import read_mat
from mlca.datasets.mulan_meka import read_arff, read_meka, read_mulan
from mlca.datasets.summary import Summary, summarize
from mlca.datasets.synthetic import Stage, three_discs
from mlca.datasets.table import LabelledTable
from mlca.tables.mulan_xml import read_mulan_xml

__all__ = [
    "CATALOGUE",
    "DownloadError",
    "LabelledTable",
    "Stage",
    "Summary",
    "load_dataset",
    "random_rbf",
    "random_tree",
    "read_arff",
    "read_mat",
    "read_meka",
    "read_mulan",
    "read_mulan_xml",
    "read_xc",
    "rotate_labels",
    "rotating_hyperplane",
    "summarize",
    "three_discs",
]
