# Everything runs in the project's own .venv; the first command sets it up.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
JOBS ?= 2
# One process more than cores: some tests wait for services, browsers and clocks.
SPREAD = -n $$(($(JOBS) + 1)) --dist worksteal
# Branches of the rooms that everything rests on; `make test COVERAGE=` runs without.
COVERAGE ?= --cov
# pytest looks at all of them together, this at each file.
COVERED = $(if $(COVERAGE),$(BIN)/python tests/covered.py)
INSTALL := pip install --quiet --disable-pip-version-check
# What was built is out of date when one of these changes; Python files are used where they lie.
SOURCES := pyproject.toml CMakeLists.txt $(wildcard build_backend/*.py src/kernels/*/*)

# Some containers forbid compiled bytecode. Reading scikit-learn from its sources takes three seconds more in each of the
# many processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo serve soak checked test test-all sanitized thread-sanitized lint types bench docs wheel check-wheel clean
.DELETE_ON_ERROR:

$(BIN)/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mlca needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# Packages are installed while the kernels are compiled. Of levels of processors the tests get the lowest and the best,
# `make test-all` all, and the demo, which needs fewer packages as well, the best, without what only tests ask.
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

# The second example runs beside the first and is heard after it.
demo:  ## learn the paper's three discs, then a help desk's tickets, while labels appear; explain, and draw both
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.best $(VENV)/.plots
	$(BIN)/python examples/tickets_stream.py > $(VENV)/tickets.txt & \
	$(BIN)/python examples/three_discs.py && wait $$! && cat $(VENV)/tickets.txt

serve: $(VENV)/.installed  ## a service that learns a generated stream, and its page at http://127.0.0.1:8000/
	$(BIN)/python examples/serve_a_stream.py --port 8000 --seconds inf

soak: $(VENV)/.installed  ## the service under load for an hour: memory, threads and descriptors stay level
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

# Lint and types need no kernels: they are done while those are compiled.
checked: | $(BIN)/pip
	@$(MAKE) --no-print-directory --jobs=3 $(VENV)/.ends $(VENV)/.dev lint types
	@$(MAKE) --no-print-directory $(VENV)/.installed

test: checked  ## lint, types and every test but the longest
	$(BIN)/pytest $(SPREAD) -m 'not slow' $(COVERAGE)
	$(COVERED)

test-all: checked  ## the longest tests too, and those of compiled code on kernels that notice their own mistakes
	@$(MAKE) --no-print-directory $(VENV)/.all
	$(BIN)/pytest $(SPREAD) -m 'not sanitized' --hypothesis-profile thorough $(COVERAGE)
	$(COVERED)
	$(MAKE) --no-print-directory sanitized thread-sanitized

# Kernels that stop at a foreign byte of memory or at undefined behaviour, in an environment that borrows the packages of
# .venv. `make sanitized TESTS="tests/peers -k window"` runs what it is told. They are several times as slow, so what
# takes its time in plain Python, or in what a test compiles itself, is marked plain and left out; and what is worth most
# here (18,000 of the 20,000 forged files) is marked sanitized and done here only.
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

# Kernels that report data races, under the tests in which threads share a model. Python itself is not built so, but its
# locks are seen, because the sanitizer is loaded first. Reports go past pytest, and fail the run when it ends.
RACES ?= tests/learner/test_threads.py tests/learner/test_rule_attacks.py tests/test_frames_while_learning.py \
	-k 'threads or whole_row or similarity_is_computed or readers_find'

thread-sanitized: $(VENV)/thread/.installed
	LD_PRELOAD="$(call PRELOADED,libtsan.so)" TSAN_OPTIONS=suppressions=$(CURDIR)/tests/thread_sanitizer.supp \
	$(VENV)/thread/bin/python -m pytest --capture=sys --timeout 3600 -m 'not slow' $(RACES)

bench: $(VENV)/.installed  ## speed, as ratios to this machine's own limits
	$(BIN)/mlca bench

# What is published, in dist/: the sources, and a wheel that is built of them and of nothing else. MLCA_LEVELS=best is for
# trying: such a wheel is for processors like this one.
MLCA_LEVELS ?= all
wheel: | $(BIN)/pip  ## an sdist, and a wheel made of it, in dist/
	$(BIN)/$(INSTALL) "build>=1.2"
	rm -rf dist
	$(BIN)/python -m build --config-setting=cmake.define.MLCA_LEVELS=$(MLCA_LEVELS)

EMPTY := $(VENV)/empty
check-wheel:  ## the wheel of dist/ in an empty environment, where it learns, explains, saves and is asked by its command
	rm -rf $(EMPTY)
	$(PYTHON) -m venv $(EMPTY)
	$(EMPTY)/bin/$(INSTALL) --only-binary :all: dist/mlca-*.whl
	cd $(EMPTY) && bin/python -I $(CURDIR)/tests/smoke.py

docs: $(VENV)/.installed  ## the site, in site/; any warning is an error
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache
