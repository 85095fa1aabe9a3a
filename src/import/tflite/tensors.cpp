#include "import/tflite/tensors.h"

#include <algorithm>

#include "import/wire/stored.h"

namespace orknn::importer::tflite {
namespace {
using ir::Dims;
using ir::TensorData;

// A sparse tensor states its dense shape freely; more bytes than this per stored one are taken for damage rather than allocated.
constexpr int64_t kMaxSparseGrowth = 256;

bool is_complex(ElementType t) { return t == ElementType::Complex64 || t == ElementType::Complex128; }

int bits_of(ElementType type) {
  switch (type) {
    case ElementType::Int4:
    case ElementType::UInt4: return 4;
    case ElementType::Int2: return 2;
    default: return static_cast<int>(8 * dtype_bytes(to_dtype(type)));
  }
}

uint64_t stored_bytes(ElementType type, int64_t count) {
  return (static_cast<uint64_t>(count) * static_cast<uint64_t>(bits_of(type)) + 7) / 8;
}

Status wrong_size(const TensorInfo& info, const Dims& dims, uint64_t wanted) {
  return invalid_model("the data of tensor '" + std::string(info.name) + "' does not fit its shape")
      .expected(std::to_string(wanted) + " bytes for " + element_type_name(info.type) + ir::to_string(dims))
      .found(std::to_string(info.data.size()));
}

// Several values per byte, the lowest bits first.
void unpack(const std::byte* packed, uint8_t* out, int64_t count, int bits, bool is_signed) {
  const int per_byte = 8 / bits, mask = (1 << bits) - 1, sign = 1 << (bits - 1);
  for (int64_t i = 0; i < count; ++i) {
    const int value = (std::to_integer<int>(packed[i / per_byte]) >> (i % per_byte * bits)) & mask;
    out[i] = static_cast<uint8_t>(is_signed ? (value ^ sign) - sign : value);
  }
}

// `bytes` holds exactly `count` elements.
TensorData dense(ElementType type, Dims dims, int64_t count, std::span<const std::byte> bytes,
                 const std::shared_ptr<const void>& keeper) {
  const DType dtype = to_dtype(type);
  if (const int bits = bits_of(type); bits < 8) {
    TensorData t = TensorData::allocate(dtype, std::move(dims));
    unpack(bytes.data(), static_cast<uint8_t*>(t.mutable_data()), count, bits, type != ElementType::UInt4);
    return t;
  }
  return wire::stored_tensor(dtype, std::move(dims), bytes, keeper);
}

// One level of a sparse tensor: a dense one, or for each parent the list of children that are stored.
struct Level {
  bool is_sparse = false;
  int64_t extent = 0;  // of a dense level
  std::vector<int64_t> segments, indices;
};

// The vectors of a level come as 8, 16 or 32 bits per number.
Result<std::vector<int64_t>> level_numbers(const Table& t, unsigned type_id) {
  const Table holder = t.table(type_id + 1);
  switch (t.number<uint8_t>(type_id)) {
    case 1: return holder.numbers<int32_t>(0).to_ints();
    case 2: return holder.numbers<uint16_t>(0).to_ints();
    case 3: return holder.numbers<uint8_t>(0).to_ints();
    default: return invalid_model("a sparse level has no list of indices");
  }
}

// Walks the stored values in their order and puts each at its place in the dense tensor.
class Spreader {
 public:
  // Levels come in the order of traversal; `axis_of` and `step_of` say what a step in a level means in the dense tensor.
  Spreader(std::vector<Level> levels, std::vector<size_t> axis_of, std::vector<int64_t> step_of, Dims dims)
      : levels_(std::move(levels)),
        axis_of_(std::move(axis_of)),
        step_of_(std::move(step_of)),
        dims_(std::move(dims)),
        strides_(ir::strides_of(dims_)) {}

