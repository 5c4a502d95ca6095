# Each task of a developer is one target; `make` alone lists them. They need cargo, python3 and make, nothing else.

CARGO   ?= cargo
PYTHON  ?= python3
VENV    ?= .venv
TARGET  := $(or $(CARGO_TARGET_DIR),target)
IN_VENV := $(VENV)/bin/python
PACKAGES = "maturin>=1.9,<2" "numpy>=1.24" scipy "scikit-learn>=1.6" "pandas>=2" "pytest>=8" "matplotlib>=3.6" "mypy>=1.18" "ruff>=0.14"

.DEFAULT_GOAL := help
.PHONY: help test lint types rust python pytest wheel docs demo bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## everything that must pass: lint, Rust tests, docs, demo, Python tests
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory types
	$(MAKE) --no-print-directory rust
	$(MAKE) --no-print-directory docs
	$(MAKE) --no-print-directory demo
	$(MAKE) --no-print-directory pytest

lint: ## formatting and clippy, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

types: $(VENV)/ready ## lint and types of the Python package
	$(VENV)/bin/ruff check python
	$(VENV)/bin/mypy

rust: ## the Rust tests
	$(CARGO) test --workspace

docs: ## the library's pages, warnings denied
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

demo: ## fit six models to generated data; the report goes into the target folder
	$(CARGO) run --release -- demo --out "$(TARGET)/demo-report.html"

python: $(VENV)/ready ## build the Python package into .venv
	VIRTUAL_ENV="$(abspath $(VENV))" $(IN_VENV) -m maturin develop --release

pytest: python ## the Python tests
	$(IN_VENV) -m pytest -q

wheel: $(VENV)/ready ## build an installable wheel into dist/
	$(IN_VENV) -m maturin build --release --out dist

bench: python ## fits beside other programs', their parts, and fits of growing size, on this machine
	$(CARGO) build --release -p mercer --example bench_smo --example bench_micro --example bench_scale
	CARGO_TARGET_DIR="$(TARGET)" $(IN_VENV) benchmarks/suite.py
	"$(TARGET)/release/examples/bench_micro"
	"$(TARGET)/release/examples/bench_scale" 1000,2000,5000,10000
	$(CARGO) build --release
	$(PYTHON) benchmarks/timing.py "$(TARGET)/release/mercer"

clean: ## remove what was built
	$(CARGO) clean
	rm -rf $(VENV) dist

# Where Python comes without ensurepip, pip (if there is one) puts a copy of itself into the environment.
$(VENV)/ready: Makefile
	@$(IN_VENV) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) >/dev/null 2>&1 || { \
	  $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	  $(PYTHON) -m pip install -q --target "$$($(IN_VENV) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" pip; \
	} || { echo "error: $(PYTHON) can make no virtual environment; install its venv package" \
	  "(Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	$(IN_VENV) -m pip install -q $(PACKAGES)
	@touch $@
