# Two commands for a fresh machine:  make demo   runs the main job on a real local control plane
#                                    make test   passes the tests
# Everything they need is set up by themselves. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?=
INTEGRATION_WORKERS ?= 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: venv
venv: $(STAMP) ## the virtual environment in .venv, with vcjob installed

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "vcjob needs Python 3.11 or newer as '$(PYTHON)'; found: $$($(PYTHON) --version 2>&1). Set PYTHON=/path/to/python3.11." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "installing vcjob and its tools into $(VENV) (about a minute) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

.PHONY: binaries
binaries: venv ## etcd, kube-apiserver and the others, found, downloaded or built once (up to ten minutes)
	@$(BIN)/vcjob cluster binaries

.PHONY: demo
demo: binaries ## a real Job on a real API server, from kubectl apply to its end
	@$(BIN)/python scripts/demo.py

.PHONY: test unit integration
test: unit integration ## all tests that need no containers
unit: venv ## tests of the pure core, without a cluster
	$(BIN)/python -m pytest tests/unit $(PYTEST_ARGS)
integration: binaries ## tests on a real control plane
	$(BIN)/python -m pytest tests/integration -n $(INTEGRATION_WORKERS) --dist loadgroup $(PYTEST_ARGS)

.PHONY: lint
lint: venv ## style, types, imports between rooms, generated files
	$(BIN)/ruff check src tests scripts
	$(BIN)/ruff format --check src tests scripts
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m vcjob.api.crds --out deploy/crds --check

.PHONY: crds
crds: venv ## deploy/crds from the models, and what is made of them: the chart's copies, the plain manifests
	$(BIN)/python -m vcjob.api.crds --out deploy/crds
	@$(MAKE) --no-print-directory chart-crds manifests

BENCH_ARGS ?=
.PHONY: bench
bench: binaries ## measure the operator beside the API server's own limit (some minutes; BENCH_ARGS="--life --shape 1x1000")
	$(BIN)/python tests/bench/throughput.py $(BENCH_ARGS)

.PHONY: bench-rest
bench-rest: binaries ## measure what the operator costs when it has nothing to do, and when it starts (five minutes)
	$(BIN)/python tests/bench/rest.py $(BENCH_ARGS)

SOAK_ARGS ?=
.PHONY: soak
soak: binaries ## let Jobs come and go for an hour and see that nothing grows (SOAK_ARGS="--minutes 3")
	$(BIN)/python tests/bench/soak.py $(SOAK_ARGS)

.PHONY: clean
clean: ## remove what make has made in this folder
	rm -rf $(VENV) build/wheelhouse dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

-include make/*.mk
