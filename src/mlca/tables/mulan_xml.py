"""Reader of Mulan's XML list of labels."""

from __future__ import annotations

import codecs
from os import PathLike
from xml.parsers import expat

from mlca.tables.streams import ByteStream, bad_file


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
    with ByteStream(path) as stream:
        content = bytes(stream.read_all())
    names: dict[str, None] = {}
    parser = expat.ParserCreate("utf-8" if _is_utf8(content) else None, " ")
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
        parser.Parse(content.removeprefix(codecs.BOM_UTF8), True)
    except expat.ExpatError as error:
        raise bad_file(path, error.lineno, f"not well-formed XML ({error}); fetch the file again") from None
    except (LookupError, ValueError) as error:  # an encoding that Python does not know
        if isinstance(error, UnicodeError | LookupError):
            raise bad_file(path, 1, f"neither UTF-8 nor what it declares ({error})") from None
        raise
    if not names:
        raise bad_file(path, 1, "the list has no label")
    return list(names)


def _is_utf8(content: bytes) -> bool:
    """Whether a file is UTF-8, whatever it declares: many lists declare another encoding than they have."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
