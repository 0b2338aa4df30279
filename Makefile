# Everything that people and CI do with the project. `make demo`, `make build` and `make test` need nothing but Rust and,
# to install what is missing, root or sudo; see tools/setup.

CARGO ?= cargo
VENV ?= .venv
DEEP ?= target/deep
REQUIREMENTS := crates/leo-cli/tests/crosscheck/requirements.txt

# The program that release builds make, and whether it has the solver HiGHS.
LEO := "$${CARGO_TARGET_DIR:-target}/release/leo"
HAS_SOLVER := $(LEO) --version 2>/dev/null | grep -q '^solver: HiGHS'

.PHONY: demo build test bench deep fmt setup mnist

# Without the solver, from Rust alone. A program that has it, from `make build`, is not replaced by one without: it is
# brought up to date as it is.
demo:
	@if $(HAS_SOLVER); then $(MAKE) --no-print-directory build; else \
	    ./tools/setup demo && echo "Building Leo (two to three minutes the first time) ..." && \
	    $(CARGO) build --release --quiet --package leo-cli --no-default-features; fi
	@$(LEO) demo
	@if $(HAS_SOLVER); then \
	    echo "The program is "$(LEO)"; cargo install --path crates/leo-cli puts it on your path."; else \
	    echo "The program is "$(LEO)", without the solver HiGHS, which few networks need: make build adds it, as does cargo install --path crates/leo-cli."; fi

build: setup
	@echo "Building Leo with the solver HiGHS (about five minutes the first time) ..."
	@$(CARGO) build --release --quiet --package leo-cli
	@echo "The program is "$(LEO)"."

test: setup $(VENV)/installed
	@echo "The first time, the solver HiGHS is compiled, which takes minutes."
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --quiet
	LEO_PYTHON="$(abspath $(VENV))/bin/python" $(CARGO) test --workspace
	@echo "Without HiGHS, from Rust alone:"
	$(CARGO) clippy --package leo-stability --all-targets --quiet -- -D warnings
	$(CARGO) test --workspace --no-default-features --quiet --test demo --test outputs --test planted --test units

bench: setup
	$(CARGO) bench --workspace

# Trains deep and wide networks into $(DEEP), but for those that are there, and measures how Leo does on them. Takes long.
TRAIN := $(LEO) train --seeds 0..3 --resume -o "$(DEEP)"
deep: build mnist
	for hidden in 50,50 100,100 200,200 400,400 800,800 100,100,100 100,100,100,100 100,100,100,100,100 \
	    100,100,100,100,100,100 100,100,100,100,100,100,100,100; do $(TRAIN) --l1 1e-4 --hidden $$hidden || exit; done
	$(TRAIN) --l1 2e-4 --hidden 100,100,100,100,100
	LEO_DEEP="$(abspath $(DEEP))" $(CARGO) bench --package leo-cli --bench deep

# MNIST, for the tests and benches that can use it.
mnist: setup
	$(CARGO) run --quiet --bin leo -- data mnist

fmt:
	$(CARGO) fmt --all

setup:
	@./tools/setup build

# ONNX Runtime and the exporters that the tests compare with.
$(VENV)/installed: $(REQUIREMENTS)
	@./tools/setup python
	@echo "Installing ONNX Runtime and scikit-learn for the cross-checks into $(VENV) ..."
	python3 -m venv "$(VENV)"
	"$(VENV)/bin/python" -m pip install --quiet --disable-pip-version-check --requirement $(REQUIREMENTS)
	touch $@
