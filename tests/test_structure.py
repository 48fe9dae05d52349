"""The structure of the sources, as described in docs/inside.md: imports, declared packages, unique names."""

import ast
import inspect
import re
import sys
import tomllib
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import mlca
from tests.docs.pages import api_reference, blocks_of, pages

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src"
INSIDE = (ROOT / "docs" / "inside.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MOST_LINES = 500
MOST_HEADER_LINES = 700

# Packages that are imported under another name than they are installed.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "markdown_it": "markdown-it-py"}


def name_of(path):
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted((SOURCES / "mlca").rglob("*.py"))}


@cache
def trees():
    """Return the syntax tree of each module, parsed on first use: every process collects this file."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def part_of(module):
    """Return the part of the package that a module belongs to: a folder, or a file at the top level."""
    return module.split(".")[1] if "." in module else ""


def imported(module):
    """Return all imports of a module, by statement or by a module name in a string, at any place in it."""
    found = set()
    for node in ast.walk(trees()[module]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are written in full"
            found |= {resolved(node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in MODULES:
            found.add(node.value)
    return found


def resolved(module, name):
    """Return the module that `from module import name` loads; names exported by `mlca` are defined in other modules."""
    if f"{module}.{name}" in MODULES:
        return f"{module}.{name}"
    return mlca._MODULES.get(name, module) if module == "mlca" else module


def imports_of_parts():
    """Return the parts of the package that each part imports, from the sources."""
    known = {part_of(module): set() for module in MODULES}
    for module in MODULES:
        parts = {part_of(target) for target in imported(module) if target.split(".")[0] == "mlca"}
        known[part_of(module)] |= parts - {part_of(module), ""}
    return known


def stated_imports():
    """Return the parts in the order of the table in docs/inside.md, each with those that it imports by that table."""
    stated = {}
    table = INSIDE.split("## The path of a row")[0]
    for parts, known in re.findall(r"^\| (`.*?) \|.*\| (.*) \|$", table, re.MULTILINE):
        for part in re.findall(r"`(\w+)/?`", parts):
            stated[part] = set(re.findall(r"`(\w+)/?`", known))
    return stated


def test_table_lists_the_imports_of_every_part():
    known = imports_of_parts()
    del known[""], known["__main__"]  # the package itself, and `python -m mlca`
    assert stated_imports() == known


def test_no_imports_are_circular():
    """Each part imports only parts before it in the table."""
    before = set()
    for part, imported_parts in stated_imports().items():
        assert imported_parts <= before, f"{part} imports {imported_parts - before}, which the table has below it"
        before.add(part)


def packages_of(module):
    return {target.split(".")[0] for target in imported(module)} - sys.stdlib_module_names - {"mlca"}


@pytest.mark.parametrize(
    ("part", "allowed"),
    [
        ("learner", {"numpy", "scipy"}),
        ("kernels", set()),
        ("client", set()),
        ("jsonrows", set()),
        ("storage", {"numpy"}),
        ("tables", {"numpy", "scipy", "sklearn", "pyarrow"}),  # frames are recognised by their methods
    ],
)
def test_framework_free_parts_import_only_allowed_packages(part, allowed):
    assert set().union(*(packages_of(module) for module in MODULES if part_of(module) == part)) <= allowed


def requirements(lines):
    return {re.match(r"[\w.-]+", line)[0].lower() for line in lines} - {"mlca"}


def test_every_package_that_is_imported_is_declared():
    core = requirements(PROJECT["dependencies"])
    extras = requirements(line for lines in PROJECT["optional-dependencies"].values() for line in lines)
    for module in MODULES:
        needed = {DISTRIBUTIONS.get(package, package) for package in packages_of(module)}
        assert needed <= core | extras, f"{module} imports {needed - core - extras}, which pyproject.toml has not"


def test_every_package_that_is_required_is_imported():
    imports = set().union(*map(packages_of, MODULES))
    installed = {DISTRIBUTIONS.get(package, package) for package in imports}
    assert requirements(PROJECT["dependencies"]) <= installed


def test_packages_of_the_tests_are_declared():
    declared = requirements(PROJECT["dependencies"])
    declared |= requirements(line for lines in PROJECT["optional-dependencies"].values() for line in lines)
    imports = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            imports |= {name.split(".")[0] for name in names}
    foreign = imports - sys.stdlib_module_names - {"docs", "mlca", "tests"}
    assert {DISTRIBUTIONS.get(name, name.replace("_", "-")) for name in foreign} - declared == set()


def test_missing_extras_are_reported_by_name():
    """A module that needs an extra at import uses `needing`; others import the extra inside functions."""
    core = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl"}
    allowed = {
        "mlca.serve.request_bodies",
        "mlca.serve.asgi",
        "mlca.serve.routes",
        "mlca.serve.responses",
        "mlca.serve.server",
    }  # `mlca serve` checks all of its extras at once
    for module, tree in trees().items():
        for node in tree.body:
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
            heavy = {name.split(".")[0] for name in names} - sys.stdlib_module_names - core - {"mlca"}
            assert not heavy or module in allowed, f"{module} imports {heavy} without a word"


def names_of(tree, *kinds):
    """Return the names that a module assigns, or defines by statements of the given kinds."""
    for node in tree.body:
        if isinstance(node, kinds):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def types_of(tree):
    """Return the names of a module's classes and type aliases that are not private."""
    return [name for name in names_of(tree, ast.ClassDef) if re.fullmatch(r"(?=.*[a-z])[A-Z]\w+", name)]


