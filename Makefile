# Each target installs what it needs: `make run` and `make test` need only Python 3.11 to 3.14.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PROGRAMS ?= .venv-programs
CONVERSATIONS ?= benchmarks/conversation.json

.PHONY: help run test test-programs test-slow test-all test-faults test-cluster check lint docs audit format bench bench-cluster bench-recall bench-meaning bench-store \
	bench-consolidation bench-answers clients plots setup clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 19

run: $(VENV)/.runtime  ## Install Recap, upgrade the database, and serve on http://127.0.0.1:8000
	exec $(BIN)/recap serve

test: $(VENV)/.dev  ## Run the fast tests, without browser, other programs and slow tests: minutes on two cores, with the installation
	$(BIN)/pytest -n auto --ignore tests/browser --ignore tests/faults -m "not slow and not faults"

# Only the files that have such tests are read, or one's fixture `place` that is slow on PostgreSQL: each of the workers reads them.
test-slow: $(VENV)/.dev  ## Run the slower tests: a browser, clients in other languages, whole server processes
	$(BIN)/pytest -n auto --dist worksteal tests/browser $$(grep -lE "mark\.slow|^def \w+\((\w+, )*place[,)]" tests/test_*.py tests/*/test_*.py) \
	    -m "(slow or browser) and not faults"

test-all: test test-slow  ## Run test and test-slow

test-faults: $(VENV)/.dev  ## Run the tests of crashes and load, and of the benchmarks that take long: kill -9, full disk, 300 clients, 48,000 turns; twenty minutes on two idle cores
	$(BIN)/pytest -s -v -p no:cacheprovider --timeout 0 -m faults tests/faults tests/test_benchmarks.py

test-cluster: $(VENV)/.dev  ## Kill nodes behind nginx, and PostgreSQL, under 60 clients; needs nginx and redis-server; eight minutes
	$(BIN)/pytest -s -v -p no:cacheprovider --timeout 0 -m faults tests/faults/test_cluster.py

test-programs: $(VENV)/.dev  ## Drive the programs of others that docs/clients.md lists, in environments of their own, and write its table; needs Node
	$(PYTHON) -m venv $(PROGRAMS)
	$(PYTHON) -m venv $(PROGRAMS)-llama-index
	$(PROGRAMS)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/programs/requirements.txt
	$(PROGRAMS)-llama-index/bin/python -m pip install --quiet --disable-pip-version-check -r tests/programs/requirements-llama-index.txt
	cd tests/programs && npm ci --ignore-scripts --loglevel=error
	$(BIN)/python -m tests.programs --venv $(PROGRAMS) --write $(OPTIONS)

check: lint  ## Check formatting, lint, types, import order, insecure code, and that the documentation is complete
	$(BIN)/pytest -n auto tests/test_layering.py tests/test_docs.py
	$(BIN)/pytest -q -rs tests/test_clients.py -k modules_fit_the_types
	@$(MAKE) --no-print-directory docs

lint: $(VENV)/.dev  ## Check what no test checks: formatting, lint, types, import order, insecure code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/bandit -q -c pyproject.toml -r . -x ./$(VENV),./tests

docs: $(VENV)/.docs  ## Build the documentation site, which Recap then serves at /docs/guide/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

audit: $(VENV)/.dev  ## Look for known vulnerabilities of the pinned packages; not part of check, because it needs internet access
	@$(BIN)/pip-audit --strict --disable-pip --no-deps -r requirements.txt || { \
	    echo "make audit: the vulnerabilities are listed above. Without a list, the database of vulnerabilities could not be read and nothing was audited."; \
	    exit 1; }

format: $(VENV)/.dev  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev  ## Measure what a turn costs in addition to the model, over HTTP: make bench OPTIONS="--turns 40 --conversations 5"
	$(BIN)/python -m benchmarks.turns $(OPTIONS)

bench-cluster: $(VENV)/.dev  ## Measure 1, 2 and 4 nodes on PostgreSQL beside SQLite, and both full of messages: make bench-cluster OPTIONS="--messages 5000"
	$(BIN)/python -m benchmarks.cluster $(OPTIONS)

bench-meaning: $(VENV)/.dev  ## Measure searches in other words, references, and what is shown of what nobody told: make bench-meaning SETS=folder OPTIONS="--set EMBEDDINGS=minilm"
	$(BIN)/python -m benchmarks.meaning $(SETS) $(OPTIONS)

bench-recall: $(VENV)/.dev  ## Measure how well each ranking finds answers: make bench-recall CONVERSATIONS=folder OPTIONS="--leave-one-out"
	$(BIN)/python -m benchmarks.recall $(CONVERSATIONS) $(OPTIONS)

bench-store: $(VENV)/.dev  ## Measure the store with up to a million items beside LangGraph's SqliteStore, a quarter of an hour or more: make bench-store OPTIONS="--items 1000 10000"
	PYTHONPATH=clients/python $(BIN)/python -m benchmarks.store $(OPTIONS)

bench-consolidation: $(VENV)/.dev  ## Measure which of 5,000 facts are merged, and which should be: make bench-consolidation OPTIONS="--facts 500"
	$(BIN)/python -m benchmarks.consolidation $(OPTIONS)

bench-answers: $(VENV)/.dev  ## Ask your models the questions of LoCoMo or LongMemEval, with a judge: OPENAI_API_KEY=... make bench-answers CONVERSATIONS=locomo10.json OPTIONS="--limit 100"
	$(BIN)/python -m benchmarks.answers $(CONVERSATIONS) $(OPTIONS)

clients: $(VENV)/.dev  ## Write what the clients for Python and JavaScript have of each call anew, after the API changed
	$(BIN)/python -m clients.generate

plots: $(VENV)/.dev  ## Draw the tables of docs/performance.md anew, after a figure changed
	$(BIN)/python docs/draw_plots.py

setup: $(VENV)/.dev  ## Only create the virtual environment

# Debian's venv without its package ensurepip leaves a Python without pip: with this, the next make makes it again.
.DELETE_ON_ERROR:

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 14) else "Recap needs Python 3.11 to 3.14; this is %d.%d. Choose one with: make PYTHON=python3.12 run" % v)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.txt requirements-mcp.txt requirements-docs.txt requirements-postgres.txt requirements-traces.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@ $(VENV)/.docs

$(VENV)/.docs: requirements.txt requirements-docs.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -r requirements-docs.txt
	@touch $@

clean:  ## Remove everything that make created, except the data
	rm -rf $(VENV) $(PROGRAMS) $(PROGRAMS)-llama-index .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/clients/node_modules tests/programs/node_modules
