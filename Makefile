# SPDX-License-Identifier: BSD-3-Clause
# A thin front of CMake: `make demo` and `make test` do everything on a fresh Debian 12.

BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

.PHONY: all bootstrap browser configure demo test test-long bench install deb format format-check clean

all: configure
	@cmake --build $(BUILD) -j $(JOBS) -- --no-print-directory -s

bootstrap:
	@scripts/bootstrap

configure: bootstrap
	@[ -f $(BUILD)/Makefile ] || cmake -S . -B $(BUILD) -DCMAKE_C_COMPILER=gcc >/dev/null

demo: all
	@examples/demo $(BUILD)/bin

# gcc's build is tested as a whole; clang must accept the code, too; unit tests run once more
# under ASan and UBSan.
test: all format-check browser
	@[ -f $(BUILD)-clang/Makefile ] || cmake -S . -B $(BUILD)-clang -DCMAKE_C_COMPILER=clang-19 >/dev/null
	@cmake --build $(BUILD)-clang -j $(JOBS) -- --no-print-directory -s
	@[ -f $(BUILD)-sanitize/Makefile ] || cmake -S . -B $(BUILD)-sanitize -DCMAKE_C_COMPILER=gcc \
		-DPERDURE_SANITIZE=ON >/dev/null
	@cmake --build $(BUILD)-sanitize -j $(JOBS) -- --no-print-directory -s
	@ctest --test-dir $(BUILD)-sanitize --output-on-failure -j $(JOBS)
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -LE long

# Without a network there is no browser; its test says so, and the others run.
browser: bootstrap
	@scripts/bootstrap test || true
	@cd tests/browser && { [ -d node_modules ] || npm ci --silent --no-audit --no-fund || true; }

test-long: all browser
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

bench: all
	@bench/run --tools $(BUILD)/bin

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX) >/dev/null

deb: all
	@scripts/make-deb $(BUILD) $(BUILD)

FORMATTED = $(shell git ls-files 'src/*.[ch]' 'include/*.h' 'tests/unit/*.[ch]' 'tests/litmus/*.[ch]' 'bench/*.[ch]' 'examples/*.c' \
	'tests/threads/*.[ch]' 'tests/races/*.[ch]' 'tests/symbolic/*.c' 'tests/symbolic/programs/*.[ch]' 'tests/model/*.c' 'tests/binary/*.c')

format:
	@clang-format-19 -i $(FORMATTED)

format-check: bootstrap
	@clang-format-19 --dry-run -Werror $(FORMATTED)

clean:
	@rm -rf $(BUILD) $(BUILD)-clang $(BUILD)-sanitize
