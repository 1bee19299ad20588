# The few commands. `make run` and `make test` set everything up themselves.
.DEFAULT_GOAL := help
.PHONY: help run test setup seconds venv kernels check unit sim interop cluster spark soak bench compat metrics coverage lock format

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# Where the environment forbids bytecode, each of the hundreds of processes that tests start would
# compile its modules anew: half of what a broker needs to start.
export PYTHONDONTWRITEBYTECODE :=
SEED ?= 0
N ?= 250

# Suites that a checkout does not have (yet) are left out, not failed.
have = $(if $(wildcard $(1)),$(1))
UNIT := $(filter-out tests/interop tests/cluster tests/spark tests/sim tests/fakes tests/soak,\
	$(patsubst %/,%,$(wildcard tests/*/)))

help:
	@echo "make run      a broker, two clients and a Spark pipeline; SECONDS=60 ends by itself"
	@echo "make test     everything CI runs: check unit interop cluster spark sim"
	@echo "make setup    only the environment: .venv, clients, JDK, Maven, kcat"
	@echo "make check    format, lint, types, layers, tidy, generated documents"
	@echo "make unit     pure tests and scenarios, in random order"
	@echo "make sim      N seeds on virtual time, from SEED on (SEED=$(SEED) N=$(N))"
	@echo "make interop  other people's clients and tools against us"
	@echo "make cluster  real broker processes, kills included"
	@echo "make spark    local Spark against a real broker"
	@echo "make soak     the long runs"
	@echo "make bench    side by side with Apache Kafka (FULL=1 for every scenario)"
	@echo "make compat metrics coverage  write the generated documents"
	@echo "make format   let ruff format and mend;  make lock  renew requirements.lock"

# The Java clients are large and only some suites want them: `make run` does not wait for them.
setup: venv
	@$(PYTHON) -m tools.environment programs
	@$(BIN)/python -m tools.kafka_cache >/dev/null || true

venv:
	@test -n "$(PYTHON)" || { echo "setup: Python 3.11 or newer is needed" >&2; exit 1; }
	@$(PYTHON) -m tools.environment

# A mistake is told before minutes are spent on an environment.
seconds:
	@test -n "$(PYTHON)" || { echo "setup: Python 3.11 or newer is needed" >&2; exit 1; }
	@$(PYTHON) -m tools.demo.seconds '$(SECONDS)'

run: seconds venv
	@$(PYTHON) -m tools.environment java
	@$(BIN)/python -m tools.demo '$(SECONDS)'

# Three suites at a time, the longest first: most of them wait for other programs most of the time. The
# checks are one of them, and come first: types take minutes of one core.
# One that fails does not keep the others from being run. What is set up is not set up again: that
# would let the short ones go first. What was skipped, and why, comes last; with CI set in the
# environment a client, a jar or a program that is missing is a failure. Up to three failed tests are
# run once more by themselves (tools/failures.py).
test: setup
	@skips=$$(mktemp -d); failures=$$(mktemp -d); trap 'rm -rf "$$skips" "$$failures"' EXIT; \
	TEST_SKIPS=$$skips TEST_FAILURES=$$failures $(MAKE) --no-print-directory -k -j3 -o setup -o venv \
		check spark interop unit cluster sim; status=$$?; \
	$(BIN)/python -m tools.failures $$failures || status=1; \
	$(BIN)/python -m tools.skips $$skips; exit $$status

# Tests that failed (1) are decided at the end of `make test`; whatever else went wrong, here.
suite = @$(PYTEST) -q $(1) || { [ $$? = 1 ] && [ -n "$$TEST_FAILURES" ] && echo $@ >> $$TEST_FAILURES/suites; }

# Compiled once, before suites start processes that would all compile them.
kernels: venv
	@$(BIN)/python -m ottla.protocol.records.columns.warm || true

check: venv
	@$(BIN)/ruff format --check --quiet . || { echo "format: run make format" >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy $(foreach folder,src tests tools benchmarks,$(call have,$(folder)))
	@$(BIN)/lint-imports
	@$(BIN)/python -m tools.tidy
	@$(BIN)/python -m tools.compat --check
	@$(BIN)/python -m tools.metrics --check
	@$(BIN)/python -m tools.coverage --check

unit: venv kernels
	$(call suite,$(UNIT))

sim: venv kernels
	$(if $(call have,tests/sim),$(call suite,--sim-seed $(SEED) --sim-count $(N) tests/sim))

interop cluster spark: setup kernels
	$(if $(wildcard tests/$@),$(call suite,--durations 15 --timeout 300 tests/$@))

soak: setup
	@$(PYTEST) -q --timeout 0 -m slow tests

bench: setup
	@$(BIN)/python -m benchmarks $(if $(FULL),--full)

compat metrics coverage: venv
	@$(BIN)/python -m tools.$@

format: venv
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --fix --quiet .

# Names and hashes only: which index they come from is the installing machine's business. gssapi has
# a lock of its own: it is compiled, which not every machine can do.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate

lock: venv
	@$(COMPILE) --all-extras --no-emit-package gssapi --no-emit-package decorator \
		pyproject.toml --output-file requirements.lock >/dev/null
	@echo 'gssapi>=1.9' | $(COMPILE) - --output-file requirements-kerberos.lock >/dev/null
