# make demo: train and score on the embedded benchmark.   make test: lint, types and all tests.
# Needs only Python 3.10+, pip and make. The virtual environment is made once, and again when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench chaos fuzz clean
KILLS ?= 330
INPUTS ?= 6500

demo: .venv/.installed
	$(BIN)/onedomain demo

test: lint
	$(BIN)/python -m pytest -n 2

lint: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.installed
	$(BIN)/python -m bench

# Kills every command at its file operations, hundreds of times, and fails if anything is lost. Minutes; Linux only.
chaos: .venv/.installed-dev
	$(BIN)/python -m tests.chaos --kills $(KILLS)

# Bad inputs for every reader and every option, thousands of them: each must succeed or be refused with one line. Linux only.
fuzz: .venv/.installed-dev
	$(BIN)/python -m tests.fuzz --inputs $(INPUTS) --keep-going

.venv/.created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "onedomain needs Python 3.10 or newer")'
	$(PYTHON) -m venv .venv
	touch $@

.venv/.installed: .venv/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/.installed-dev: .venv/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@ .venv/.installed

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache
