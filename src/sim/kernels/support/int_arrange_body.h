// Cores that bring rows into the order in which products and windows read them. Written and included as int_forms_body.h is, by
// which it is.
#pragma once

namespace orknn::sim::kernels::ORKNN_INT_FORM {

static void interleave_wide(const IntInterleave& p) {
  const auto *first = reinterpret_cast<const uint16_t*>(p.rows[0]), *second = reinterpret_cast<const uint16_t*>(p.rows[1]);
  int32_t* __restrict y = p.y;
  if (second)
    for (int64_t i = 0; i < p.count; ++i) y[i] = static_cast<int32_t>(first[i] | static_cast<uint32_t>(second[i]) << 16);
  else
    for (int64_t i = 0; i < p.count; ++i) y[i] = first[i];
}

// Calls part(x, depth, dword) for the blocks of a panel.
template <class Part>
ORKNN_SIMD void for_each_block(const IntPanel& p, Part part) {
  const int64_t block = p.block ? p.block : p.depth;
  const uint8_t* x = p.x;
  for (int64_t k = 0; k < p.depth; k += block, x += p.block_stride)
    part(x, p.depth - k < block ? p.depth - k : block, k / (p.words ? 2 : 4));
}

#if defined(ORKNN_INT_PORTABLE) || defined(ORKNN_INT_NEON)
static void panel(const IntPanel& given) {
  const IntPanel p = given;
  for_each_block(
      p, [&](const uint8_t* x, int64_t depth, int64_t first)
             __attribute__((always_inline)) { panel_scalar(p, x, depth, first); });
}
#else
// Four dwords of each of eight rows at a time.
static void panel(const IntPanel& given) {
  const IntPanel p = given;
  const __m256i flip = _mm256_set1_epi8(static_cast<char>(p.flip)), zero = _mm256_set1_epi16(static_cast<int16_t>(p.zero));
  const auto two_rows = [&](const uint8_t* x) __attribute__((always_inline)) {
    const uint8_t* second = x + 4 * p.row_stride;
    if (!p.words)
      return _mm256_xor_si256(flip, _mm256_set_m128i(_mm_loadu_si128(reinterpret_cast<const __m128i*>(second)),
                                                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(x))));
    const __m128i bytes = _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)),
                                             _mm_loadl_epi64(reinterpret_cast<const __m128i*>(second)));
    return _mm256_sub_epi16(p.is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes), zero);
  };
  const int64_t step = p.words ? 8 : 16;
  for_each_block(
      p, [&](const uint8_t* x, int64_t depth, int64_t first) __attribute__((always_inline)) {
        int64_t k = 0;
        if (p.rows == kIntRows && p.pitch == kIntRows)
          for (; k + step <= depth; k += step, first += 4) {
            __m256i row[4];
            for (int r = 0; r < 4; ++r) row[r] = two_rows(x + r * p.row_stride + k);
            const __m256i low01 = _mm256_unpacklo_epi32(row[0], row[1]), low23 = _mm256_unpacklo_epi32(row[2], row[3]);
            const __m256i high01 = _mm256_unpackhi_epi32(row[0], row[1]), high23 = _mm256_unpackhi_epi32(row[2], row[3]);
            auto* to = reinterpret_cast<__m256i*>(p.y + first * kIntRows);
            _mm256_storeu_si256(to, _mm256_unpacklo_epi64(low01, low23));
            _mm256_storeu_si256(to + 1, _mm256_unpackhi_epi64(low01, low23));
            _mm256_storeu_si256(to + 2, _mm256_unpacklo_epi64(high01, high23));
            _mm256_storeu_si256(to + 3, _mm256_unpackhi_epi64(high01, high23));
          }
        if (k < depth) panel_scalar(p, x + k, depth - k, first);
      });
}
#endif

