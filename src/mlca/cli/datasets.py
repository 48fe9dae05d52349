"""List, describe and fetch benchmark datasets.

Datasets are looked up in the folder that MLCA_DATA names, then in the cache (MLCA_CACHE, or mlca in the user's cache
folder). `fetch` downloads datasets that are in neither folder. The statistics are computed from the files, so `list`
reads all of them.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlca.datasets.catalogue import Entry

_COLUMNS = {
    "instances": ("rows", "d"),
    "numeric_attributes": ("numeric", "d"),
    "categorical_attributes": ("categorical", "d"),
    "labels": ("labels", "d"),
    "cardinality": ("cardinality", ".3f"),
    "density": ("density", ".4f"),
    "distinct_label_sets": ("label sets", "d"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="list all datasets with their statistics")
    info = actions.add_parser("info", help="describe a dataset: statistics, source, citation, folder")
    info.add_argument("name", metavar="NAME")
    fetch = actions.add_parser("fetch", help="download missing datasets")
    fetch.add_argument("names", metavar="NAME", nargs="+")
    for action in actions.choices.values():
        action.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """List, describe or fetch datasets; return the exit code."""
    if args.action == "list":
        _list(as_json=args.json)
    elif args.action == "info":
        _info(args.name, as_json=args.json)
    else:
        _fetch(args.names, as_json=args.json)
    return 0


def _list(*, as_json: bool) -> None:
    from mlca.datasets import CATALOGUE

    if as_json:
        print(json.dumps([_facts(entry) for entry in CATALOGUE.values()], indent=2))
        return
    print(f"{'':12}" + "".join(f"{title:>{len(title) + 2}}" for title, _ in _COLUMNS.values()))
    for entry in CATALOGUE.values():
        facts = _facts(entry)
        print(f"{entry.name:12}" + (_cells(facts) if facts["folder"] else "  not downloaded"), flush=True)


def _cells(facts: dict[str, Any]) -> str:
    return "".join(f"{facts[key]:>{len(title) + 2}{form}}" for key, (title, form) in _COLUMNS.items())


def _info(name: str, *, as_json: bool) -> None:
    from mlca.datasets.catalogue import entry_of
    from mlca.datasets.locations import manual_download

    entry = entry_of(name)
    facts = _facts(entry)
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    print(f"{entry.name}: {entry.title}")
    if facts["folder"]:
        for key, (title, form) in _COLUMNS.items():
            print(f"  {title:12}{facts[key]:{form}}")
    print(f"  {'split':12}{'official' if entry.official_split else 'none'}")
    print(f"  {'source':12}{entry.source}")
    print(f"  {'cite':12}{entry.citation}")
    if entry.note:
        print(f"  {'note':12}{entry.note}")
    print(f"  {'folder':12}{facts['folder'] or f'not downloaded; run mlca datasets fetch {entry.name}'}")
    if not facts["folder"]:
        print(f"  {manual_download(entry)}")


def _fetch(names: list[str], *, as_json: bool) -> None:
    from mlca.datasets.catalogue import entry_of
    from mlca.datasets.locations import fetch, find

    fetched = []
    for entry in [entry_of(name) for name in names]:
        if find(entry) is None:
            fetch(entry)
        fetched.append({"name": entry.name, "folder": _folder(entry)})
        if not as_json:
            print(f"{entry.name}: {fetched[-1]['folder']}", flush=True)
    if as_json:
        print(json.dumps(fetched, indent=2))


def _facts(entry: Entry) -> dict[str, Any]:
    """Return a dataset's catalogue entry and, if its files exist, its statistics."""
    from dataclasses import asdict

    from mlca.datasets import load_dataset, summarize

    facts = {
        "name": entry.name,
        "title": entry.title,
        "source": entry.source,
        "citation": entry.citation,
        "note": entry.note,
        "official_split": entry.official_split,
        "folder": _folder(entry),
    }
    if facts["folder"]:
        data = load_dataset(entry.name)
        facts |= asdict(summarize(data.Y, data.categorical))
    return facts


def _folder(entry: Entry) -> str | None:
    from mlca.datasets.locations import find

    found = find(entry)
    return None if found is None else str(next(iter(found[1].values())).parent)
