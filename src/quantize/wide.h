// Loops that the compiler puts into the widest registers of the machine. -ffp-contract=off and loops without sums across their
// elements leave no other difference.
#pragma once

// (The choice among the forms is made before a sanitizer is ready.)
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ORKNN_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ORKNN_WIDE
#endif
