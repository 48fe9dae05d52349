"""Reader of Mulan's XML list of labels."""

from __future__ import annotations

import codecs
from os import PathLike
from xml.parsers import expat

from mlca.tables.byte_streams import ByteStream, bad_file


def read_mulan_xml(path: str | PathLike[str]) -> list[str]:
    """Read the label names from the XML file of a Mulan dataset.

    Parameters
    ----------
    path : path-like
        The file, optionally with the suffix ``.gz`` or ``.bz2``.

    Returns
    -------
    list of str
        The names in the order of the file; in a hierarchy, parents first.

    Raises
    ------
    ValueError
        If the file is not a list of labels; the message names file and line.

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
    labels = _LabelList(path, "utf-8" if _is_utf8(content) else None)
    try:
        labels.parser.Parse(content.removeprefix(codecs.BOM_UTF8), True)
    except expat.ExpatError as error:
        raise bad_file(path, error.lineno, f"the file is not well-formed XML ({error}); fetch the file again") from None
    except (LookupError, ValueError) as error:  # an encoding that Python does not support
        if isinstance(error, UnicodeError | LookupError):
            raise bad_file(path, 1, f"the file is neither in UTF-8 nor in the declared encoding ({error})") from None
        raise
    if not labels.names:
        raise bad_file(path, 1, "the list contains no labels")
    return list(labels.names)


class _LabelList:
    """Collects label names from an XML parser in order, and rejects anything else."""

    def __init__(self, path: str | PathLike[str], encoding: str | None) -> None:
        self.names: dict[str, None] = {}
        self.parser = expat.ParserCreate(encoding, " ")
        self.parser.StartElementHandler = self._enter
        self.parser.EndElementHandler = self._leave
        self.parser.StartDoctypeDeclHandler = self._reject_doctype
        self._path, self._depth = path, 0

    def _enter(self, element: str, attributes: dict[str, str]) -> None:
        kind = element.rpartition(" ")[2]
        if kind != ("labels" if self._depth == 0 else "label"):
            raise self._fault(f"found <{kind[:40]}>; expected <labels> with <label name=...> inside")
        self._depth += 1
        if kind == "label":
            self._add(attributes.get("name"))

    def _leave(self, _: str) -> None:
        self._depth -= 1

    def _add(self, name: str | None) -> None:
        if not name:
            raise self._fault("a label has no name")
        if name in self.names:
            raise self._fault(f"label {name!r} is listed twice")
        self.names[name] = None

    def _reject_doctype(self, *_: object) -> None:
        # Entities declared in a document type can expand a small file without limit.
        raise self._fault("a list of labels needs no DOCTYPE; remove it")

    def _fault(self, problem: str) -> ValueError:
        return bad_file(self._path, self.parser.CurrentLineNumber, problem)


def _is_utf8(content: bytes) -> bool:
    """Return whether a file is valid UTF-8; many lists declare a wrong encoding."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
