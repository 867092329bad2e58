# What a person runs. Everything that is missing is installed by .ci/set-up, which says what.

export PATH := $(PATH):$(CURDIR)/.setup/bin
release := target/release/rebuild-model

.PHONY: example onnx test prove outside lint bench set-up

## example: build the example, verify it, and run it in a headless browser
example: set-up $(release)
	workspace.example/set-up.sh
	rm -rf workspace.example/.rebuild workspace.example/dist
	cd workspace.example && ../$(release) build
	$(release) verify workspace.example/dist/manifest.json
	$(release) smoke workspace.example/dist/manifest.json

## onnx: build the stand-in of TinyStories-1M with torch and onnxruntime, and have it speak in a browser
onnx: set-up $(release)
	pins/tinystories-1m/run.sh $(release)

## test: lints and tests
test: set-up lint
	cargo test

## prove: build the example twice, killing one build half way, and hold the results against each other
prove: set-up $(release)
	workspace.example/prove.sh $(release)

## outside: hold the example's attestation, signatures and bill of materials against others' programs; after example
outside: set-up $(release)
	tests/outside/check.sh $(release) workspace.example/dist/manifest.json

## bench: speed and memory beside named peers; ONLY=SUBJECT for one of those that
##        benches/measure/main.rs lists
bench: set-up
	cargo bench --bench measure -- $(ONLY)

lint:
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet

set-up:
	.ci/set-up

# Cargo knows better than make whether anything is to be done.
.PHONY: $(release)
$(release):
	cargo build --release
