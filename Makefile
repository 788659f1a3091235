# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= $(firstword $(foreach v,python3.13 python3.12 python3.11 python3.14 python3 python,$(if $(shell $(v) -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null && echo yes),$(v))))
UV_VERSION = 0.13.9
BIN = .venv/bin
IMAGE_PYTHON ?= 3.12
TESTS ?= not soak and not slow

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types layers tests soak bench image lock clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: .venv/.ready ## makes .venv from the committed lock

.uv/bin/uv:
	@test -n "$(PYTHON)" || { echo "Regreen needs Python 3.11 or newer: install it, or name it: make PYTHON=/path/to/python" >&2; exit 3; }
	@$(PYTHON) -m venv .uv || { echo "cannot make a virtual environment: install python3-venv" >&2; exit 3; }
	@.uv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$(UV_VERSION)"

.venv/.ready: requirements.lock pyproject.toml | .uv/bin/uv
	@.uv/bin/uv venv --quiet --allow-existing --python "$$(command -v $(PYTHON))" .venv
	@.uv/bin/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	@.uv/bin/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup ## plays the whole main job on loopback: review, fix, bisect, schedule
	@$(BIN)/regreen demo $(ARGS)

test: check ## everything that must hold before a change lands

check: lint types layers tests

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

tests: setup
	$(BIN)/pytest -m "$(TESTS)" -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

soak: setup ## the long suites: kills, attacks, load
	$(BIN)/pytest -m "soak or slow" -p no:xdist --timeout 3600 $(ARGS)

bench: setup ## lists the programs that measured what benchmarks/ reports
	@ls benchmarks/*.py

wheels: requirements.lock | .uv/bin/uv ## the locked wheels, for building the image where no index answers
	@.uv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: --python-version $(IMAGE_PYTHON) --dest wheels -r requirements.lock
	@touch wheels

image: ## the App's image
	docker build --tag regreen .

lock: | .uv/bin/uv ## resolves the dependencies anew
	.uv/bin/uv pip compile --quiet --universal --generate-hashes --group dev --python-version 3.11 --upgrade pyproject.toml -o requirements.lock

clean: ## removes what setup made
	rm -rf .venv .uv wheels
