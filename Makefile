# The contributor's menu. Every target first installs what it needs, once.
# Needs: make, and Python 3.11 or newer.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
BIN := $(VENV)/bin
SEED ?= 1
STEPS ?= 2000
INTERRUPTS ?= 0
# Processes that test on Spark, each with a JVM of up to 2 GB. A process keeps one core busy, so two
# take little more than half the time of one. A file is not split, as its tests share what they build;
# the longest come first (tests/times.py), so that both processes end at the same time.
JVMS ?= 2
# make test SERVERS=1 has the tests that start servers too, in the same processes.
SERVERS ?=

# Compile once: tests start the command many times, and each start would compile all of it.
export PYTHONDONTWRITEBYTECODE :=
export CHROMIUM

# The first Python that is new enough; PYTHON=… names another one.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	if $$p -c '$(NEW_ENOUGH)' 2>/dev/null; then echo $$p; break; fi; done)

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# For those whose environment forbids Python to keep what it compiles, as containers often do.
COMPILE := $(BIN)/python -m compileall -q src
INSTALLED := $(VENV)/.installed
TOOLS := $(VENV)/.installed-dev

.PHONY: help
help: ## this menu
	@echo "make TARGET, with one of:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | \
	awk -F"|" '{ printf "%-13s %s\n", $$1, $$2 }'

.PHONY: install
install: $(INSTALLED) ## the command, at .venv/bin/infold

.PHONY: demo
demo: $(INSTALLED) ## a first load, late arrivals and a proof, on real data: two minutes
	@$(BIN)/infold demo

.PHONY: test
test: test-fast test-deep test-spark ## everything but what needs servers: some fifteen minutes

TIMES := build/times
PYTEST := $(BIN)/python -m pytest
# Thousands of small folders are made in memory, where there is room for them: a fifth less time.
ROOM := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 2000000 { print "/dev/shm" }')
IN_MEMORY := $(if $(ROOM),TMPDIR=$(ROOM))

# Without a limit of time for each, which is a thread for each of thousands of tests; the files of
# those that pass are removed at once, not one after the other at the end.
.PHONY: test-fast
test-fast: $(TOOLS) ## the fast tests: no Java, no other processes
	@$(IN_MEMORY) $(PYTEST) -m "not spark and not deep and not servers" --numprocesses auto --dist worksteal \
	  --junitxml=$(TIMES)/fast.xml -o faulthandler_timeout=0 -o tmp_path_retention_policy=failed

.PHONY: test-deep
test-deep: $(TOOLS) ## random programs and processes that die, without Java
	@$(PYTEST) -m "deep and not spark and not servers" --numprocesses auto --dist worksteal \
	  --junitxml=$(TIMES)/deep.xml

ON_SPARK := --numprocesses $(JVMS) --dist loadfile --no-loadscope-reorder

.PHONY: test-spark
test-spark: warm-up $(if $(SERVERS),need-postgresql need-chromium) ## the tests that start Spark
	@$(PYTEST) -m "$(if $(SERVERS),spark or servers,spark and not servers)" $(ON_SPARK) \
	  --junitxml=$(TIMES)/spark.xml

# With servers of their own, as somebody else than root where that is needed.
.PHONY: test-servers
test-servers: need-postgresql need-chromium warm-up ## the tests that start servers: PostgreSQL, a Spark cluster, catalogs, the page in a browser
	@$(PYTEST) -m servers tests/ledger tests/servers $(ON_SPARK) --junitxml=$(TIMES)/servers.xml

.PHONY: test-times
test-times: $(TOOLS) ## what the last tests cost: the most expensive ones, and the seconds of each folder
	@$(BIN)/python -m tests.times $(if $(RECORD),--record)

# The classes that Spark loads, in infold's cache: made once, in one process.
.PHONY: warm-up
warm-up: $(TOOLS)
	@$(BIN)/python -m infold.api.warm_up

.PHONY: check
check: lint test-fast ## format, lint, types, layers, and the tests that need no Java

