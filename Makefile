# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= $(firstword $(foreach v,python3.13 python3.12 python3.11 python3.14 python3 python,$(if $(shell $(v) -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null && echo yes),$(v))))
BIN = .venv/bin
IMAGE_PYTHON ?= 3.12
TESTS ?= not soak and not slow
NEEDS = setup

# Where the environment sets it, every process compiles all that it imports anew: seconds each, in hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE
# Behind a proxy that signs for others, the machine's own store of certificates knows it.
export UV_SYSTEM_CERTS = 1

.DEFAULT_GOAL := help
.PHONY: help machine setup demo test check lint types layers tests soak bench wheel image site lock clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: .venv/.ready ## makes .venv from the committed lock

machine: ## names the programs that are missing here, and installs them where it may
	@PYTHON="$(PYTHON)" sh scripts/prepare_machine.sh $(NEEDS)

demo: NEEDS = demo
test tests soak: NEEDS = test

.uv/bin/uv: packaging/uv.txt | machine
	@test -n "$(PYTHON)" || { echo "Regreen needs Python 3.11 or newer: install it, or name it: make PYTHON=/path/to/python" >&2; exit 3; }
	@$(PYTHON) -m venv .uv
	@.uv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: -r packaging/uv.txt
	@touch $@

.venv/.ready: requirements-dev.lock packaging/script-tools/package-lock.json pyproject.toml playground/pyproject.toml | .uv/bin/uv
	@.uv/bin/uv venv --quiet --allow-existing --python "$$(command -v $(PYTHON))" .venv
	@.uv/bin/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock
	@.uv/bin/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable . --editable ./playground
	@sh packaging/script-tools/install.sh $(BIN) || echo "oxlint could not be installed: reviews of JavaScript and TypeScript will do without types" >&2
	@touch $@

demo: setup ## plays the whole main job on loopback: review, fix, bisect, schedule
	@$(BIN)/regreen demo $(ARGS)

# The type checker uses one processor; side by side with the tests it costs no time of its own.
test: setup ## lint, types, layers, and the tests that are not slow; soak and CI run the others
	@$(MAKE) --no-print-directory --jobs=2 check

check: lint types layers tests

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

# Without a restart limit of none, a test that kills its worker makes the run stand still. With REPEAT=1, tests that
# failed (status 1: nothing else went wrong) run once more, alone: a machine under load fails what it should not.
tests: setup
	$(BIN)/pytest -m "$(TESTS)" -n 4 --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(ARGS) || \
	{ [ $$? = 1 ] && [ -n "$(REPEAT)" ] && echo "=== once more, alone: what failed ===" && \
	$(BIN)/pytest -m "$(TESTS)" -p no:xdist --last-failed --last-failed-no-failures none; }

soak: setup ## the long suites: kills, attacks, load
	$(BIN)/pytest -m "soak or slow" -p no:xdist --timeout 3600 $(ARGS)

bench: setup ## lists the programs that measured what benchmarks/ reports
	@ls benchmarks/*.py

wheels: requirements.lock | .uv/bin/uv ## the locked wheels, for building the image where no index answers
	@.uv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: --python-version $(IMAGE_PYTHON) --dest wheels -r requirements.lock
	@touch wheels

wheel: setup ## the two packages as they are published, in dist
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	cd playground && ../$(BIN)/python -m hatchling build -t wheel -d ../dist

site: | .uv/bin/uv ## the documentation as a site, in build/site; a broken link ends it
	rm -rf build/site-pages && mkdir -p build/site-pages
	git ls-files -co --exclude-standard README.md CHANGELOG.md docs 'benchmarks/*.md' | tar cf - -T - | tar xf - -C build/site-pages
	.uv/bin/uv run --quiet --no-project --python "$$(command -v $(PYTHON))" --with-requirements packaging/site.txt zensical build --strict

image: ## the App's image; BASE=IMAGE builds it on another base, with what is in wheels/
	docker build --tag regreen $(if $(BASE),--network none --build-arg BASE=$(BASE)) .

# requirements.lock is what the image installs, packaging/action.txt names the part of it that the Action installs;
# requirements-dev.lock adds what the checks need.
EXTRAS = --extra app --extra types --extra traces --extra bedrock --extra vertex --extra foundry
COMPILE = .uv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11
lock: | .uv/bin/uv ## resolves the dependencies anew
	echo uv | .uv/bin/uv pip compile --quiet --universal --generate-hashes --upgrade --no-header --python-version 3.11 - -o packaging/uv.txt
	echo zensical | .uv/bin/uv pip compile --quiet --universal --generate-hashes --upgrade --no-header --python-version 3.11 - -o packaging/site.txt
	$(COMPILE) --upgrade $(EXTRAS) --group build --group playground pyproject.toml -o requirements.lock
	$(filter-out --generate-hashes,$(COMPILE)) --no-annotate --no-header --extra types --group build --constraint requirements.lock pyproject.toml -o packaging/action.txt
	$(COMPILE) --upgrade $(EXTRAS) --extra mcp --extra e2b --group dev --constraint requirements.lock pyproject.toml -o requirements-dev.lock

clean: ## removes what setup made
	rm -rf .venv .uv wheels dist
