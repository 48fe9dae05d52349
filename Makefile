# Everything runs in the project's own .venv; the first command sets it up.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
JOBS ?= 2

INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check
# What was built is out of date when one of these changes; Python files are used where they lie.
SOURCES := pyproject.toml CMakeLists.txt $(wildcard build_backend/*.py src/kernels/*)

.PHONY: demo test test-all lint types bench docs clean
.DELETE_ON_ERROR:

$(VENV)/.built: $(SOURCES)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mlca needs Python 3.11 or newer; set PYTHON=...")'
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[plots]'
	touch $@

# By name, not by path: the package is there already, so pip adds what is missing and builds nothing again.
$(VENV)/.installed: $(VENV)/.built
	$(INSTALL) 'mlca[dev]'
	touch $@

demo: $(VENV)/.built  ## learn the paper's three-disc stream while labels appear, and draw the nodes
	$(BIN)/python examples/three_discs.py

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

test: lint types  ## lint, types and every test but the longest
	$(BIN)/pytest -n $(JOBS) -m 'not slow'

test-all: lint types  ## the longest tests too
	$(BIN)/pytest -n $(JOBS)

bench: $(VENV)/.installed  ## speed, as ratios to this machine's own limits
	$(BIN)/mlca bench

docs: $(VENV)/.installed  ## the site, in site/; any warning is an error
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache
