# The front door. `make help` lists the targets.
BUILD := build/release
SHELL := /bin/sh
MAKEFLAGS += --no-print-directory

.PHONY: help setup build test clean
help:
	@sed -n 's/^## //p' Makefile

## make build    install what is missing and build everything into build/release
setup:
	@scripts/setup.sh
build: setup
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release >/dev/null
	@cmake --build --preset release

## make test     build and run all tests
test: build
	@ctest --test-dir $(BUILD) --output-on-failure

## make clean    remove what was built
clean:
	rm -rf build
