# Habits of the house. Everything runs from .venv, which is made from constraints.txt and made
# again only when it or pyproject.toml changes. PYTHONSAFEPATH keeps the folder `agents` from
# being importable as a bare `agents`, which is the name of somebody else's package.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := sagas agents coordinator drills conform cli demo

SEEDS ?= 1-1000
SEED ?= 1
MINUTES ?= 30

export PYTHONSAFEPATH := 1

# Hundreds of processes are started, and each would compile all sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test sim chaos check format bench lock clean

setup: $(VENV)/.made-for-dev  ## everything a developer needs

demo: $(VENV)/.made-for-all  ## the order desk, while its processes are being killed
	$(BIN)/headway demo

test: setup  ## all tests, against real servers and processes; those that measure time run alone
	status=0; $(BIN)/pytest -m timed || status=$$?; \
	$(BIN)/pytest -m "not timed" --numprocesses 3 --dist loadfile --no-loadscope-reorder || status=$$((status | $$?)); \
	test $$status -le 1 || rm -rf .pytest_cache; exit $$status  # 1: all ran, and some failed

sim: setup  ## simulated runs of the real code with faults, as many as SEEDS says: make sim SEEDS=1-10000
	PYTHONHASHSEED=0 PYTHONPATH=tests $(BIN)/python -m simulation $(SEEDS)

chaos: setup  ## real processes under load, with real faults: make chaos SEED=1 MINUTES=30
	PYTHONPATH=tests $(BIN)/python -m chaos --seed $(SEED) --minutes $(MINUTES)

check: setup .typing  ## style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=.typing $(BIN)/mypy -p headway

format: setup  ## put the sources into the house's form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## rates and latencies on this machine: a three-step saga, journals
	$(BIN)/python bench/saga3.py
	$(BIN)/python bench/journal.py

lock:  ## write constraints.txt again, with the newest versions that pyproject.toml allows
	rm -rf $(VENV)-lock && $(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install --quiet -e '.[dev]'
	{ sed -n '/^#/p' constraints.txt; $(VENV)-lock/bin/pip freeze --exclude-editable; } > $(VENV)-lock/new
	mv $(VENV)-lock/new constraints.txt && rm -rf $(VENV)-lock

clean:  ## remove all that the other targets made, except data in .headway
	rm -rf $(VENV) .typing build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.made-for-%: pyproject.toml constraints.txt
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	touch $@

# mypy does not see an editable install that maps folders to packages; these links it does see.
.typing: pyproject.toml
	mkdir -p .typing/headway
	for package in $(PACKAGES); do ln -sfn ../../$$package .typing/headway/$$package; done
	touch .typing
