"""Multi-label data: from a file or a name to a matrix of rows and a matrix of labels.

Data flow through this package in one direction. The readers of `mlca.tables` turn a file, compressed or not, into
rows of words with their lines, for everybody alike. Here (`arff` with `arff_rows`, `xc`; `mat` for bytes) the words
become numbers as they come, which are appended to the flat arrays of `rows` and handed over as a `LabelledTable`
(`table`): X dense or sparse as the file is, Y sparse, names where the format has them. No reader holds the text of
more than a line, none believes a size that the file announces before it has seen the data, and every complaint names
file and line.

Above the readers stand names. `catalogue` says of each dataset of the field what its files do not:
who made it, which files are an official split, which numbers are categories in truth, where a copy
is. `filesets` knows how the files may lie in a folder, `folders` looks for them in ``MLCA_DATA`` and in the
cache and fetches what is missing (`download`, `openml`), and `loading` makes of all this the one
function that most users need, `load_dataset`.

Beside them `synthetic` draws the paper's three discs, `drifting` streams of any length whose meaning changes (their
rows come from `concepts`), and `summary` computes the statistics by which the field describes a dataset.
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
