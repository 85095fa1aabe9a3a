"""Memory runs out at one allocation of the command line, or from one on: it ends with an exit code, never by a signal."""

import pathlib
import subprocess

import pytest
import rknn

PROGRAM = pathlib.Path(rknn.__file__).parent / "bin" / "openrknn"

# Counts allocations; FAIL_AT fails one of them, FAIL_FROM all from one on. The count goes to the file COUNT at the end.
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static atomic_long count;
static long at = -1, from = -1;

static int fails(void) {
  if (at < 0) {
    const char *a = getenv("FAIL_AT"), *f = getenv("FAIL_FROM");
    at = a ? atol(a) : 0;
    from = f ? atol(f) : 0;
  }
  const long n = ++count;
  if (n != at && (from == 0 || n < from)) return 0;
  errno = ENOMEM;
  return 1;
}
void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return fails() ? NULL : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
__attribute__((destructor)) static void report(void) {
  const char *path = getenv("COUNT");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file) fprintf(file, "%ld", atomic_load(&count)), fclose(file);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preload")
    (folder / "failing.c").write_text(SOURCE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", folder / "failing.c", "-o", folder / "failing.so"], check=True)
    return folder / "failing.so"


@pytest.mark.parametrize(
    "arguments", ["--version", "convert --help", "convert {f}/a_model_with_a_long_name.onnx -o {f}/o.rknn --batch-size 1"]
)
def test_memory_that_runs_out_is_an_error(arguments, library, tmp_path):
    command = [PROGRAM, *arguments.format(f=tmp_path).split()]

    def run(**variables):
        env = {"LD_PRELOAD": str(library), **{k: str(v) for k, v in variables.items()}}
        return subprocess.run(command, env=env, capture_output=True, timeout=60)

    run(COUNT=tmp_path / "count")
    total = int((tmp_path / "count").read_text())
    assert total > 100, "the library counts"
    step = max(1, total // 80)
    for n in [*range(1, 40), *range(40, total, step)]:
        for variable in ("FAIL_AT", "FAIL_FROM"):
            done = run(**{variable: n})
            assert done.returncode >= 0, f"{variable}={n} of {total}: signal {-done.returncode}\n{done.stderr.decode()}"
            assert done.returncode in (0, 1, 2)
            assert done.returncode == 0 or done.stderr or variable == "FAIL_FROM"
