# Everything that people and CI do with the project. `make demo` and `make test` need nothing but Rust and, to install
# what is missing, root or sudo; see tools/setup.

CARGO ?= cargo
VENV ?= .venv
DEEP ?= target/deep
REQUIREMENTS := crates/leo-cli/tests/crosscheck/requirements.txt

.PHONY: demo test bench deep fmt setup mnist

demo: setup
	@echo "Building Leo (about five minutes the first time, most of them for the solver HiGHS) ..."
	@$(CARGO) build --release --quiet --bin leo
	@"$${CARGO_TARGET_DIR:-target}/release/leo" demo
	@echo "The program is $${CARGO_TARGET_DIR:-target}/release/leo; cargo install --path crates/leo-cli puts it on your path."

test: setup $(VENV)/installed
	@echo "The first time, the solver HiGHS is compiled, which takes minutes."
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --quiet
	LEO_PYTHON="$(abspath $(VENV))/bin/python" $(CARGO) test --workspace
	@echo "Without HiGHS, from Rust alone:"
	$(CARGO) clippy --package leo-stability --all-targets --quiet -- -D warnings
	$(CARGO) test --package leo-stability --quiet

bench: setup
	$(CARGO) bench --workspace

# Trains deep and wide networks into $(DEEP), but for those that are there, and measures how Leo does on them. Takes long.
TRAIN := "$${CARGO_TARGET_DIR:-target}/release/leo" train --seeds 0..3 --resume -o "$(DEEP)"
deep: setup mnist
	$(CARGO) build --release --quiet --bin leo
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
