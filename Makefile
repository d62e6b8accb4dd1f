# Every target sets up what it needs; plain `make` lists them.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
DUCKDB155 := .venv-duckdb155
BENCH := .venv-bench
DUCKLAKE := .venv-ducklake
export PYTHON ?= python3
export LAKEBED_DUCKDB155_PYTHON := $(CURDIR)/$(DUCKDB155)/bin/python

PYTEST := $(BIN)/python -m pytest -n 2
WITH_SERVERS := $(BIN)/python scripts/test-env run --

.PHONY: help setup demo check lint format test interop spark jars faults explore bench bench-quick soak docs build clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: $(VENV)/.ready ## make .venv with the package and everything the checks need

demo: $(VENV)/.ready ## tables, then a real pipeline on Spark, on throw-away lakes (under 2 minutes)
	$(BIN)/python examples/flights/by_hand.py
	$(BIN)/python examples/flights/demo.py

check: lint ## format, lint, types, layers and the fast tests (under 2 minutes)
	$(PYTEST) -m "not (postgres or objects or interop or faults or spark or slow)"

lint: $(VENV)/.ready ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.ready ## format and repair what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: lint $(DUCKDB155)/.ready $(BENCH)/.ready $(DUCKLAKE)/.ready jars ## everything; what fails beside others runs once more, alone
	$(WITH_SERVERS) scripts/test-all $(BIN)/python

interop: $(VENV)/.ready $(DUCKDB155)/.ready jars ## other engines read what we publish
	$(WITH_SERVERS) $(PYTEST) -m interop

spark: $(DUCKDB155)/.ready jars ## the tests on Spark
	$(WITH_SERVERS) $(PYTEST) -m spark

jars: $(VENV)/.ready # Spark's connectors, once; .venv has PySpark and a Java
	$(BIN)/lakebed spark jars --set connectors --set jdbc > /dev/null

faults: $(VENV)/.ready ## a crash at every named step, then a check
	$(WITH_SERVERS) $(PYTEST) -m faults

explore: $(VENV)/.ready $(DUCKDB155)/.ready jars ## new random examples for the property tests and histories
	LAKEBED_EXPLORE=1 $(WITH_SERVERS) $(PYTEST) tests/properties tests/interop/test_random_histories.py

bench: $(VENV)/.ready $(BENCH)/.ready $(DUCKLAKE)/.ready ## measure beside other systems; ARGS="--only merge" chooses (docs/benchmarks.md)
	$(WITH_SERVERS) $(BIN)/python -m benchmarks.run $(ARGS)

bench-quick: $(VENV)/.ready $(BENCH)/.ready $(DUCKLAKE)/.ready ## small commits alone, fewer of them (under 3 minutes)
	$(BIN)/python -m benchmarks.run --repeat 2 --size commits=50 --size rows=30000 \
		--only appends --only append-writers --only buffered-writes $(ARGS)

soak: $(VENV)/.ready ## a lake under load for 20 minutes: writers, a reader, publishers, kills, checks; ARGS="--minutes 5"
	$(BIN)/python -m benchmarks.soak $(ARGS)

docs: $(VENV)/.ready ## write the generated pages and the list of public names, then test the docs
	$(BIN)/python scripts/generate_docs.py
	$(BIN)/python tests/test_public_api.py
	$(BIN)/python -m pytest tests/test_docs.py tests/test_public_api.py

build: $(VENV)/.ready ## build the wheel into dist/
	$(BIN)/python -m pip wheel --no-deps --no-build-isolation --wheel-dir dist .

clean: ## remove environments, caches and build results
	rm -rf $(VENV) $(DUCKDB155) $(BENCH) $(DUCKLAKE) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist

# Stamps: an environment is made again only when what it is made from changes.
$(VENV)/.ready: pyproject.toml scripts/make-venv
	scripts/make-venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# DuckDB's Iceberg and Delta readers come as wheels for 1.5.5 only: an environment of their own.
$(DUCKDB155)/.ready: tests/interop/requirements-duckdb155.txt scripts/make-venv
	scripts/make-venv $(DUCKDB155)
	$(DUCKDB155)/bin/python -m pip install --quiet --requirement $<
	touch $@

# What is measured against: at versions of its own, so that ours never change them.
$(BENCH)/.ready: benchmarks/requirements-peers.txt scripts/make-venv
	scripts/make-venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --requirement $<
	touch $@

# DuckLake runs on DuckDB 1.5.5 alone.
$(DUCKLAKE)/.ready: benchmarks/requirements-ducklake.txt scripts/make-venv
	scripts/make-venv $(DUCKLAKE)
	$(DUCKLAKE)/bin/python -m pip install --quiet --requirement $<
	touch $@
