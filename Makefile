# Every target, with what it is for. `make help` prints this list.
.DEFAULT_GOAL := help
BIN := .venv/bin
READY := .venv/.ready
SEED ?= 7
DEMO_SEED ?= 8
RELEASE ?= 15
ATTEMPTS ?= 3
SECONDS ?= 300
ROWS ?=
RUNS ?= 20
PARTS ?=
KILLS ?= 30
DEMO_BUG ?= lib-any-node-completes

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup: $(READY) ## the virtual environment with pinned dependencies, and Java 17

$(READY): requirements.lock pyproject.toml scripts/setup
	@scripts/setup

run: $(READY) ## one run of NDB under faults, with its verdict (SEED=7)
	@$(BIN)/seamark run --seed $(SEED)

run-docker: $(READY) ## the same with real processes and networks, in containers: 30 s of load (SEED=7)
	@SEAMARK_REQUIRE_DOCKER=1 scripts/docker
	@$(BIN)/seamark images seamark-node seamark-toxiproxy
	@$(BIN)/seamark run --runtime docker --time 30 --seed $(SEED)

demo: $(READY) ## a bug that we planted in the model of NDB is found, in half a minute
	@echo "We planted the bug $(DEMO_BUG): this run is meant to end with a finding (exit 1), and then make demo succeeds."
	@$(BIN)/seamark run --cluster ndb --bug $(DEMO_BUG) --seed $(DEMO_SEED) --time 20; code=$$?; \
	if [ $$code -eq 1 ]; then echo "Found, as planned."; else echo "The planted bug was not found (exit $$code)."; exit 1; fi

finding: $(READY) ## what PostgreSQL's SERIALIZABLE lets pass, with controls, in a container (RELEASE=15 ATTEMPTS=3)
	@SEAMARK_REQUIRE_DOCKER=1 scripts/docker
	@$(BIN)/python docs/findings/postgresql-serializable/in_container.py --release $(RELEASE) --attempts $(ATTEMPTS)

check: $(READY) ## format, lint, types, layers, fast tests
	@scripts/test static unit

test: $(READY) ## everything that a change must pass, with the time that each part took
	@scripts/browser
	@scripts/docker
	@scripts/test static unit simulation spark system

calibrate: $(READY) ## how soon planted bugs are found; fails if one is found less often than docs/calibration.json says
	@SEAMARK_REQUIRE_DOCKER=1 scripts/docker
	@$(BIN)/seamark calibrate ndb tutorial postgres --correct 1000 --compare docs/calibration.json

designs: $(READY) ## published designs without bugs, 1,000 runs of each under all faults: some hours (SEED=7000)
	@$(BIN)/seamark sweep tests/bench/designs.toml --seed $(SEED)

bench: $(READY) ## measurements: messages, simulation, journal, checking
	@scripts/bench

systems: $(READY) ## real systems under all faults, without power, with planted bugs: some five hours (RUNS=20, PARTS="power many")
	@SEAMARK_REQUIRE_DOCKER=1 scripts/docker
	@$(BIN)/python -m tests.bench.systems $(PARTS) $(RUNS)

track-record: $(READY) ## known defects of released systems, found again, with controls: docs/track-record.md (ROWS=)
	@SEAMARK_REQUIRE_DOCKER=1 scripts/docker
	@$(BIN)/python -m tests.bench.track_record $(ROWS)

fuzz: $(READY) ## the long mode of the fuzz tests: 10,000 inputs of each kind
	@SEAMARK_FUZZ_COUNT=10000 $(BIN)/pytest -q tests/fuzz tests/property/test_serial_orders.py

kills: $(READY) ## SIGKILL of check, sweep, hunt, shrink and a run in containers: what is lost, what is left (KILLS=30)
	@SEAMARK_REQUIRE_DOCKER=1 scripts/docker
	@$(BIN)/seamark images seamark-node seamark-toxiproxy
	@$(BIN)/python -m tests.bench.kills $(KILLS)

picture: $(READY) ## the picture of README, taken again in Chromium from the report of make demo
	@scripts/browser
	@$(BIN)/python -m tests.command.picture

hostile-serve: $(READY) ## seamark serve against 2,000 hostile connections and a store of hostile runs (SECONDS=300)
	@$(BIN)/python -m tests.bench.hostile_serve $(SECONDS)

mutants: $(READY) ## broken rules of the checks, and which of them no test notices (PART=1/5: a fifth of them)
	@$(BIN)/python -m tests.mutation.mutants $(PART)

clean: ## remove what was made: environment, caches, store
	@rm -rf .venv store .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info

.PHONY: help setup run run-docker demo finding check test calibrate designs bench picture mutants fuzz hostile-serve kills systems track-record clean
