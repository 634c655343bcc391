# `make demo` and `make test` do all set-up by themselves; Python 3.11+ and make are all they need.
# With npm and chromium there, `make test` also compares GLBs with three.js and runs the Khronos validator over them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
JUDGES := $(if $(shell command -v npm),.node/ready)

.PHONY: demo test lint bench docs clean

demo: $(READY)
	$(BIN)/softrig demo

test: $(READY) $(JUDGES)
	$(BIN)/pytest -n auto -rs

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/softrig bench

# The documentation site, into site/; a warning is an error.
docs: $(VENV)/docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "Open site/index.html; to search it, too: python3 -m http.server --directory site"

$(VENV)/docs-ready: $(READY) requirements/docs.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/docs.txt
	touch $@

$(READY): pyproject.toml requirements/pinned.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "softrig needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/pinned.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	touch $(READY)

# By name and version, into a folder of its own; without a network the tests that need them are skipped.
.node/ready: tests/browser/package.json
	mkdir -p .node
	cp tests/browser/package.json .node/package.json
	cd .node && npm install --silent --no-package-lock --ignore-scripts --no-audit --no-fund && touch ready \
	    || echo "npm cannot fetch three.js and gltf-validator: tests that need them are skipped"

clean:
	rm -rf $(VENV) .node .numba .pytest_cache .mypy_cache .ruff_cache demo bench site
