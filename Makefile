# Everything runs in the project's own .venv; the first command sets it up.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
JOBS ?= 2
# One process more than cores, because some tests wait for services, browsers and clocks.
SPREAD = -n $$(($(JOBS) + 1)) --dist worksteal
# Branch coverage of the core modules; `make test COVERAGE=` turns it off.
COVERAGE ?= --cov
# pytest checks the total, this script each file.
COVERED = $(if $(COVERAGE),$(BIN)/python tests/covered.py)
INSTALL := pip install --quiet --disable-pip-version-check
# A change of these needs a new build; Python files are used in place.
SOURCES := pyproject.toml CMakeLists.txt $(wildcard build_backend/*.py src/kernels/*/*)

# Some containers forbid compiled bytecode. Without it, importing scikit-learn takes three seconds more in each of the
# many test processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo serve soak checked test test-all sanitized thread-sanitized lint types bench docs wheel check-wheel clean
.DELETE_ON_ERROR:

$(BIN)/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mlca needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# Packages are installed while the kernels are compiled. Tests use the lowest and the best processor level, `make
# test-all` uses all, and the demo, which needs fewer packages, uses the best without test functions.
$(VENV)/.installed: $(SOURCES) | $(BIN)/pip
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.ends $(VENV)/.dev
	touch $(VENV)/.best $(VENV)/.plots $@

$(VENV)/.plots $(VENV)/.dev: $(VENV)/.%: pyproject.toml | $(BIN)/pip
	$(BIN)/python build_backend/requirements.py $* | $(BIN)/$(INSTALL) --no-compile --requirement /dev/stdin
	touch $@

$(VENV)/.best $(VENV)/.ends $(VENV)/.all: $(VENV)/.%: $(SOURCES) | $(BIN)/pip
	$(BIN)/$(INSTALL) --no-deps --config-settings=cmake.define.MLCA_LEVELS=$* \
	--config-settings=cmake.define.MLCA_PROBES=$(if $(filter best,$*),OFF,ON) --editable .
	touch $@

# The second example runs in parallel; its output follows that of the first.
demo:  ## learn the paper's three discs and a help desk's tickets while labels appear; explain and draw both
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.best $(VENV)/.plots
	$(BIN)/python examples/tickets_stream.py > $(VENV)/tickets.txt & \
	$(BIN)/python examples/three_discs.py && wait $$! && cat $(VENV)/tickets.txt

serve: $(VENV)/.installed  ## run a service that learns a generated stream; web page at http://127.0.0.1:8000/
	$(BIN)/python examples/serve_a_stream.py --port 8000 --seconds inf

soak: $(VENV)/.installed  ## test the service under load for an hour: memory, threads and descriptors stay level
	MLCA_SOAK_SECONDS=3600 $(BIN)/pytest -p no:xdist -s tests/serve/test_soak.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema github-workflows-require-timeout .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

types: $(VENV)/.dev
	$(BIN)/mypy

# Lint and types need no kernels, so they run while these are compiled.
checked: | $(BIN)/pip
	@$(MAKE) --no-print-directory --jobs=3 $(VENV)/.ends $(VENV)/.dev lint types
	@$(MAKE) --no-print-directory $(VENV)/.installed

test: checked  ## run lint, types and all tests except the slow ones
	$(BIN)/pytest $(SPREAD) -m 'not slow' $(COVERAGE)
	$(COVERED)

test-all: checked  ## run all tests, and those of compiled code on sanitized kernels
	@$(MAKE) --no-print-directory $(VENV)/.all
	$(BIN)/pytest $(SPREAD) -m 'not sanitized' --hypothesis-profile thorough $(COVERAGE)
	$(COVERED)
	$(MAKE) --no-print-directory sanitized thread-sanitized

# Kernels that stop at invalid memory accesses or undefined behaviour, in an environment that uses the packages of .venv.
# `make sanitized TESTS="tests/peers -k window"` selects tests. They are several times as slow, so tests that spend their
# time in plain Python or in compilers are marked plain and left out; tests that are most useful here (18,000 of the
# 20,000 forged files) are marked sanitized and run here only.
TESTS ?= tests/kernels tests/learner tests/peers tests/storage tests/test_merging.py tests/test_mixed_rows.py
PRELOADED = $(foreach library,$(1) libstdc++.so,$$(c++ -print-file-name=$(library)))

$(VENV)/address/.installed: SANITIZERS := address,undefined
$(VENV)/thread/.installed: SANITIZERS := thread
$(VENV)/address/.installed $(VENV)/thread/.installed: $(VENV)/%/.installed: $(SOURCES) | $(VENV)/.installed
	$(BIN)/python -m venv $(@D)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	> $$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/borrowed.pth
	$(@D)/bin/$(INSTALL) --no-deps --config-settings=build-dir=build/$* \
	--config-settings=cmake.define.MLCA_SANITIZE=$(SANITIZERS) --config-settings=cmake.define.MLCA_LEVELS=best \
	--config-settings=cmake.define.MLCA_PROBES=ON --editable .
	touch $@

sanitized: $(VENV)/address/.installed
	LD_PRELOAD="$(call PRELOADED,libasan.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	$(VENV)/address/bin/python -m pytest $(SPREAD) --timeout 3600 -m 'not plain' $(TESTS)

# Kernels that report data races, with the tests in which threads share a model. Python itself is not instrumented, but
# its locks are seen, because the sanitizer is loaded first. Reports bypass pytest, and fail the run when it ends. Threads
# started after a fork end a process under this sanitizer, so tests of forks are left out.
RACES ?= tests/learner/test_threads.py tests/learner/test_rule_attacks.py tests/test_frames_while_learning.py

thread-sanitized: $(VENV)/thread/.installed
	LD_PRELOAD="$(call PRELOADED,libtsan.so)" TSAN_OPTIONS=suppressions=$(CURDIR)/tests/thread_sanitizer.supp \
	$(VENV)/thread/bin/python -m pytest --capture=sys --timeout 3600 -m 'races and not slow' $(RACES)

bench: $(VENV)/.installed  ## measure speed, as ratios to this machine's own limits
	$(BIN)/mlca bench

# Release files in dist/: the sources, and a wheel built from them alone. MLCA_LEVELS=best is for tests: such a wheel is
# for processors like this one.
MLCA_LEVELS ?= all
wheel: | $(BIN)/pip  ## build an sdist, and a wheel from it, in dist/
	$(BIN)/$(INSTALL) "build>=1.2"
	rm -rf dist
	$(BIN)/python -m build --config-setting=cmake.define.MLCA_LEVELS=$(MLCA_LEVELS)

EMPTY := $(VENV)/empty
check-wheel:  ## test the wheel of dist/ in an empty environment
	rm -rf $(EMPTY)
	$(PYTHON) -m venv $(EMPTY)
	$(EMPTY)/bin/$(INSTALL) --only-binary :all: dist/mlca-*.whl
	cd $(EMPTY) && bin/python -I $(CURDIR)/tests/smoke.py

docs: $(VENV)/.installed  ## build the site in site/; any warning is an error
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache
