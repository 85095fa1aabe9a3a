#include "ir/packed.h"

#include <algorithm>

#include "base/threads.h"

namespace orknn::ir {

Result<Dims> block_counts(std::span<const int64_t> dims, std::span<const int64_t> block) {
  if (block.size() != dims.size()) return invalid_model("a packed constant has blocks of another rank");
  Dims counts;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (block[i] < 1 || block[i] > std::max<int64_t>(dims[i], 1))
      return invalid_model("a packed constant has blocks that do not fit its shape");
    counts.push_back((dims[i] + block[i] - 1) / block[i]);
  }
  return counts;
}

uint64_t packed_integer_bytes(DType type, int64_t count) {
  const auto n = static_cast<uint64_t>(count);
  return type == DType::Int4 ? n / 2 + n % 2 : n;
}

std::shared_ptr<const PackedForm> pack(DType type, Dims dims, Dims block, std::span<const int8_t> integers,
                                       std::span<const float> scales) {
  ORKNN_ASSERT(type == DType::Int8 || type == DType::Int4, "packed constants hold int8 or int4");
  ORKNN_ASSERT(static_cast<size_t>(element_count(dims)) == integers.size(), "as many integers as the shape says");
  auto form = std::make_shared<PackedForm>();
  form->type = type;
  const auto bytes = static_cast<int64_t>(packed_integer_bytes(type, static_cast<int64_t>(integers.size())));
  form->integers = TensorData::allocate(DType::UInt8, {bytes});
  auto* to = static_cast<uint8_t*>(form->integers.mutable_data());
  if (type == DType::Int8) {
    std::transform(integers.begin(), integers.end(), to, [](int8_t v) { return static_cast<uint8_t>(v); });
  } else {
    std::fill_n(to, bytes, uint8_t{0});
    for (size_t i = 0; i < integers.size(); ++i) to[i / 2] = static_cast<uint8_t>(to[i / 2] | (integers[i] & 15) << (i % 2 * 4));
  }
  form->scales = TensorData::from<float>({static_cast<int64_t>(scales.size())}, scales);
  form->dims = std::move(dims);
  form->block = std::move(block);
  return form;
}

TensorData unpack(std::shared_ptr<const PackedForm> form, DType type) {
  ORKNN_ASSERT(type == DType::Float32 || type == DType::Float16, "packed constants are used in float");
  // Axes that one scale covers join the axis in front of them, so that a row has as many elements as possible.
  Dims dims{1}, block{1}, counts{1};
  bool whole = true;  // the last axis has one scale
  for (size_t i = 0; i < form->dims.size(); ++i) {
    const int64_t extent = form->dims[i];
    if (form->block[i] >= extent && whole) {
      dims.back() *= extent;
      block.back() = std::max<int64_t>(dims.back(), 1);
      continue;
    }
    whole = form->block[i] >= extent;
    dims.push_back(extent);
    block.push_back(form->block[i]);
    counts.push_back((extent + form->block[i] - 1) / form->block[i]);
  }
  TensorData result = TensorData::allocate(type, form->dims);
  void* bytes = result.mutable_data();
  const auto* integers = form->integers.as<uint8_t>();
  const float* scales = form->scales.as<float>();
  const int64_t row = dims.back(), step = block.back(), rows = row ? element_count(form->dims) / row : 0;
  const bool narrow = form->type == DType::Int4;
  ThreadPool::shared().parallel_for(
      rows, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(row, 1)), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          int64_t first = 0, factor = counts.back();
          for (int64_t k = static_cast<int64_t>(dims.size()) - 2, rest = r; k >= 0; --k) {
            const auto axis = static_cast<size_t>(k);
            first += rest % dims[axis] / block[axis] * factor;
            rest /= dims[axis];
            factor *= counts[axis];
          }
          for (int64_t j = 0; j < row; ++j) {
            const int64_t at = r * row + j;
            const int integer = narrow ? static_cast<int8_t>(static_cast<uint8_t>(integers[at / 2] >> (at % 2 * 4) << 4)) >> 4
                                       : static_cast<int8_t>(integers[at]);
            const float value = static_cast<float>(integer) * scales[first + j / step];
            if (type == DType::Float16)
              static_cast<Half*>(bytes)[at] = Half(value);
            else
              static_cast<float*>(bytes)[at] = value;
          }
        }
      });
  return result.with_packed(std::move(form));
}

}  // namespace orknn::ir
