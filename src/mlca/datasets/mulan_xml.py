"""Reader of Mulan's XML list of labels."""

from __future__ import annotations

from os import PathLike
from xml.parsers import expat

from mlca.datasets.files import bad_file, numbered_lines


def read_mulan_xml(path: str | PathLike[str]) -> list[str]:
    """Read the names of the labels from a ``labels`` file of Mulan.

    Parameters
    ----------
    path : path-like
        The file, perhaps with ``.gz`` or ``.bz2`` at its end.

    Returns
    -------
    list of str
        The names in the order of the file; the labels of a hierarchy parents first.

    Raises
    ------
    ValueError
        If the file is no list of labels; the message names file and line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.xml")
    ...     _ = path.write_text('<labels><label name="beach"/><label name="sunset"/></labels>')
    ...     read_mulan_xml(path)
    ['beach', 'sunset']
    """
    names: dict[str, None] = {}
    parser = expat.ParserCreate("utf-8", " ")  # lines arrive as UTF-8, whatever the file declares
    depth = 0

    def start(element: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        kind = element.rpartition(" ")[2]
        line = parser.CurrentLineNumber
        if kind != ("labels" if depth == 0 else "label"):
            raise bad_file(path, line, f"found <{kind[:40]}>; expected <labels> with <label name=...> inside")
        depth += 1
        if kind == "labels":
            return
        name = attributes.get("name")
        if not name:
            raise bad_file(path, line, "a label has no name")
        if name in names:
            raise bad_file(path, line, f"label {name!r} is listed twice")
        names[name] = None

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse_doctype(*_: object) -> None:
        # Entities that a document type declares can make a small file swell without end.
        raise bad_file(path, parser.CurrentLineNumber, "a list of labels needs no DOCTYPE; remove it")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse_doctype
    try:
        for _, line in numbered_lines(path):
            parser.Parse(line.encode(), False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise bad_file(path, error.lineno, f"not well-formed XML ({error}); fetch the file again") from None
    if not names:
        raise bad_file(path, 1, "the list has no label")
    return list(names)
