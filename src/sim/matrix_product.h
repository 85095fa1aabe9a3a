// Products of two matrices that belong to no graph. Operands are packed for the fast kernels once and multiplied as often as
// wanted; sums of integers are exact, sums of floats are float32 in the order of depth. Results do not depend on the number of
// threads.
#pragma once

#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/threads.h"
#include "sim/kernels/support/forms.h"
#include "sim/kernels/support/int_forms.h"
#include "sim/matrix_layout.h"

namespace orknn::sim {

// What numbers mean. The sums are those of (a - left_zero) * (b - right_zero); what becomes of them depends on the result:
//   float32, float16, bfloat16   sum * factor, rounded once
//   int8                         nearest(sum * factor) + result_zero, saturated
//   int32                        the sum, which wraps; with factors nearest(sum * factor), saturated
//   int16                        the sum, saturated
// With a right_scale (float results only) b, or with exact sums each group's sum, is first multiplied by it.
struct ProductScaling {
  int32_t left_zero = 0;
  std::vector<int32_t> right_zero;  // [groups][columns]; empty = 0
  std::vector<float> right_scale;   // [groups][columns]; empty = 1
  std::vector<double> factor;       // per column; empty = 1
  int32_t result_zero = 0;
};

// Tells within this process whether bytes have changed. Forms of cores have different ones: not for files.
uint64_t fingerprint(std::span<const std::byte> bytes);

// Whether the memory of a left operand stays as it is until the next run has ended: it may then be read in that run.
enum class LeftData : uint8_t { Copied, Stays };

class MatrixProduct {
 public:
  // `left` is Float16 (the sums are float32 then), Int8 or Int4; `right` is Float16 with a Float16 on the left only, Int8 or
  // Int4. `group` divides the depth. 4-bit values are stored two per byte; on the left the low half comes first.
  MatrixProduct(DType left, DType right, int64_t depth, int64_t columns, int64_t group);

  bool has_float_sums() const { return left_type_ == DType::Float16; }
  // True when packing the right operand needs its scaling: it is packed again when that changes.
  bool packs_scaling() const { return has_float_sums() && right_type_ != DType::Float16; }

  // These copy what they need, except floats of a left operand that stays: run() reads them where they are. OutOfMemory where
  // there is none.
  Status pack_left(const void* data, const RowLayout& layout, LeftData data_is, ThreadPool& pool);
  Status pack_right(const void* data, const RightLayout& layout, const ProductScaling& scaling, ThreadPool& pool);
  // Both operands are packed; `layout` has the rows of the left one.
  Status run(const ProductScaling& scaling, void* result, DType type, const RowLayout& layout, ThreadPool& pool);

 private:
  // A part of the depth whose sums are exact in 32 bits, within one group.
  struct Piece {
    int64_t begin = 0, depth = 0, group = 0;
    int64_t dword = 0, dwords = 0;  // its place in the depth of packed operands
  };
  // Memory that only grows.
  struct Buffer {
    AlignedPtr<void> data;
    size_t bytes = 0;
    bool reserve(size_t wanted);
    template <class T>
    T* as() const {
      return static_cast<T*>(data.get());
    }
  };

  Status pack_left_floats(const Half* data, const RowLayout& layout, LeftData data_is, ThreadPool& pool);
  Status pack_left_ints(const uint8_t* data, const RowLayout& layout, ThreadPool& pool);
  Status pack_right_floats(const void* data, const RightLayout& layout, const ProductScaling& scaling, ThreadPool& pool);
  Status pack_right_ints(const void* data, const RightLayout& layout, ThreadPool& pool);
  void pack_tile(const void* data, const RightLayout& layout, int64_t first, int32_t* to, int32_t* all_sums) const;
  Status run_floats(const ProductScaling& scaling, void* result, DType type, const RowLayout& layout, ThreadPool& pool);
  Status run_ints(const ProductScaling& scaling, void* result, DType type, const RowLayout& layout, ThreadPool& pool);
  void set_terms(const ProductScaling& scaling);
  uint32_t left_offset() const;  // of packed elements
  int64_t terms_pitch() const;
  void sum_left(ThreadPool& pool);
  // These fill the rest of `to`, which says where sums go, sum_floats() also how many rows.
  void multiply(int64_t panel, const Piece& piece, kernels::IntTile& to) const;
  void sum_tile(const ProductScaling& scaling, int64_t panel, int64_t tile, const Piece& piece, kernels::IntTile& to) const;
  template <class Finish>
  void sum_strip(const ProductScaling& scaling, int64_t row, int64_t rows, int64_t tile, const Finish& finish) const;
  template <class Add>
  void sum_pieces(const ProductScaling& scaling, int64_t row, int64_t rows, int64_t tile, const Add& add) const;
  void sum_ints(int64_t row, int64_t rows, int64_t tile, int32_t* sums, int64_t row_stride, bool streams) const;
  void sum_floats(const float* left, int64_t tile, kernels::GemmBlock& to) const;

  const DType left_type_, right_type_;
  const int64_t depth_, columns_, group_;
  int64_t rows_ = 0;
  // --- floats
  kernels::LeftRows halves_;  // all of the left operand
  // --- integers
  kernels::Isa isa_;
  bool words_ = false;  // dwords of two int16 values instead of four bytes
  std::vector<Piece> pieces_;
  int64_t dwords_ = 0;
  std::vector<int32_t> left_sums_;   // [pieces][rows]; empty until they are needed
  std::vector<int32_t> right_sums_;  // [pieces][columns]
  std::vector<int32_t> terms_;       // [pieces][columns of whole tiles]: what zero points add to the sums of every row
  // --- both
  Buffer left_, right_, scratch_;
  std::vector<float> factors_;
};

}  // namespace orknn::sim