  // The place of every stored value; fails when a place lies outside or there are more values than `limit`.
  Result<std::vector<int64_t>> places(int64_t limit) {
    limit_ = limit;
    std::vector<int64_t> at(dims_.size(), 0);
    ORKNN_TRY(walk(0, 0, at));
    return std::move(places_);
  }

 private:
  Status walk(size_t level, int64_t parent, std::vector<int64_t>& at) {  // as deep as there are levels
    if (level == levels_.size()) {
      int64_t place = 0;
      for (size_t i = 0; i < dims_.size(); ++i) {
        if (at[i] >= dims_[i])
          return invalid_model("a sparse tensor has a value outside of its shape").expected("inside of " + ir::to_string(dims_));
        place += at[i] * strides_[i];
      }
      if (static_cast<int64_t>(places_.size()) >= limit_)
        return invalid_model("a sparse tensor lists more values than it stores").found("more than " + std::to_string(limit_));
      places_.push_back(place);
      return {};
    }
    const Level& l = levels_[level];
    const auto step = [&](int64_t index, int64_t child) {
      const int64_t before = at[axis_of_[level]];
      at[axis_of_[level]] = before + index * step_of_[level];
      const Status s = walk(level + 1, child, at);
      at[axis_of_[level]] = before;
      return s;
    };
    if (!l.is_sparse) {
      for (int64_t i = 0; i < l.extent; ++i) ORKNN_TRY(step(i, parent * l.extent + i));
      return {};
    }
    if (parent < 0 || parent + 1 >= static_cast<int64_t>(l.segments.size()))
      return invalid_model("a sparse level has too few segments");
    const int64_t begin = l.segments[static_cast<size_t>(parent)], end = l.segments[static_cast<size_t>(parent) + 1];
    if (begin < 0 || end < begin || end > static_cast<int64_t>(l.indices.size()))
      return invalid_model("a sparse level has segments out of order");
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = l.indices[static_cast<size_t>(i)];
      if (index < 0) return invalid_model("a sparse level has a negative index");
      ORKNN_TRY(step(index, i));
    }
    return {};
  }

  std::vector<Level> levels_;
  std::vector<size_t> axis_of_;
  std::vector<int64_t> step_of_;
  Dims dims_, strides_;
  std::vector<int64_t> places_;
  int64_t limit_ = 0;
};

namespace sparsity_field {
enum : unsigned { TraversalOrder = 0, BlockMap = 1, Levels = 2 };
}
namespace level_field {
enum : unsigned { Format = 0, DenseSize = 1, SegmentsType = 2, IndicesType = 4 };
}

// The first levels are the axes in the order of traversal; those after them are the extents of blocks, block_map names their
// axes.
Result<TensorData> read_sparse(const TensorInfo& info, const Dims& dims, const std::shared_ptr<const void>& keeper) {
  const DType dtype = to_dtype(info.type);
  const int64_t most =
      kMaxSparseGrowth * (static_cast<int64_t>(info.data.size()) + kMaxSparseGrowth) / static_cast<int64_t>(dtype_bytes(dtype));
  ORKNN_TRY_ASSIGN(const int64_t count, ir::checked_element_count(dims, most));
  const Numbers<int32_t> order = info.sparsity.numbers<int32_t>(sparsity_field::TraversalOrder),
                         block_map = info.sparsity.numbers<int32_t>(sparsity_field::BlockMap);
  const Tables tables = info.sparsity.tables(sparsity_field::Levels);
  const size_t rank = dims.size();
  if (order.size() != tables.size() || order.size() != rank + block_map.size() || order.size() > 2 * rank)
    return invalid_model("the sparse tensor has a wrong number of levels")
        .expected(std::to_string(rank + block_map.size()))
        .found(std::to_string(tables.size()));

  std::vector<Level> levels;
  for (size_t i = 0; i < tables.size(); ++i) {
    Level& l = levels.emplace_back();
    l.is_sparse = tables[i].number<int8_t>(level_field::Format) == 1;
    l.extent = tables[i].number<int32_t>(level_field::DenseSize);
    if (!l.is_sparse) {
      if (l.extent < 1 || l.extent > std::max<int64_t>(count, 1))
        return invalid_model("a level of a sparse tensor has an impossible extent").found(std::to_string(l.extent));
      continue;
    }
    ORKNN_TRY_ASSIGN(l.segments, level_numbers(tables[i], level_field::SegmentsType));
    ORKNN_TRY_ASSIGN(l.indices, level_numbers(tables[i], level_field::IndicesType));
  }
  std::vector<int64_t> block_extent(rank, 1);
  std::vector<size_t> axis_of(levels.size());
  std::vector<int64_t> step_of(levels.size());
  std::vector<char> seen(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || static_cast<size_t>(order[i]) >= order.size() || seen[static_cast<size_t>(order[i])]++)
      return invalid_model("the traversal order of a sparse tensor is not a permutation").found(std::to_string(order[i]));
    const auto level = static_cast<size_t>(order[i]);
    if (level < rank) {
      axis_of[i] = level;
      continue;
    }
    const int32_t axis = block_map[level - rank];
    if (axis < 0 || static_cast<size_t>(axis) >= rank || levels[i].is_sparse)
      return invalid_model("a block of a sparse tensor has no axis").found(std::to_string(axis));
    axis_of[i] = static_cast<size_t>(axis);
    step_of[i] = 1;
    block_extent[axis_of[i]] = levels[i].extent;
  }
  for (size_t i = 0; i < order.size(); ++i)
    if (static_cast<size_t>(order[i]) < rank) step_of[i] = block_extent[axis_of[i]];

