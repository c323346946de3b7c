# Everything a contributor types. `make help` explains each target.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup setup-system demo check test test-cost soak test-pythons packages sbom bench docs site format clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.ready  ## Make the virtual environment in .venv (done by the others when needed)

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

setup-system:  ## Install what only the system's packages bring: pgbouncer, and chromium for the tests of the pages
	@missing=; \
	command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || missing="$$missing pgbouncer"; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	[ -n "$$missing" ] || exit 0; \
	if ! command -v apt-get >/dev/null; then \
	    echo "missing:$$missing; there is no apt-get here: install them by your system's means" >&2; exit 1; \
	fi; \
	sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	$$sudo apt-get update -qq && $$sudo apt-get install -y --no-install-recommends $$missing

demo: setup  ## Run a lively sample app and show it in the terminal (Ctrl-C ends it)
	$(BIN)/rota demo $(args)

check: setup  ## Format, lint, types, layers, links of the docs, and whether all tests can be collected
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.site
	$(BIN)/python -m pytest --collect-only -qq >/dev/null  # two test files of one name, for instance, cannot

test: setup  ## Run all tests (the budget is 20 minutes of CPU, 16 by the clock on two idle cores; options: args="-k cron", samples=200000)
	ROTA_TEST_SAMPLES=$(samples) $(BIN)/python -m pytest -n auto --dist worksteal $(args)

test-cost: setup  ## Run all tests and show how much CPU they take, and which take the most
	$(BIN)/python -m tools.suite_cost -n auto --dist worksteal $(args)

soak: setup  ## Run all tests in their long forms: more seeds, kills and faults, every suite on every server (hours)
	ROTA_SOAK=1 ROTA_TEST_SAMPLES=200000 $(BIN)/python -m pytest -n auto --dist worksteal -o timeout=3600 $(args)

test-pythons:  ## Run the tests that need no server on every Python from 3.11 on that is here (options: args="-n 2")
	$(PYTHON) -m tools.pythons $(args)

packages: setup  ## Build wheel and sdist in dist, and try them on every Python that is here (options: args=--release)
	$(BIN)/python -m tools.packages $(args)

sbom: setup  ## Write the bill of materials of an install as CycloneDX JSON (options: extras=web,postgres)
	@$(BIN)/python -m tools.sbom $(extras)

bench: setup  ## Measure (options: store=redis or only=asrun, rounds=5 quick=1); fails where a must is missed
	$(BIN)/python -m bench $(addprefix --only ,$(only) $(store)) $(if $(rounds),--rounds $(rounds)) $(if $(quick),--quick)

docs: setup  ## Write docs/reference from the code, and the indexes of the docs
	$(BIN)/python -m tools.reference

site: setup  ## Build the docs as a site in site/; a link that leads nowhere fails
	$(BIN)/python -m tools.site

format: setup  ## Rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove the virtual environment, packages, the site and caches
	rm -rf site .site $(VENV) .venv-3.* dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
