# Each target makes .venv and installs what it needs; nothing is done twice.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP     = $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Real benchmark data, where there is any; tests that need it are skipped otherwise.
ifneq ($(wildcard ../shared/data),)
export GRASPAD_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test lint types figures bench-smoke clean

demo: $(VENV)/.user          ## fit and score the built-in example
	$(BIN)/graspad demo

test: lint types             ## everything that must hold before a change lands
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: $(VENV)/.dev           ## style and import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev          ## static types
	$(BIN)/mypy

figures: $(VENV)/.dev        ## the pictures in docs/
	$(BIN)/python docs/make_figures.py

bench-smoke: $(VENV)/.dev    ## a one-minute benchmark: two series a set, four methods, tables on the screen
ifdef GRASPAD_DATA
	$(BIN)/graspad bench run --data '$(GRASPAD_DATA)' --sets SMAP,SMD --methods hbos,random,hbos-smooth,grasp --limit 2 \
	  --jobs 2 --out bench-smoke.csv
	$(BIN)/graspad bench table --results bench-smoke.csv
else
	@echo "skipped: set GRASPAD_DATA to a folder with SMAP/ and SMD/ in mTSBench's layout (docs/benchmark.md)"
endif

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.user: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable '.[report,parquet]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.user

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
