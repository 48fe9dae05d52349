# Everything runs in the project's own .venv; the first command sets it up.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
JOBS ?= 2

.PHONY: demo test test-all lint types bench clean
.DELETE_ON_ERROR:

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mlca needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# Numba's cache follows each file's own time stamp, not that of the kernels it calls:
# a kernel that changed makes every compiled function stale.
KERNELS := $(wildcard src/mlca/learner/kernels/*.py src/mlca/peers/*.py)
$(VENV)/.kernels: $(VENV)/.installed $(KERNELS)
	find src \( -name '*.nbi' -o -name '*.nbc' \) -delete
	touch $@

demo: $(VENV)/.kernels  ## learn the paper's three-disc stream while labels appear, and draw the nodes
	$(BIN)/python examples/three_discs.py

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

test: lint types $(VENV)/.kernels  ## lint, types and every test but the longest
	$(BIN)/pytest -n $(JOBS) -m 'not slow'

test-all: lint types $(VENV)/.kernels  ## the longest tests too
	$(BIN)/pytest -n $(JOBS)

bench: $(VENV)/.kernels  ## speed, as ratios to this machine's own limits
	$(BIN)/mlca bench

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
	find src \( -name '*.nbi' -o -name '*.nbc' \) -delete
