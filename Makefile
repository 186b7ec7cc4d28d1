# Each target sets up all it needs, in .venv; a second run finds it done.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find native src -name '*.cpp' -o -name '*.hpp' -o -name '*.py' -o -name '*.pyi') CMakeLists.txt pyproject.toml README.md LICENSE

.PHONY: demo test bench docs lint clean
demo: $(VENV)/.demo
	$(BIN)/bemf demo

test: $(VENV)/.installed lint
	$(BIN)/python -m pytest --cov --cov-fail-under=95 $(PYTEST)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed $(VENV)/.bench
	$(BIN)/python benchmarks/kernels.py

# Open site/index.html; it needs no network. (Not --quiet: then --strict would let warnings pass.)
docs: $(VENV)/.installed $(VENV)/.docs
	$(BIN)/python docs/pictures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(BIN)/python:
	$(shell command -v $(PYTHON) || command -v python3) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.tools: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --group test
	touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# What `pip install "bemf[plot]"` gives a user, and no more.
$(VENV)/.demo: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[plot]'
	touch $@

clean:
	rm -rf $(VENV) build dist docs/pictures site
