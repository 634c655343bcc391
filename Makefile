# `make demo` and `make test` do all set-up by themselves; Python 3.11+ and make are all they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo test lint bench clean

demo: $(READY)
	$(BIN)/softrig demo

test: $(READY)
	$(BIN)/pytest -n auto

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/softrig bench

$(READY): pyproject.toml requirements/pinned.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "softrig needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/pinned.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	touch $(READY)

clean:
	rm -rf $(VENV) .numba .pytest_cache .mypy_cache .ruff_cache demo bench
