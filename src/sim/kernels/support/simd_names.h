// What the SIMD headers share. The code of all forms is compiled once per form, each in a namespace and a translation
// unit of its own with its own compiler flags, so nothing here may end up as an out-of-line function shared between them.
#pragma once

#define ORKNN_SIMD [[maybe_unused]] static inline __attribute__((always_inline))

#if defined(__clang__)
#define ORKNN_UNROLL _Pragma("unroll")
#else
#define ORKNN_UNROLL _Pragma("GCC unroll 16")
#endif
