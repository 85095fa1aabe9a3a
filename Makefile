# The two commands: `make demo` shows the whole flow on a bundled network, `make test` runs every test.
# Both install what they need (Debian packages with root or sudo, a .venv) and build. See README.md.
.PHONY: demo test test-readers test-mutations test-threads test-sanitized test-cross build venv bench clean format

demo: venv
	scripts/demo

test:
	scripts/test

# 10,000 damaged files for every reader; the readers run under the address and undefined-behaviour sanitizers.
test-readers:
	scripts/test readers

# 300,000 models that parse but are wrong in meaning, through every stage under the sanitizers.
test-mutations:
	scripts/test mutations

# The runtime and rknn_server under the thread sanitizer, then under the address and undefined-behaviour sanitizers: 16 threads x 4 contexts x
# 10,000 calls, the tests of threads, forks, background runs and the protocol, and every test of the server.
test-threads:
	scripts/test threads

# The C++ tests and those of the Python package under the address and undefined-behaviour sanitizers.
test-sanitized:
	scripts/test sanitized

# librknnrt and librknnmrt for 64-bit and 32-bit ARM; their C programs run under qemu and must give the same bytes.
test-cross:
	scripts/test cross

# The C++ side (libraries, librknnrt.so, tests, command line) in build/release.
build:
	scripts/bootstrap
	cmake --preset release
	cmake --build --preset release

# The Python package with everything in it, installed into .venv.
venv:
	scripts/bootstrap
	scripts/venv

bench: venv
	scripts/venv bench
	.venv/bin/python bench/run.py

# Brings every source file into the tree's format (.clang-format, pyproject.toml); tests/test_format.py asks for it.
format:
	scripts/venv format
	git ls-files '*.cpp' '*.h' '*.c' | xargs .venv/bin/clang-format -i
	git ls-files '*.py' | xargs .venv/bin/ruff format -q
	git ls-files '*.py' | xargs .venv/bin/ruff check -q --fix

clean:
	rm -rf build .venv out