.PHONY: lint
lint: $(TOOLS) ## check without its tests
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: format
format: $(TOOLS) ## format, and mend what can be mended
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

.PHONY: bench
bench: $(TOOLS) ## the measurements of bench/RESULTS.md
	@$(BIN)/python -m bench

.PHONY: soak
soak: $(TOOLS) ## random arrivals for long: make soak SEED=7 STEPS=10000
	@$(BIN)/python -m tests.soak --seed $(SEED) --steps $(STEPS) --interrupts $(INTERRUPTS)

.PHONY: docs
docs: $(TOOLS) ## the pages as a site with search, in build/site
	@$(BIN)/python docs/draw.py
	@$(BIN)/python docs/pictures.py
	@$(BIN)/python -m tests.docs.error_examples
	@$(BIN)/python -m docs.schemas
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Open build/site/index.html"

.PHONY: pictures
pictures: $(TOOLS) ## the pictures of commands in the docs, from a new demo: two minutes
	@rm -rf build/demo
	@$(BIN)/infold --no-engine demo build/demo
	@$(BIN)/python docs/pictures.py build/demo

.PHONY: mutants
mutants: $(TOOLS) ## small wrong changes to the program, each of which tests must notice
	@$(BIN)/python -m tests.mutants $(MUTANTS)

.PHONY: lock
lock: ## write new lock files (needs uv)
	@for out in requirements requirements-dev; do \
	  group=; if [ $$out = requirements-dev ]; then group="--group dev"; fi; \
	  uv pip compile pyproject.toml $$group --quiet --upgrade --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header \
	    --output-file $$out.lock; done
	@for one in airflow dagster; do \
	  uv pip compile tests/servers/$$one.in --quiet --upgrade --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header \
	    --output-file tests/servers/$$one.lock; done

.PHONY: clean
clean: ## remove what builds, tests and the demo left (not .venv)
	@rm -rf build dist demo spark-warehouse .pytest_cache .mypy_cache .ruff_cache \
	  .import_linter_cache .hypothesis bench/data
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# --- what the targets need

.PHONY: need-python
need-python:
	@if [ -z "$(PYTHON)" ] || ! $(PYTHON) -c '$(NEW_ENOUGH)' 2>/dev/null; then \
	  echo "Python 3.11 or newer is needed and none was found:" \
	    "apt-get install python3 python3-venv, brew install python@3.12," \
	    "or name one (make PYTHON=/path/to/python3)." >&2; exit 2; fi
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "Python's venv module is needed and $(PYTHON) has none:" \
	    "apt-get install python3-venv." >&2; exit 2; }

# Debian has the programs of a server in a folder of its own, and starts a server by itself.
.PHONY: need-postgresql
need-postgresql:
	@if command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then \
	  :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing PostgreSQL (apt-get install postgresql)"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install --yes --quiet=2 --no-install-recommends postgresql; \
	else \
	  echo "PostgreSQL's programs are needed and initdb was not found:" \
	    "apt-get install postgresql, brew install postgresql@15." >&2; exit 2; fi

# What opens the page as a person would.
.PHONY: need-chromium
need-chromium:
	@if [ -n "$(CHROMIUM)" ] || command -v chromium >/dev/null; then \
	  :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Chromium (apt-get install chromium)"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install --yes --quiet=2 --no-install-recommends chromium; \
	else \
	  echo "Chromium is needed and was not found: apt-get install chromium," \
	    "or name one (make CHROMIUM=/path/to/chromium)." >&2; exit 2; fi

$(BIN)/python: | need-python
	@$(PYTHON) -m venv $(VENV)

$(INSTALLED): requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing into $(VENV). Spark is large; the first time takes a minute or more."
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps -e .
	@$(COMPILE)
	@touch $@

$(TOOLS): requirements-dev.lock pyproject.toml | need-python $(BIN)/python
	@echo "Installing the tools into $(VENV). Spark is large; the first time takes a minute or more."
	@$(PIP) --require-hashes -r requirements-dev.lock
	@$(PIP) --no-deps -e .
	@$(COMPILE)
	@touch $(INSTALLED) $@
