# Every target sets up what it needs; CI runs `make check`, the same as here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXTRAS := $(VENV)/.extras
LOOP := .venv-loop
# One thread per process: the tests run in parallel and must not fight over the cores.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help install demo test test-long test-loop extras test-extras lint format types check bench bench-recipes clean

help:  ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml setup.py disco_cli/_kernel.c
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

install: $(READY)  ## Create .venv with disco and all that the other targets need

demo: $(READY)  ## Predict held-out classifiers from 100 samples each, beside the truth
	@$(BIN)/python sample_data/demo.py

test: $(READY)  ## Run the tests
	$(TEST_ENV) $(BIN)/python -m pytest --quiet --numprocesses auto -m 'not slow'

test-long: $(READY)  ## Run the long statistical and fuzzing suites too
	$(TEST_ENV) $(BIN)/python -m pytest --quiet --numprocesses auto

test-loop: $(READY)  ## Evaluate, select, evaluate again and predict with lm-evaluation-harness and inspect_ai
	PYTHON=$(PYTHON) bash tests/loop/install.sh $(LOOP)
	DISCO_LOOP=$(LOOP) $(TEST_ENV) $(BIN)/python -m pytest --quiet -m loop tests/loop

$(EXTRAS): $(READY)
	@# aiobotocore, which s3fs needs, names the boto3 that goes with it; pip alone may try them all in vain.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dask,s3]' 'aiobotocore[boto3]' 'moto[server]>=5'
	@touch $@

extras: $(EXTRAS)  ## Install what Dask, URLs and S3 need, and a store to test with

test-extras: extras  ## Test Dask, URLs and S3 for real, on this machine
	$(TEST_ENV) $(BIN)/python -m pytest --quiet tests/disagreement/test_cluster.py \
		tests/disagreement/test_same_bytes.py tests/test_s3.py tests/files/test_location.py

lint: $(READY)  ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY)  ## Check the types
	$(BIN)/mypy

check: lint types test  ## All three: what CI runs

bench: $(READY)  ## Measure start-up and prediction against baselines in the same run
	$(BIN)/python benchmarks/startup.py

bench-recipes: $(READY)  ## Measure the recipes on ../shared/data, and how long they take
	$(BIN)/python benchmarks/recipes.py
	$(BIN)/python benchmarks/recipes_time.py

clean:  ## Remove .venv, caches and what was built
	rm -rf $(VENV) $(LOOP) build *.egg-info disco_cli/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis
