# The front door. `make help` lists the targets.
BUILD := build/release
SHELL := /bin/sh
MAKEFLAGS += --no-print-directory

ONLY ?=
SEEDS ?= 2000
FROM ?= 1
ROUNDS ?= 50
SECONDS ?= 60
DESTDIR ?=
PREFIX ?= /usr/local

.PHONY: help setup setup-build setup-bench configure build run test unit asan tsan check format bench sim crash fuzz soak install install-srpc clean

help:
	@echo "Targets:"
	@sed -n 's/^## /  /p' Makefile

setup:
	@scripts/setup.sh
setup-build:
	@scripts/setup.sh --build
setup-bench:
	@scripts/setup.sh --bench

configure:
	@[ -f $(BUILD)/build.ninja ] || { echo "configure: $(BUILD)"; cmake --preset release >/dev/null; }

## make run                 install what is missing, build, and start one node in ./run (Ctrl-C stops it)
run: setup-build configure
	@cmake --build $(BUILD) --target cairnd cairn
	@exec scripts/run

## make build               install what is missing and build everything into build/release
build: setup configure
	@cmake --build $(BUILD)

## make test                install what is missing, build, and run all tests: unit, real clients, crashes, fuzzers
test: build
	@scripts/npm-install
	@scripts/fuzz --build-only
	@ctest --test-dir $(BUILD) --output-on-failure -j2

## make unit                only the unit tests
unit: build
	@ctest --test-dir $(BUILD) --output-on-failure -j2 -L unit

## make asan, make tsan     the unit tests under AddressSanitizer and UBSan, under ThreadSanitizer
asan tsan: setup
	@[ -f build/$@/build.ninja ] || cmake --preset $@ >/dev/null
	@cmake --build build/$@
	@ctest --test-dir build/$@ --output-on-failure -j2 -L unit

## make check               format, layers, bans, hygiene, docs, sizes, headers, clang-tidy; minutes the first time
check: setup configure
	@cmake --build $(BUILD) --target generated
	@scripts/check --self-test
	@scripts/check

## make format              format every C++ file
format: setup
	@scripts/format

## make bench [ONLY=name]   measure against the peers: build/bench/NAME.json and a table
bench: setup-bench configure
	@cmake --build $(BUILD) --target bench_programs srpc-perf cairnd cairn
	@bench/run.py --build $(BUILD) $(ONLY)

## make sim SEEDS=n FROM=k  run n simulations from seed k
sim: setup-build configure
	@cmake --build $(BUILD) --target cairn-sim
	@$(BUILD)/cairn-sim --seeds $(SEEDS) --from $(FROM)

## make crash ROUNDS=n      kill a node n times under load and check what it acknowledged
crash: setup configure
	@cmake --build $(BUILD) --target cairnd cairn
	@tests/crash/looper.py --bin $(BUILD) --rounds $(ROUNDS)

## make fuzz SECONDS=n      run every fuzz target for n seconds
fuzz: setup
	@scripts/fuzz --seconds $(SECONDS)

## make soak SECONDS=n      64 clients that come, call and are killed, for n seconds (3600); then the server must hold no more
soak: SECONDS := 3600
soak: setup configure
	@cmake --build $(BUILD) --target srpc_soak
	@CAIRN_BIN=$(BUILD) tests/soak/soak.py --seconds $(SECONDS)

## make install DESTDIR=d   install the programs below d/usr/local (PREFIX= for elsewhere)
install: setup-build configure
	@cmake --build $(BUILD) --target cairnd cairn
	@install -D -m 755 -t "$(DESTDIR)$(PREFIX)/bin" $(BUILD)/cairnd $(BUILD)/cairn
	@echo "installed cairnd and cairn into $(DESTDIR)$(PREFIX)/bin"

## make install-srpc DESTDIR=d  install SRPC alone, as a CMake package with its programs, below d/usr/local (PREFIX=)
install-srpc: setup-build configure
	@cmake --build $(BUILD) --target cairn_srpc srpc-ping srpc-perf srpc-doctor
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --component srpc --prefix "$(PREFIX)" >/dev/null
	@echo "installed SRPC into $(DESTDIR)$(PREFIX): find_package(srpc), srpc-ping, srpc-perf, srpc-doctor"

## make clean               remove what was built (not ./run, which holds data)
clean:
	rm -rf build node_modules tests/e2e/js/node_modules
