# SPDX-License-Identifier: Apache-2.0
# The commands of this project. Two cores are few: JOBS can be lowered, ccache and mold are used when they are there.
JOBS ?= $(shell nproc)
export CCACHE_SLOPPINESS := time_macros
export CCACHE_NOHASHDIR := 1
export CCACHE_BASEDIR := $(CURDIR)

.PHONY: help deps build everything demo quick test test-asan test-tsan fuzz bench tidy soak format package clean
help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

deps: ## install what is missing for all of this (Debian packages; root or sudo)
	@scripts/deps.sh test

build: ## the agent, its worker, driftd-check and all providers, into build/release
	@scripts/deps.sh build
	@scripts/configure.sh
	@cmake --build --preset release -j $(JOBS) --target product

demo: ## real servers, three changes from outside, each drift as it arrives (ONCE=1: check and exit)
	@scripts/deps.sh demo
	@scripts/configure.sh
	@cmake --build --preset release -j $(JOBS) --target demo
	@python3 scripts/demo.py $(if $(ONCE),--once)

# One test more than there are cores: most of them wait for a server. What is timed runs with nothing beside it.
test: everything ## every test, unit to end-to-end, against real servers
	@JOBS=$$(($(JOBS) + 1)) scripts/test.sh

QUICK := unit contract golden architecture
quick: deps ## the tests that need no server: unit, contract, golden, architecture
	@scripts/configure.sh -DDRIFTD_TESTS=ON
	@cmake --build --preset release -j $(JOBS) --target $(QUICK:%=tests_%)
	@JOBS=$$((2 * $(JOBS))) scripts/test.sh -L '^(unit|contract|golden|architecture)$$'

everything: deps
	@scripts/configure.sh -DDRIFTD_TESTS=ON
	@cmake --build --preset release -j $(JOBS)

# No e2e: those are timed.
SANITIZED := unit contract integration fault
test-asan: deps ## unit, contract, integration and fault tests under AddressSanitizer and UBSan
	@cmake --preset asan >/dev/null && cmake --build --preset asan -j $(JOBS) --target $(SANITIZED:%=tests_%)
	@JOBS=$(JOBS) PRESET=asan scripts/test.sh -L '^(unit|contract|integration|fault)$$'

test-tsan: deps ## unit, contract, integration and fault tests under ThreadSanitizer
	@cmake --preset tsan >/dev/null && cmake --build --preset tsan -j $(JOBS) --target $(SANITIZED:%=tests_%)
	@JOBS=$(JOBS) PRESET=tsan scripts/test.sh -L '^(unit|contract|integration|fault)$$'

FUZZ_SECONDS ?= 60
fuzz: ## libFuzzer on every parser of foreign data (clang-16); FUZZ_SECONDS=60 each, FUZZ="yaml helm"
	@scripts/deps.sh test clang-16 libclang-rt-16-dev
	@cmake --preset fuzz >/dev/null && cmake --build --preset fuzz -j $(JOBS) --target $(if $(FUZZ),$(FUZZ:%=fuzz_%),fuzzers)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh $(FUZZ)

bench: everything ## our own parts beside their bare floors
	@ctest --test-dir build/release -L bench --verbose --no-tests=error

tidy: ## clang-tidy 16 over agent, check, controller and plugins
	@scripts/deps.sh build clang-tidy-16
	@cmake --preset dev >/dev/null && cmake --build --preset dev --target generated
	@run-clang-tidy-16 -quiet -j $(JOBS) -p build/dev '$(CURDIR)/(agent|check|controller|plugins)/.*\.cpp'

soak: everything ## clang-tidy, and the long forms of kill, storm and fuzz tests; log in docs/soak.md
	@$(MAKE) tidy
	@scripts/soak.sh
	@JOBS=$(JOBS) tests/simulation/mutants.py
	@$(MAKE) fuzz FUZZ=frames FUZZ_SECONDS=600
	@$(MAKE) fuzz FUZZ_SECONDS=60

format: ## clang-format over all C and C++ files but the headers kept of earlier releases
	@scripts/deps.sh build clang-format-16
	@git ls-files '*.cpp' '*.hpp' '*.c' '*.h' ':!plugin-api/releases' | xargs clang-format-16 -i

package: ## build/release/*.deb
	@scripts/deps.sh build
	@scripts/configure.sh
	@cmake --build --preset release -j $(JOBS) --target package

clean: ## remove build/
	@rm -rf build
