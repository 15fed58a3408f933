# Every target, with what it is for. `make help` prints this list.
.DEFAULT_GOAL := help
BIN := .venv/bin
READY := .venv/.ready
SEED ?= 7

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup: $(READY) ## the virtual environment with pinned dependencies, and Java 17

$(READY): requirements.lock pyproject.toml scripts/setup
	@scripts/setup

run: $(READY) ## one run of the tutorial under faults, with its verdict (SEED=7)
	@$(BIN)/seamark run --seed $(SEED)

check: $(READY) ## format, lint, types, layers, fast tests
	@scripts/test static unit

test: $(READY) ## everything that a change must pass, with the time that each part took
	@scripts/test static unit simulation spark

bench: $(READY) ## measurements: messages, simulation, journal, checking
	@scripts/bench

fuzz: $(READY) ## the long mode of the fuzz tests: 10,000 inputs of each kind
	@SEAMARK_FUZZ_COUNT=10000 $(BIN)/pytest -q tests/fuzz

clean: ## remove what was made: environment, caches, store
	@rm -rf .venv store .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info

.PHONY: help setup run check test bench fuzz clean