  const int64_t stored = static_cast<int64_t>(info.data.size()) * 8 / bits_of(info.type);
  Spreader spreader(std::move(levels), std::move(axis_of), std::move(step_of), dims);
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> places, spreader.places(stored));
  const auto values_count = static_cast<int64_t>(places.size());
  const uint64_t wanted = stored_bytes(info.type, values_count);
  if (wanted != info.data.size()) return wrong_size(info, dims, wanted);
  const TensorData values = dense(info.type, {values_count}, values_count, info.data, keeper);
  TensorData result = TensorData::zeros(dtype, dims);
  const size_t size = dtype_bytes(dtype);
  for (int64_t i = 0; i < values_count; ++i)
    std::memcpy(static_cast<std::byte*>(result.mutable_data()) + static_cast<size_t>(places[static_cast<size_t>(i)]) * size,
                static_cast<const std::byte*>(values.data()) + static_cast<size_t>(i) * size, size);
  return result;
}
}  // namespace

Result<Dims> stated_dims(const TensorInfo& info) {
  if (to_dtype(info.type) == DType::Undefined)
    return unsupported("tensor '" + std::string(info.name) + "' has an element type that is not supported")
        .found(element_type_name(info.type));
  Dims dims = info.shape.to_ints();
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }))
    return invalid_model("tensor '" + std::string(info.name) + "' has a negative extent").found(ir::to_string(dims));
  if (is_complex(info.type)) dims.push_back(2);
  return dims;
}

Result<TensorData> read_constant(const TensorInfo& info, const std::shared_ptr<const void>& keeper) {
  ORKNN_TRY_ASSIGN(Dims dims, stated_dims(info));
  ORKNN_TRY_ASSIGN(const int64_t count, ir::checked_element_count(dims));
  if (info.sparsity.exists() && info.sparsity.has(sparsity_field::Levels)) {
    auto data = read_sparse(info, dims, keeper);
    return data ? std::move(data) : Result<TensorData>(Status(data.status()).node(info.name, "sparse tensor"));
  }
  const uint64_t wanted = stored_bytes(info.type, count);
  if (wanted != info.data.size()) return wrong_size(info, dims, wanted);
  return dense(info.type, std::move(dims), count, info.data, keeper);
}

}  // namespace orknn::importer::tflite