def functions_of(tree):
    """Return the names of a module's public functions, including assigned ones such as partials."""
    return [name for name in names_of(tree, ast.FunctionDef, ast.AsyncFunctionDef) if re.match("[a-z]", name)]


# `mlca bench`, `mlca datasets` and `mlca serve` are in modules of the command's name, which is that of a package.
COMMANDS_OF_PACKAGES = {"mlca.cli.bench", "mlca.cli.datasets", "mlca.cli.serve"}


def test_module_names_occur_once():
    places = defaultdict(list)
    for module in MODULES.keys() - COMMANDS_OF_PACKAGES:
        places[module.rpartition(".")[2]].append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_type_names_are_unique():
    places = defaultdict(list)
    for module, tree in trees().items():
        for name in types_of(tree):
            places[name].append(module)
    assert places["Learner"] and {name: found for name, found in places.items() if len(found) > 1} == {}


# Names that all modules of a kind have: commands, studies, and interfaces for other kinds of rows.
ROLES = {"configure", "run", "main", "tasks", "section", "lines_of", "fit", "partial_fit"}


def test_function_names_are_unique():
    places = defaultdict(list)
    for module, tree in trees().items():
        for name in set(functions_of(tree)) - ROLES:
            places[name].append(module)
    assert places["load"] == ["mlca.classifier"] and places["encode_json"] == ["mlca.serve.responses"]
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_modules_are_short_and_packages_have_a_long_docstring():
    for module, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= MOST_LINES, f"{module} is longer than {MOST_LINES} lines"
        essay = ast.get_docstring(trees()[module])
        assert essay, f"{module} does not describe its purpose"
        assert not re.search(r"(^|\.)(utils?|helpers?|common|misc)$", module), f"{module}: name what it is about"


def test_headers_are_short():
    headers = sorted((SOURCES / "kernels").rglob("*.?pp"))
    long = [path.name for path in headers if path.read_text(encoding="utf-8").count("\n") > MOST_HEADER_LINES]
    assert headers and long == []


def test_public_names_match_the_api_pages():
    page = re.findall(r"^::: (mlca[\w.]*)\.(\w+)$", api_reference(), re.MULTILINE)
    assert {name for module, name in page if module == "mlca"} == set(mlca.__all__) - {"__version__"}
    for module, name in page:
        home = import_module(module)
        assert hasattr(home, name), f"{module} has no {name}"
        assert name in getattr(home, "__all__", [name]), f"{name} is not in the __all__ of {module}"


PARTS = ("active", "client", "dask", "datasets", "metrics", "peers", "plots", "river", "statistics", "tables")


@pytest.mark.parametrize("module", ["mlca", *(f"mlca.{part}" for part in PARTS)])
def test_every_public_name_has_an_example_that_runs(module):
    """Examples are a docstring's, which are doctests, or those of a page, which run in tests/docs."""
    shown = set(re.findall(r"^::: mlca[\w.]*\.(\w+)$", api_reference(), re.MULTILINE))
    blocks = [block for page in pages() for block in blocks_of(page.read_text(encoding="utf-8"))]
    examples = "".join(block.text for block in blocks if block.kind == "python")
    home = import_module(module)
    for name in set(home.__all__) - {"__version__"}:
        assert name in shown, f"docs/api/ does not show {module}.{name}"
        tells = ">>>" in (getattr(home, name).__doc__ or "") or re.search(rf"\b{name}\b", examples)
        assert tells, f"{module}.{name} has no example, neither in its docstring nor on a page"


def test_every_method_of_the_api_pages_has_an_example():
    blocks = [block for page in pages() for block in blocks_of(page.read_text(encoding="utf-8"))]
    examples = "".join(block.text for block in blocks if block.kind == "python")
    shown = re.findall(r"^::: (mlca[\w.]*)\.(\w+)\n((?:[ ]+.*\n)*)", api_reference(), re.MULTILINE)
    without = []
    for module, name, options in shown:
        home = getattr(import_module(module), name)
        if not isinstance(home, type) or "{members: false" in options:
            continue
        only = re.search(r"members: \[(.*)\]", options)
        for method in vars(home) if only is None else only[1].split(", "):
            if method.startswith("_") or not inspect.isfunction(getattr(home, method)):
                continue
            documents = (home.__doc__ or "") + (getattr(home, method).__doc__ or "") + examples
            if not re.search(rf"\b{method}\(", documents):
                without.append(f"{module}.{name}.{method}")
    assert shown and without == []


def test_version_is_the_same_in_all_places():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1] == mlca.__version__
    assert "version" in PROJECT["dynamic"] and "version" not in PROJECT
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\d\S*)", changes, re.MULTILINE)[1] == mlca.__version__


def test_tests_that_cover_attacks_exist():
    tests = ROOT / "tests"
    named = re.findall(r"`([\w/]+\.py)`", (tests / "ATTACKS.md").read_text(encoding="utf-8"))
    assert named and not [name for name in named if not (tests / name).is_file()]
