# Droidfleet. `make help` lists the targets. Everything lives in .venv; nothing global, no root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# More than there are cores: many tests wait for real programs.
WORKERS ?= 3

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Droidfleet needs Python 3.11 or newer; set PYTHON=python3.x")'
	@echo "Installing into $(VENV) (once; about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]'
	@touch $@

.PHONY: install
install: $(VENV)/.installed ## Make the virtual environment in .venv.

.PHONY: demo
demo: install ## Run a shopping task on five virtual phones and show the results (KEEP=1 leaves it running).
	@$(BIN)/python -m droidfleet_demo $(if $(KEEP),--keep)

.PHONY: test
test: install ## Run the whole test suite.
	@# Tests start hundreds of processes: without bytecode each of them would compile all of it again.
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: lint
lint: install ## Check format, lint, imports, protobuf files and generated files.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/buf lint
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && ./scripts/generate_stubs.sh "$$tmp" $(BIN) && \
	  diff -r "$$tmp/droidfleet" shared/droidfleet -x __pycache__ || { echo 'Generated stubs differ: run `make proto`.'; exit 1; }

.PHONY: type
type: install ## Check types, strictly.
	$(BIN)/mypy

.PHONY: format
format: install ## Format the code.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: proto
proto: install ## Generate the gRPC stubs from proto/.
	./scripts/generate_stubs.sh shared $(BIN)

.PHONY: bench
bench: install ## Measure, as ratios within one run; writes build/bench.json and a table.
	PYTHONPATH=tests $(BIN)/python -m benchmarks $(BENCH)

.PHONY: simulate
simulate: install ## Live through SEEDS simulated worlds from FIRST on (2000 from 0); a failing one prints its history.
	PYTHONHASHSEED=0 PYTHONPATH=tests $(BIN)/python -m simulation --seeds $(or $(SEEDS),2000) --first $(or $(FIRST),0)

.PHONY: oracle
oracle: install ## Hold the planner of rollouts against a slow oracle in CASES random rollouts (1000000).
	PYTHONPATH=tests $(BIN)/python -m oracle $(CASES)

.PHONY: chaos
chaos: install ## Kill, pause and cut a fleet under load for MINUTES (5), by SEED (1); report in build/chaos/.
	PYTHONPATH=tests $(BIN)/python -m chaos --minutes $(or $(MINUTES),5) --seed $(or $(SEED),1)

.PHONY: chaos-full
chaos-full: install ## The same with 100,000 executions and 450 kills; takes some two hours.
	PYTHONPATH=tests $(BIN)/python -m chaos --full --seed $(or $(SEED),1) --report docs/reliability

.PHONY: clean
clean: ## Remove the virtual environment and everything generated.
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
