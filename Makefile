# Holdfast needs python3 (3.11 or newer) and make; everything else is fetched into .venv.
#
# requirements/run.txt has the base packages, MCP and the PostgreSQL driver; base.txt is what `pip install .` brings.
# The files named .venv/….done record what is installed: a second `make run` starts at once, a changed lock file
# starts a new .venv, a changed pyproject.toml installs Holdfast itself again.

# The system's Python where it is new enough: distributions compile it with profile-guided optimisation, pyenv does not,
# and Holdfast takes a quarter more time with the latter.
PYTHON  ?= $(shell /usr/bin/python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
             && echo /usr/bin/python3 || echo python3)
WORKERS ?= 8
ARGS    ?=

PYTEST  := .venv/bin/python -m pytest --workers $(WORKERS)
# Whether the goal needs the tests' packages: then they are installed together with the others.
TESTS   := $(filter-out run demo failover,$(MAKECMDGOALS))
LOCKS   := $(patsubst %,requirements/%.txt,install run test lint build)

# Variables of the user's shell that would change .venv: module paths, a --user install. PYTHONDONTWRITEBYTECODE would slow
# the tests: they start hundreds of servers, and compiling takes a third of each start.
unexport PYTHONHOME PYTHONPATH PIP_USER PIP_TARGET PIP_PREFIX PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run demo test check bench bench-peers prove prove-the-proofs conformance failover docs dist image lock clean moved

help: ## Show this list
	@echo "Holdfast. ARGS passes more arguments to a command, for example: make test ARGS='-k lease'"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: .venv/run.done ## Start the server on 127.0.0.1:7700
	@exec .venv/bin/holdfast serve $(ARGS)

demo: .venv/run.done ## Five agents race for one job; the winner is killed and another continues
	@.venv/bin/python examples/five_agents.py

test: .venv/test.done ## Run the tests, on SQLite and on a private PostgreSQL
	@$(PYTEST) $(ARGS)

check: .venv/test.done .venv/lint.done ## Lint, format, types, import rules, then the tests
	@echo "Checking style ..."
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@echo "Checking types ..."
	@.venv/bin/mypy
	@echo "Checking import rules ..."
	@.venv/bin/lint-imports
	@echo "Running the tests ..."
	@$(PYTEST) $(ARGS)

bench: .venv/test.done ## Measure speed beside bare uvicorn (ARGS='--against COMMIT': and beside an older commit)
	@.venv/bin/python -m bench $(ARGS)

bench-peers: .venv/test.done ## Measure Redis, etcd, PostgreSQL tables and queues beside Holdfast (ARGS=--install gets them)
	@.venv/bin/python -m bench.peers $(ARGS)

prove: .venv/test.done ## Run the tests with every proof at full size (slow)
	@HOLDFAST_PROOF=full $(PYTEST) -o faulthandler_timeout=1200 $(ARGS)

prove-the-proofs: .venv/test.done ## Plant one fault after another; the test named for it must fail (ARGS='P4' chooses)
	@.venv/bin/python scripts/prove-the-proofs $(ARGS)

conformance: .venv/test.done ## Test the MCP endpoint with the official suite, the Inspector and ten clients
	@scripts/mcp-conformance .venv/bin/python

failover: .venv/run.done ## Failover drill: PostgreSQL under Patroni, ten rounds of each fault (needs root, 25 minutes)
	@scripts/failover-drill $(ARGS)

docs: ## Write the documentation as a web site into build/site and check its links
	@scripts/docs $(PYTHON)

dist: ## Build sdist, wheel and SBOM into dist/ and try them in new environments (PYTHON=python3.13 tries another Python)
	@scripts/dist $(PYTHON)

image: ## Build the container image and try it; where nothing can build it, check its Containerfile
	@scripts/image

lock: ## Write requirements/ (ARGS=--upgrade takes the newest versions)
	@scripts/lock $(PYTHON) $(ARGS)

clean: ## Remove .venv and all build files; your data stays
	rm -rf .venv build dist .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# --- installation ---------------------------------------------------------------------------

.venv/run.done: .venv/new.done pyproject.toml
	@echo "Installing Holdfast ..."
	@scripts/install --no-build-isolation --editable .
	@touch $@

.venv/test.done: .venv/run.done
	@scripts/need-apt "command -v chromium-headless-shell" chromium-headless-shell
	@[ -e $@ ] || echo "Installing what the tests need ..."
	@[ -e $@ ] || scripts/install --require-hashes -r requirements/test.txt
	@touch $@

.venv/lint.done: .venv/run.done
	@[ -e $@ ] || echo "Installing what the checks need ..."
	@[ -e $@ ] || scripts/install --require-hashes -r requirements/lint.txt
	@touch $@

# A change in any lock file rebuilds .venv, so that it never holds a package that no lock file names.
.venv/new.done: $(LOCKS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Holdfast needs Python 3.11 or newer (to use another one: make run PYTHON=python3.12)." >&2; exit 1; }
	@scripts/need-apt "$(PYTHON) -c 'import ensurepip, venv'" python3-venv
	@echo "Creating .venv ..."
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@echo "Installing what Holdfast needs ..."
	@-scripts/install --require-hashes -r requirements/install.txt
	@scripts/install --require-hashes -r requirements/$(if $(TESTS),test,run).txt -r requirements/build.txt
	@$(if $(TESTS),touch .venv/test.done)
	@printf '%s' '$(CURDIR)' > .venv/place
	@touch $@

# A .venv holds absolute paths: it is rebuilt in a folder that was copied or moved, or when its Python no longer exists.
ifneq ($(shell cat .venv/place 2>/dev/null)$(if $(realpath .venv/bin/python),,?),$(CURDIR))
.venv/new.done: moved
endif
moved:
