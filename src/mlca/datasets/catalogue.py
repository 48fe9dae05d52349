"""The benchmark datasets: their sources and the names of their files.

An entry holds what the files do not contain: who made the data, which files are an official split, which numeric
columns are categories, and where to download a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mlca.datasets.filesets import ExtremeText, FileSet, Meka, Mulan

MULAN = "https://mulan.sourceforge.net/datasets-mlc.html"
KDIS = "https://www.uco.es/kdis/mllresources/"
XC = "http://manikvarma.org/downloads/XC/XMLRepository.html"

_KDIS_FILES = "http://www.uco.es/grupos/kdis/MLLResources/ucobigfiles/Datasets/Full/"
_DRIVE = "https://drive.google.com/uc?export=download&id="


@dataclass(frozen=True)
class Archive:
    """A public zip file with the dataset.

    Attributes
    ----------
    url : str
        The address of the file.
    members : mapping of str to str
        Maps the name of each file in the archive, without folders, to the name under which it is stored locally.
    fileset : FileSet
        The fileset of the unpacked files.
    checksum : str or None
        Algorithm and digest, such as ``"md5:0a1b..."``, if one has been published.
    """

    url: str
    members: Mapping[str, str]
    fileset: FileSet
    checksum: str | None = None


@dataclass(frozen=True)
class Entry:
    """One dataset in the catalogue.

    Attributes
    ----------
    name, title, source, citation : str
        Name, title, address of a page that describes the dataset, and citation.
    shape : tuple of three int
        The numbers of rows, features and labels, against which the data are checked.
    collected : tuple of FileSet
        The filesets of the dataset in public collections, the most complete first.
    archive : Archive
        The archive from which a copy is downloaded.
    categorical : {"declared", "all", "none"}
        Which features are categorical: those that the file declares, or, if the file writes categories as numbers or
        declares nothing, all or none.
    official_split : bool
        Whether the train and test parts are those commonly used for comparisons.
    openml : tuple of (str, int) or None
        Name and version on OpenML; None if the dataset is not available there.
    drop : tuple of str
        Columns to leave out.
    note : str
        A note for users.
    """

    name: str
    title: str
    source: str
    citation: str
    shape: tuple[int, int, int]
    collected: tuple[FileSet, ...]
    archive: Archive
    categorical: Literal["declared", "all", "none"] = "declared"
    official_split: bool = False
    openml: tuple[str, int] | None = None
    drop: tuple[str, ...] = field(default=())
    note: str = ""

    @property
    def filesets(self) -> tuple[FileSet, ...]:
        """All filesets that a folder may hold for this dataset, the most complete first."""
        from_openml = [_mulan(f"{self.openml[0]}-openml")] if self.openml else []
        return (*self.collected, *from_openml, self.archive.fileset)


def _mulan(name: str, parts: tuple[str, ...] = ("",)) -> Mulan:
    return Mulan(tuple(f"{name}{part}.arff" for part in parts), f"{name}.xml")


def _train_and_test(name: str) -> Mulan:
    return _mulan(name, ("-train", "-test"))


def _kdis(name: str, theirs: str) -> Archive:
    """Return the archive in the KDIS repository: one MEKA file with all rows."""
    file = f"{name}-meka.arff"
    return Archive(f"{_KDIS_FILES}{theirs}_Meka.zip", {f"{theirs}.arff": file}, Meka(file))


def _extreme(name: str, drive: str, md5: str) -> Archive:
    """Return the archive in the Extreme Classification repository, without label names."""
    fileset = _extreme_text(name)
    return Archive(_DRIVE + drive, {file: file for file in fileset.files}, fileset, f"md5:{md5}")


def _extreme_text(name: str, xml: str | None = None) -> ExtremeText:
    return ExtremeText((f"{name}_data.txt",), (f"{name}_trSplit.txt", f"{name}_tstSplit.txt"), xml)


_ARBITRARY = "The public train and test files are one arbitrary split; they are joined here."
_GO_CITATION = (
    "J. Xu, J. Liu, J. Yin, C. Sun: A multi-label feature extraction algorithm via maximizing feature "
    "variance and feature-label dependence simultaneously. Knowledge-Based Systems 98, 2016"
)


_EURLEX = ExtremeText(("eurlex_train.txt", "eurlex_test.txt"))

_ENTRIES = (
    Entry(
        "flags",
        "Flags of nations and the colours in them",
        KDIS,
        "E. C. Goncalves, A. Plastino, A. A. Freitas: A genetic algorithm for optimizing the label "
        "ordering in multi-label classifier chains. ICTAI 2013",
        (194, 19, 7),
        (_mulan("flags"),),
        _kdis("flags", "Flags"),
    ),
    Entry(
        "emotions",
        "Music and the emotions that it evokes",
        MULAN,
        "K. Trohidis, G. Tsoumakas, G. Kalliris, I. Vlahavas: Multilabel classification of music into "
        "emotions. ISMIR 2008",
        (593, 72, 6),
        (_mulan("emotions"),),
        _kdis("emotions", "Emotions"),
        openml=("emotions", 4),
    ),
    Entry(
        "birds",
        "Bird species heard in recordings",
        MULAN,
        "F. Briggs et al.: The 9th annual MLSP competition: new methods for acoustic classification of "
        "multiple simultaneous bird species in a noisy environment. MLSP 2013",
        (645, 260, 19),
        (_train_and_test("birds"),),
        _kdis("birds", "Birds"),
        official_split=True,
        note="294 rows have no label.",
    ),
    Entry(
        "image",
        "Natural scenes, five classes",
        KDIS,
        "M.-L. Zhang, Z.-H. Zhou: ML-KNN: a lazy learning approach to multi-label learning. "
        "Pattern Recognition 40, 2007",
        (2000, 294, 5),
        (_train_and_test("image"),),
        _kdis("image", "Image"),
        note=_ARBITRARY,
    ),
    Entry(
        "scene",
        "Photographs and the scenes in them",
        MULAN,
        "M. R. Boutell, J. Luo, X. Shen, C. M. Brown: Learning multi-label scene classification. "
        "Pattern Recognition 37, 2004",
        (2407, 294, 6),
        (_train_and_test("scene"),),
        _kdis("scene", "Scene"),
        official_split=True,
    ),
    Entry(
        "yeast",
        "Genes of yeast and their functions",
        MULAN,
        "A. Elisseeff, J. Weston: A kernel method for multi-labelled classification. NIPS 2001",
        (2417, 103, 14),
        (_mulan("yeast"),),
        _kdis("yeast", "Yeast"),
        openml=("yeast", 4),
    ),
    Entry(
        "virusgo",
        "Proteins of viruses by gene ontology, and where in the cell they are",
        KDIS,
        _GO_CITATION,
        (207, 749, 6),
        (_train_and_test("virusgo"),),
        _kdis("virusgo", "VirusGO"),
        categorical="all",
        note=_ARBITRARY,
    ),
    Entry(
        "gpositivego",
        "Proteins of gram-positive bacteria by gene ontology, and where in the cell they are",
        KDIS,
        _GO_CITATION,
        (519, 912, 4),
        (_train_and_test("gpositivego"),),
        _kdis("gpositivego", "GpositiveGO"),
        categorical="all",
        note=_ARBITRARY,
    ),
    Entry(
        "genbase",
        "Proteins by their motifs, and their families",
        MULAN,
        "S. Diplaris, G. Tsoumakas, P. A. Mitkas, I. Vlahavas: Protein classification with multiple "
        "algorithms. PCI 2005",
        (662, 1185, 27),
        (_mulan("genbase"),),
        _kdis("genbase", "Genbase"),
        drop=("protein",),
        note="The attribute 'protein', a name unique to each row, is dropped: 1185 of 1186 are left.",
    ),
    Entry(
        "medical",
        "Radiology reports and their disease codes",
        MULAN,
        "J. P. Pestian et al.: A shared task involving multi-label classification of clinical free text. BioNLP 2007",
        (978, 1449, 45),
        (_mulan("medical"),),
        _kdis("medical", "Medical"),
    ),
    Entry(
        "plantgo",
        "Proteins of plants by gene ontology, and where in the cell they are",
        KDIS,
        _GO_CITATION,
        (978, 3091, 12),
        (_train_and_test("plantgo"),),
        _kdis("plantgo", "PlantGO"),
        categorical="all",
        note=_ARBITRARY,
    ),
    Entry(
        "langlog",
        "Posts of the Language Log and their topics",
        KDIS,
        "J. Read: Scalable multi-label classification. PhD thesis, University of Waikato, 2010",
        (1460, 1004, 75),
        (_mulan("langlog"),),
        _kdis("langlog", "Langlog"),
        categorical="all",
        note="207 rows have no label.",
    ),
    Entry(
        "eurlex4k",
        "Law of the European Union and its subjects",
        XC,
        "E. Loza Mencia, J. Fuernkranz: Efficient pairwise multilabel classification for large-scale "
        "problems in the legal domain. ECML PKDD 2008",
        (19348, 5000, 3993),
        (),
        Archive(
            f"{_DRIVE}0B3lPMIHmG6vGU0VTR1pCejFpWjg",
            {file: file for file in _EURLEX.files},
            _EURLEX,
            "md5:ec8feb2a9a0bd0f32d8f4c2b00725524",
        ),
        categorical="none",
        official_split=True,
    ),
    Entry(
        "mediamill",
        "News video and the concepts in it",
        XC,
        "C. G. M. Snoek et al.: The challenge problem for automated detection of 101 semantic concepts "
        "in multimedia. ACM Multimedia 2006",
        (43907, 120, 101),
        (_extreme_text("mediamill", "mediamill.xml"),),
        _extreme("mediamill", "0B3lPMIHmG6vGY3B4TXRmZnZBTkk", "11cfdb9269ae5a301bb0c6f333cc6999"),
        categorical="none",
        official_split=True,
    ),
    Entry(
        "bibtex",
        "BibTeX entries of BibSonomy and their tags",
        XC,
        "I. Katakis, G. Tsoumakas, I. Vlahavas: Multilabel text classification for automated tag "
        "suggestion. ECML PKDD Discovery Challenge 2008",
        (7395, 1836, 159),
        (
            _train_and_test("bibtex"),
            _extreme_text("bibtex", "bibtex.xml"),
        ),
        _extreme("bibtex", "0B3lPMIHmG6vGcy1xM2pJZ09MMGM", "78db23bd26486d4188502abf6a39b856"),
        categorical="all",
        official_split=True,
    ),
    Entry(
        "delicious",
        "Web pages of del.icio.us and their tags",
        XC,
        "G. Tsoumakas, I. Katakis, I. Vlahavas: Effective and efficient multilabel classification in "
        "domains with large number of labels. ECML PKDD Workshop on Mining Multidimensional Data 2008",
        (16105, 500, 983),
        (
            _train_and_test("delicious"),
            _extreme_text("delicious", "delicious.xml"),
        ),
        _extreme("delicious", "0B3lPMIHmG6vGdG1jZ19VS2NWRVU", "e73730438e67ad179d724503e6770b1a"),
        categorical="all",
        official_split=True,
    ),
    Entry(
        "enron",
        "E-mails of Enron and their topics",
        MULAN,
        "B. Klimt, Y. Yang: The Enron corpus: a new dataset for email classification research. ECML 2004",
        (1702, 1001, 53),
        (_mulan("enron"),),
        _kdis("enron", "Enron"),
    ),
    Entry(
        "tmc2007-500",
        "Reports on the safety of flights and the problems in them, 500 words",
        MULAN,
        "A. N. Srivastava, B. Zane-Ulman: Discovering recurring anomalies in text reports regarding "
        "complex space systems. IEEE Aerospace Conference 2005",
        (28596, 500, 22),
        (_train_and_test("tmc2007-500"),),
        _kdis("tmc2007-500", "tmc2007-500"),
        official_split=True,
    ),
)

CATALOGUE: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def entry_of(name: str) -> Entry:
    """Return the entry of a dataset.

    Parameters
    ----------
    name : str
        The name of the dataset; case does not matter.

    Raises
    ------
    ValueError
        If the catalogue has no such dataset.

    Examples
    --------
    >>> entry_of("Yeast").shape
    (2417, 103, 14)
    """
    try:
        return CATALOGUE[name.lower()]
    except KeyError:
        raise ValueError(f"no dataset is called {name!r}; there are {', '.join(CATALOGUE)}") from None
