# Two commands matter: `make demo` (the main job on built-in text) and `make test` (the whole suite).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core-installed
DEV := $(VENV)/.dev-installed
DEMO := demo
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --require-hashes --no-deps
AUDIT := $(VENV)-audit/.installed
ASK := $(VENV)-audit/bin/pip-audit --disable-pip --strict --progress-spinner off
UNHASHED := requirements-torch.lock

.PHONY: help demo test heavy pages check torture audit lint format docs lineage lectures bench load clean
.DEFAULT_GOAL := help

help:  ## this list
	@echo "Regard. Targets:"
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

$(CORE): requirements.lock requirements-build.lock requirements-torch.lock pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Regard needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Regard into $(VENV) (once; this downloads PyTorch) ..."
	@$(LOCKED) -r requirements.lock
	@$(PIP) -r requirements-torch.lock
	@$(LOCKED) -r requirements-build.lock
	@$(PIP) --no-deps --no-build-isolation --config-settings editable_mode=compat --editable .
	@touch $@

$(DEV): $(CORE) requirements-dev.lock requirements-kenlm.lock
	@echo "Installing the test tools ..."
	@$(LOCKED) -r requirements-dev.lock
	@$(LOCKED) --no-build-isolation -r requirements-kenlm.lock 2> $(VENV)/kenlm.log || \
	  echo "KenLM could not be built here (it needs a C++ compiler and cmake; see $(VENV)/kenlm.log): its parity tests will be skipped."
	@touch $@

demo: $(CORE)  ## n-gram, RNN, LSTM and Transformer on built-in text, side by side; under 5 minutes
	@$(BIN)/regard compare recipes/demo.yaml --jobs 2 --out $(DEMO)

test: $(DEV)  ## the tests; under 10 minutes on 2 cores
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy > $(VENV)/mypy.log 2>&1 & types=$$!; \
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not heavy and not pages"; tests=$$?; \
	wait $$types; types=$$?; cat $(VENV)/mypy.log; exit $$((tests ? tests : types))

check: $(DEV)  ## lint, types and the fast tests; under 2 minutes
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not heavy and not pages"

heavy: $(DEV)  ## what takes long and seldom breaks: compiled models, notebooks, the tiny form of every benchmark
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m heavy

pages: $(DEV)  ## every command of docs/lineage.md and docs/lectures.md in brief, as a test; under half an hour
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist load -m pages

torture: $(DEV)  ## broken files by the thousand, kills, full disks, starts at once, long pipes; under an hour
	@OMP_NUM_THREADS=1 $(BIN)/python tests/torture/mutate.py --seconds 600 --jobs 2
	@$(BIN)/python tests/torture/kill.py --seconds 900
	@$(BIN)/python tests/torture/disk.py --seconds 300
	@$(BIN)/python tests/torture/starts.py --starts 1000 --seconds 600
	@$(BIN)/python tests/torture/soak.py --lines 1000000 --seconds 300

$(AUDIT): requirements-audit.lock
	@test -x $(VENV)-audit/bin/python || $(PYTHON) -m venv $(VENV)-audit
	@$(VENV)-audit/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

# Once one requirement has hashes pip-audit wants them of all, and torch has none: it is asked about by itself.
audit: $(AUDIT)  ## known vulnerabilities of everything that is pinned; needs a network
	@$(ASK) --require-hashes $(foreach lock,$(filter-out $(UNHASHED),$(wildcard requirements*.lock)),-r $(lock)); hashed=$$?; \
	$(ASK) --no-deps -r $(UNHASHED); unhashed=$$?; \
	test $$hashed$$unhashed = 00 || { echo "The audit failed. A table above names releases with known vulnerabilities: pin" \
	  "newer ones. ERROR above means that a release could not be asked about, so nothing is known of it: try again with a" \
	  "network that reaches PyPI."; exit 1; }

lint: $(DEV)  ## ruff and mypy
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

format: $(DEV)  ## let ruff rewrite the code
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

docs: $(CORE)  ## write docs/settings.md, the reference of every setting, anew
	@$(BIN)/python docs/make_settings.py

lineage: $(CORE)  ## every command of docs/lineage.md, ten minutes each at most; BRIEF=--brief for a moment each
	@$(BIN)/python docs/run_page.py lineage $(BRIEF)

lectures: $(CORE)  ## every command of docs/lectures.md, in the same way
	@$(BIN)/python docs/run_page.py lectures $(BRIEF)

load: $(DEV)  ## regard serve under 200 clients for five minutes, then under made-up requests
	@$(BIN)/python benchmarks/serve.py --clients 200 --seconds 300
	@$(BIN)/python benchmarks/serve.py --cases 600

bench: $(DEV)  ## the benchmarks that need no data of your own
	@$(BIN)/python benchmarks/train_step.py
	@$(BIN)/python benchmarks/generate.py
	@$(BIN)/python benchmarks/translate_cpu.py
	@$(BIN)/python benchmarks/resume.py

clean:  ## remove the environment and everything generated
	@rm -rf $(VENV) $(VENV)-audit $(DEMO) lineage lectures build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
