# Everything runs in the project's own .venv; the first command sets it up.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
JOBS ?= 2

.PHONY: demo serve soak test test-all lint types bench docs clean
.DELETE_ON_ERROR:

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mlca needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: $(VENV)/.installed  ## learn the paper's three-disc stream while labels appear, and draw the nodes
	$(BIN)/python examples/three_discs.py

serve: $(VENV)/.installed  ## a service that learns a generated stream, and its page at http://127.0.0.1:8000/
	$(BIN)/python examples/serve_a_stream.py --port 8000 --seconds inf

soak: $(VENV)/.installed  ## the service under load for an hour: memory, threads and descriptors stay level
	MLCA_SOAK_SECONDS=3600 $(BIN)/pytest -p no:xdist -s tests/serve/test_soak.py

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
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
	find src \( -name '*.nbi' -o -name '*.nbc' \) -delete
