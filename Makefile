# Everything sets itself up: `make run` and `make test` need Python 3.11 to 3.13 and nothing else.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CONVERSATIONS ?= benchmarks/conversation.json
ENV := PYTHONDONTWRITEBYTECODE=1

.PHONY: help run test test-slow test-all test-faults check audit format bench bench-scale bench-concurrency bench-replay bench-recall \
	bench-prefix setup clean

help:  ## Say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 19

run: $(VENV)/.runtime  ## Make the environment, bring the database up to date, serve on http://127.0.0.1:8000
	$(BIN)/flask --app wsgi db upgrade
	MALLOC_ARENA_MAX=1 exec $(BIN)/gunicorn wsgi:app

test: $(VENV)/.dev  ## The suite, without browsers, other programs and slow tests: four minutes with the installation on two cores
	$(BIN)/pytest -n auto -m "not slow and not browser and not faults"

test-slow: $(VENV)/.dev  ## The rest: a browser, other programs' clients, whole processes
	$(BIN)/pytest -n auto -m "(slow or browser) and not faults"

test-all: test test-slow  ## Both

test-faults: $(VENV)/.dev  ## Crash and load: kill -9, full disk, 300 clients, 48,000 turns; twenty minutes on two quiet cores
	$(BIN)/pytest -s -v -p no:cacheprovider --timeout 0 -m faults tests/faults

check: $(VENV)/.dev  ## Format, lint, types, layers, patterns of insecure code, and that the documents name what there is
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/bandit -q -c pyproject.toml -r . -x ./$(VENV),./tests
	$(BIN)/pytest -n auto tests/test_layering.py tests/test_docs.py

audit: $(VENV)/.dev  ## Look for known weaknesses of what is pinned; needs the internet, so it is no part of check
	@$(BIN)/pip-audit --strict --disable-pip --no-deps -r requirements.txt || { \
	    echo "make audit: weaknesses are listed above; or if there is no list, their database could not be read and nothing was audited."; \
	    exit 1; }

format: $(VENV)/.dev  ## Put the code in its one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev  ## What a turn costs around the model, over HTTP: make bench OPTIONS="--turns 40 --conversations 5"
	$(BIN)/python -m benchmarks.turns $(OPTIONS)

bench-scale: $(VENV)/.dev  ## The same with up to a million messages, a quarter of an hour or more: make bench-scale OPTIONS="--messages 1000 10000 --single 1000"
	$(BIN)/python -m benchmarks.scale $(OPTIONS)

bench-concurrency: $(VENV)/.dev  ## 300 streams of a slow model at once: make bench-concurrency OPTIONS="--streams 20 --turns 1"
	$(BIN)/python -m benchmarks.concurrency $(OPTIONS)

bench-replay: $(VENV)/.dev  ## Import, search and chat a recorded conversation over HTTP: make bench-replay OPTIONS="--turns 10"
	$(BIN)/python -m benchmarks.replay benchmarks/conversation.json --serve $(OPTIONS)

bench-recall: $(VENV)/.dev  ## Compare the rankings: make bench-recall CONVERSATIONS=folder OPTIONS="--leave-one-out --scale"
	$(BIN)/python -m benchmarks.recall $(CONVERSATIONS) $(OPTIONS)

bench-prefix: $(VENV)/.dev  ## How much of each prompt the model server has just seen: make bench-prefix CONVERSATIONS=folder OPTIONS="--limit 50"
	$(BIN)/python -m benchmarks.prefix $(CONVERSATIONS) $(OPTIONS)

setup: $(VENV)/.dev  ## Only make the environment

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "Recap needs Python 3.11 to 3.13; this is %d.%d. Say which with: make PYTHON=python3.12 run" % v)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.dev: requirements.txt requirements-dev.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@ $(VENV)/.runtime

clean:  ## Remove what was made, but never the data
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/clients/node_modules