#if defined(ORKNN_INT_PORTABLE)
static void interleave(const IntInterleave& p) {
  if (p.wide)
    interleave_wide(p);
  else
    interleave_scalar(p, 0);
}
static void expand(const IntExpand& p) { expand_scalar(p); }
#elif defined(ORKNN_INT_NEON)
static void interleave(const IntInterleave& given) {
  const IntInterleave p = given;
  p.wide ? interleave_wide(p) : p.words ? interleave_words(p) : interleave_bytes(p);
}
#else
static void interleave(const IntInterleave& given) {
  const IntInterleave p = given;
  if (p.wide) return interleave_wide(p);
  const __m128i flip = _mm_set1_epi8(static_cast<char>(p.flip)), zero = _mm_set1_epi16(static_cast<int16_t>(p.zero));
  for (int64_t i = 0; i < p.count; i += 16) {
    const int64_t left = p.count - i;
    __m128i row[4], out[4];
    for (int j = 0; j < 4; ++j) row[j] = p.rows[j] ? load_bytes(p.rows[j] + i, left) : _mm_setzero_si128();
    if (p.words) {
      for (int j = 0; j < 2; ++j) {
        const __m128i upper = _mm_unpackhi_epi64(row[j], row[j]);
        const __m128i low = p.is_signed ? _mm_cvtepi8_epi16(row[j]) : _mm_cvtepu8_epi16(row[j]),
                      high = p.is_signed ? _mm_cvtepi8_epi16(upper) : _mm_cvtepu8_epi16(upper);
        out[j] = p.rows[j] ? _mm_sub_epi16(low, zero) : low;
        out[j + 2] = p.rows[j] ? _mm_sub_epi16(high, zero) : high;
      }
      row[0] = _mm_unpacklo_epi16(out[0], out[1]);
      row[1] = _mm_unpackhi_epi16(out[0], out[1]);
      row[2] = _mm_unpacklo_epi16(out[2], out[3]);
      row[3] = _mm_unpackhi_epi16(out[2], out[3]);
    } else {
      for (int j = 0; j < 4; ++j)
        if (p.rows[j]) row[j] = _mm_xor_si128(row[j], flip);
      const __m128i low01 = _mm_unpacklo_epi8(row[0], row[1]), low23 = _mm_unpacklo_epi8(row[2], row[3]);
      const __m128i high01 = _mm_unpackhi_epi8(row[0], row[1]), high23 = _mm_unpackhi_epi8(row[2], row[3]);
      row[0] = _mm_unpacklo_epi16(low01, low23);
      row[1] = _mm_unpackhi_epi16(low01, low23);
      row[2] = _mm_unpacklo_epi16(high01, high23);
      row[3] = _mm_unpackhi_epi16(high01, high23);
    }
    store_dwords(p.y + i, row, left);
  }
}

static void expand(const IntExpand& given) {
  const IntExpand p = given;
  if (p.dilation != 1 || p.stride > 2) return expand_scalar(p);
  const __m128i pick = p.stride == 1 ? _mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6)
                                     : _mm_setr_epi8(0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9);
  for (int64_t row = 0; row < p.rows; ++row) {
    int32_t* y = expanded_row(p, row);
    if (!p.words) {
      const uint8_t* x = static_cast<const uint8_t*>(p.x) + row * p.x_stride;
      expand_bytes(x, p.stride, p.count, pick, y);
      continue;
    }
    const int16_t* x = static_cast<const int16_t*>(p.x) + row * p.x_stride;
    if (p.stride == 2) {
      for (int64_t i = 0; i < p.count; i += 4)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 2 * i)));
      continue;
    }
    for (int64_t i = 0; i < p.count; i += 8) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i)),
                    b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i + 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), _mm_unpacklo_epi16(a, b));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i + 4), _mm_unpackhi_epi16(a, b));
    }
  }
}
#endif

#if defined(ORKNN_INT_PORTABLE)
// Values [i, i + 16) of a row, of which `count` are there.
template <class T>
ORKNN_SIMD void pad_sixteen(const IntPad& p, const uint8_t* x, int64_t count, T* y) {
  for (int64_t i = 0; i < (count < 16 ? count : 16); ++i) {
    if constexpr (sizeof(T) == 1)
      y[i] = static_cast<T>(x[i] ^ p.flip);
    else
      y[i] = static_cast<T>((p.is_signed ? static_cast<int8_t>(x[i]) : x[i]) - p.zero);
  }
}
// Values [begin, end) of a row.
template <class T>
ORKNN_SIMD void pad_fill(T* y, int64_t begin, int64_t end, T fill) {
  for (int64_t i = begin; i < end; ++i) y[i] = fill;
}
#elif !defined(ORKNN_INT_NEON)
template <class T>
ORKNN_SIMD void pad_fill(T* y, int64_t begin, int64_t end, T fill) {
  for (int64_t i = begin; i < end; i += 16) {
    if constexpr (sizeof(T) == 1)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), _mm_set1_epi8(static_cast<char>(fill)));
    else
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), _mm256_set1_epi16(fill));
  }
}
template <class T>
ORKNN_SIMD void pad_sixteen(const IntPad& p, const uint8_t* x, int64_t count, T* y) {
  const __m128i bytes = load_bytes(x, count);
  if constexpr (sizeof(T) == 1) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm_xor_si128(bytes, _mm_set1_epi8(static_cast<char>(p.flip))));
  } else {
    const __m256i words = p.is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm256_sub_epi16(words, _mm256_set1_epi16(static_cast<int16_t>(p.zero))));
  }
}
#endif

template <class T>
ORKNN_SIMD void pad_of(const IntPad& p) {
  const T fill = static_cast<T>(p.fill);
  for (int64_t row = 0; row < p.rows; ++row) {
    T* y = static_cast<T*>(p.y) + row * p.y_stride;
    const int64_t at = p.first + row, inside = at >= 0 && at < p.height ? p.inside : 0;
    pad_fill(y, 0, p.left, fill);
    for (int64_t i = 0; i < inside; i += 16) pad_sixteen(p, p.x + at * p.width + i, inside - i, y + p.left + i);
    pad_fill(y, p.left + inside, p.length, fill);
  }
}

static void pad(const IntPad& given) {
  const IntPad p = given;
  if (p.words)
    pad_of<int16_t>(p);
  else
    pad_of<uint8_t>(p);
}

}  // namespace orknn::sim::kernels::ORKNN_INT_FORM
