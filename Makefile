# Every target sets up what it needs: a virtual environment in .venv, the package in editable
# mode, and the dependency group of the target. Stamp files make the second run fast; a change
# of pyproject.toml installs again.

PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

# Each test worker keeps to one thread: BLAS threads of several workers would wait for one another.
test test-slow: export OMP_NUM_THREADS = 1
# Tests start many processes, each of which would translate the package again if none may keep it.
test test-slow: export PYTHONDONTWRITEBYTECODE =

.PHONY: install demo test test-slow lint style types format hooks bench bench-real docs clean
.DEFAULT_GOAL := test

install: .venv/.installed
	@echo "privasso is installed in .venv; run: source .venv/bin/activate"

demo: .venv/.installed
	$(BIN)/privasso demo --out demo
	$(BIN)/privasso reproduce --quick --out demo/paper
	@echo "Look at demo/diabetes-report.html (a fit) and demo/paper/index.html (the paper, reproduced)."

# With COVERAGE=yes, as in continuous integration, the run also fails if too few lines are reached;
# it takes half as long again. `.venv/bin/coverage report -m --skip-covered` then lists the lines
# that no test reached. Types are checked by `make lint`. Each worker begins with a half of the tests:
# what tests of a file share is then made once, and few kernels are compiled by both.
test: style
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(if $(COVERAGE),--cov --cov-report=)

test-slow: .venv/.test
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m slow

lint: style types

style: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.test
	$(BIN)/pyright --pythonpath $(BIN)/python

format: .venv/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Runs the checks of .pre-commit-config.yaml before each commit of this clone.
hooks: .venv/.hooks
	$(BIN)/pre-commit install

bench: .venv/.bench
	$(BIN)/python -m bench

# Takes hours; what was run before is kept in build/real-tables and not run again.
bench-real: .venv/.real
	$(BIN)/python -m bench.real labels --jobs $(WORKERS) --write

docs: .venv/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check.py docs/_build/html

clean:
	rm -rf .venv build dist docs/_build docs/auto_gallery docs/reference/names docs/reference/commands .pytest_cache .ruff_cache .hypothesis .coverage
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Dependency groups need pip 25.1; the one that comes with Python may be older.
.venv/.pip:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

.venv/.installed: .venv/.pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/.test .venv/.bench .venv/.real .venv/.docs .venv/.hooks: .venv/.%: .venv/.installed pyproject.toml
	$(BIN)/python -m pip install --quiet --group $*
	touch $@
