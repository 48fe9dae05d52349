"""Plain wording: phrases that readers found odd must not appear in new text.

`tests/wording.json` counts the phrases that are still left in older files. A file may lose some, but not gain any; a
file that is not listed has none. After cleaning a file, run `python -m tests.test_wording` to lower the counts.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
COUNTS = Path(__file__).with_name("wording.json")
FOLDERS = {
    "docs": ("*.md", "*.ipynb"),
    "examples": ("*.py",),
    "src": ("*.py", "*.hpp", "*.cpp"),
    "tests": ("*.py",),
    "build_backend": ("*.py",),
}
PHRASES = {
    r"\banew\b": "again, or re-",
    r"\b(?:nobody|everybody|whoever)\b": "name the actor",
    r"\b(?:is|are|was|were|be) told\b": "reported, raised, shown, distinguished",
    r"\b(?:goes?|going) on (?:learning|from)\b": "continue training, resume",
    r"\bso many\b": "that many, or the number",
    r"(?<!there )\b(?:is|are) no (?!longer|more|less|better|worse|different)[a-z]": "is not a",
    r"\b(?:rows?|list|line|set|one|threads?|label|(?:micro)?seconds|billion|points) "
    r"a (?:core|row|second|node|call|column|unit|fit|disc|task)\b": "per",
    r"\b(?:is|are) (?:always )?welcome\b": "supported",
    r"\b(?:beyond measure|at hand|to be had)\b": "beyond the limit, available",
    r"\bspeaks? (?:most )?(?:for|against)\b": "evidence for, evidence against",
    r"\b(?:keeps?|kept) (?:its|their) word\b|\bof one's own\b": "say what it does",
    r"\bwho (?:asks?|wants?|comes?|began)\b": "name the actor",
    r"\bmade[- ]up (?!time)": "generated, invented",
    r"\bnow and then\b|\bagain and again\b": "sometimes, repeatedly",
    r"\bfor ever\b": "forever",
    r"\bas (?:it|they) (?:stands?|comes?)\b": "unchanged",
    r"\b(?:turn|turns|turned) up\b": "appear",
    r"\bin the place of\b|\b(?:came|come|comes) true\b": "instead of, observed",
    r"\b(?:says?|tells?) (?:which|what|whether|how|that|so)\b": "shows, describes, states",
    r"\brefuse[sd]?\b": "reject, raise",
}
# Places that name the phrases themselves, or quote others.
EXEMPT = {"tests/test_wording.py"}


def counted() -> dict[str, int]:
    """Return the number of odd phrases by file, without files that have none."""
    files = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml")]
    files += [path for folder, kinds in FOLDERS.items() for kind in kinds for path in (ROOT / folder).rglob(kind)]
    found = {}
    for path in sorted(files):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        number = sum(len(re.findall(phrase, text, re.IGNORECASE)) for phrase in PHRASES)
        if number and name not in EXEMPT:
            found[name] = number
    return found


def test_new_text_has_no_odd_phrases():
    allowed = json.loads(COUNTS.read_text(encoding="utf-8"))
    more = {name: number for name, number in counted().items() if number > allowed.get(name, 0)}
    assert not more, f"write it plainly ({', '.join(PHRASES.values())}): odd phrases by file, {more}"


def test_odd_phrases_are_found_and_plain_ones_are_not():
    odd = ["a float is no name", "computed anew", "Nobody asks", "the user is told", "rows a unit", "made-up rows"]
    plain = ["there is no name", "it is no longer slow", "rows per second", "a call continues training"]
    assert [any(re.search(phrase, text, re.IGNORECASE) for phrase in PHRASES) for text in odd] == [True] * len(odd)
    assert not any(re.search(phrase, text, re.IGNORECASE) for phrase in PHRASES for text in plain)


if __name__ == "__main__":
    COUNTS.write_text(json.dumps(counted(), indent=1) + "\n", encoding="utf-8")
