# Two commands do everything: `make demo` and `make test`. Each builds .venv when there is none.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DOCS_VENV := .venv-docs
DOCS   := $(DOCS_VENV)/.installed

.PHONY: help env demo test test-slow attack lint format bench docs docs-serve clean

help:            ## this list
	@grep -hE '^[a-z-]+: .*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

env: $(STAMP)    ## build the environment in .venv

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "natgrad needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@echo "Building the environment in $(VENV) (about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: env        ## train a network on the 3D Poisson equation and draw it (about two minutes)
	@$(BIN)/python examples/demo.py --out out/demo

test: env        ## the test suite (2 cores, no GPU)
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

test-slow: env   ## the checks that take minutes
	$(BIN)/python -m pytest -m "slow and not attack"

attack: env      ## kill, damage and misuse it as nobody would, and count what comes of it (a long while)
	$(BIN)/python -m pytest tests/attack -m attack -s

lint: env        ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: env      ## let ruff rewrite
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: env       ## every part of a step against the machine's own rates, and the peak memory of each strategy
	$(BIN)/python -m benchmarks.step
	$(BIN)/python -m benchmarks.memory

docs: $(DOCS)    ## build the site into site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict

docs-serve: $(DOCS)  ## show the site at http://127.0.0.1:8000 while you write
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs serve

$(DOCS): pyproject.toml  # an environment of its own: the tests do not wait for it
	@test -x $(DOCS_VENV)/bin/python || $(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

clean:           ## remove the environment and everything made
	rm -rf $(VENV) $(DOCS_VENV) site out dist build .pytest_cache .mypy_cache .ruff_cache
