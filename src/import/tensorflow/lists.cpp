// TensorArray (TensorFlow 1) and TensorList (2): while a graph is lowered they are lists of tensors of ours, since the indices by
// which loops read and write them are constants then. The state of a TensorArray travels with its flow.
#include <algorithm>
#include <numeric>

#include "import/lower/strided_slice.h"
#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
constexpr int64_t kMostItems = 1 << 13;

Result<size_t> list_size(Layer& l, size_t input) {
  ORKNN_TRY_ASSIGN(const int64_t size, l.integer(input, "to size the list"));
  if (size < 0 || size > kMostItems) return invalid_model("the size of a list is out of range").found(std::to_string(size));
  return static_cast<size_t>(size);
}

// A shape attribute or constant input with every extent known.
std::optional<Dims> known_shape(const AttributeValue& shape) {
  if (shape.kind != AttributeValue::Kind::Shape) return std::nullopt;
  const auto parsed = parse_shape(shape.message);
  return parsed && *parsed ? to_dims(**parsed) : std::nullopt;
}
std::optional<Dims> known_shape(Layer& l, size_t input) {
  if (l.operand_count() <= input || !l.value(input).tensor) return std::nullopt;
  const TensorData* value = l.constant_of(l.value(input).tensor);
  if (!value || is_float(value->dtype()) || value->dims().size() != 1) return std::nullopt;
  const auto dims = to_ints(value->view());
  if (std::ranges::any_of(dims, [](int64_t d) { return d < 0; })) return std::nullopt;
  return dims;
}

// What is known of the elements' shape: stated, or that of one that was written.
std::optional<Dims> element_shape(Layer& l, const TensorList& list) {
  std::optional<Dims> dims = list.element;
  for (TensorId item : list.items)
    if (!dims && item) dims = l.dims_of(item);
  return dims;
}

DType element_type(const Layer& l, std::string_view attribute) {
  const DType dtype = l.dtype_or(attribute, DType::Float32);
  return dtype == DType::Undefined ? DType::Float32 : dtype;
}

// The state of a TensorArray is the last input of its operators, called flow.
template <auto Function>
auto of_array(Layer& l) -> decltype(Function(l, TensorList())) {
  ORKNN_TRY_ASSIGN(const TensorList* list, l.list(l.operand_count() - 1));
  return Function(l, *list);
}
// A TensorList is the first. Its elements have the shape of input `Shape` where the list itself does not tell.
template <auto Function, size_t Shape = SIZE_MAX>
auto of_list(Layer& l) -> decltype(Function(l, TensorList())) {
  ORKNN_TRY_ASSIGN(const TensorList* given, l.list(0));
  TensorList list = *given;
  if (!list.element) list.element = known_shape(l, Shape);
  return Function(l, std::move(list));
}

// --- elements

Status out_of_range(int64_t index, size_t size) {
  return invalid_model("an index is outside the list")
      .expected("0 to " + std::to_string(static_cast<int64_t>(size) - 1))
      .found(std::to_string(index));
}

// An element, zeros when it was never written.
Result<TensorId> item_of(Layer& l, const TensorList& list, int64_t index) {
  if (index < 0 || index >= static_cast<int64_t>(list.items.size())) return out_of_range(index, list.items.size());
  if (const TensorId item = list.items[static_cast<size_t>(index)]) return item;
  const std::optional<Dims> dims = element_shape(l, list);
  if (!dims) return unsupported("an element is read that was never written").found("element " + std::to_string(index));
  return l.expand(l.add_scalar("zero", 0, list.dtype), *dims);
}

Status put(TensorList& list, int64_t index, TensorId item, bool grows) {
  if (index < 0 || index >= kMostItems || (!grows && index >= static_cast<int64_t>(list.items.size())))
    return out_of_range(index, list.items.size());
  if (static_cast<size_t>(index) >= list.items.size()) list.items.resize(static_cast<size_t>(index) + 1);
  list.items[static_cast<size_t>(index)] = item;
  return {};
}

Result<TensorId> read_item(Layer& l, TensorList list) {
  ORKNN_TRY_ASSIGN(const int64_t index, l.integer(1, "to read from a list"));
  return item_of(l, list, index);
}

// Only some lists grow when written to.
Result<TensorList> write_item(Layer& l, TensorList list) {
  ORKNN_TRY_ASSIGN(const int64_t index, l.integer(1, "to write to a list"));
  ORKNN_TRY_ASSIGN(const TensorId item, l.operand(2));
  ORKNN_TRY(put(list, index, item, l.bool_or("resize_if_index_out_of_bounds", l.op() != "TensorListSetItem")));
  return list;
}

// The rows of a tensor.
Result<std::vector<TensorId>> rows_of(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to take it apart"));
  const Dim extent = rank > 0 ? (*l.shape_of(x))[0] : Dim();
  if (!extent.is_known())
    return unsupported("the number of rows must be known to take a tensor apart")
        .hint("give the input shapes with input_size_list");
  if (extent.value() > kMostItems) return unsupported("the tensor has too many rows").found(extent.to_string());
  return unstack(l, x, 0, extent.value());
}

template <size_t Rows, size_t Indices>
Result<TensorList> scatter_rows(Layer& l, TensorList list) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.operand(Rows));
  ORKNN_TRY_ASSIGN(const auto indices, l.ints(Indices, "to write to a list"));
  ORKNN_TRY_ASSIGN(const auto rows, rows_of(l, x));
  if (rows.size() != indices.size())
    return shape_mismatch("as many indices as rows are needed")
        .expected(std::to_string(rows.size()))
        .found(std::to_string(indices.size()));
  for (size_t i = 0; i < rows.size(); ++i) ORKNN_TRY(put(list, indices[i], rows[i], true));
  return list;
}

Result<TensorId> stacked(Layer& l, const TensorList& list, const std::vector<int64_t>& indices) {
  std::vector<TensorId> parts;
  for (int64_t index : indices) {
    ORKNN_TRY_ASSIGN(const TensorId item, item_of(l, list, index));
    parts.push_back(item);
  }
  if (!parts.empty()) return l.stack(std::move(parts), 0);
  Dims dims{0};
  if (list.element) dims.insert(dims.end(), list.element->begin(), list.element->end());
  return l.add_constant("empty", TensorData::zeros(list.dtype, dims));
}
Result<TensorId> gather_items(Layer& l, TensorList list) {
  ORKNN_TRY_ASSIGN(const auto indices, l.ints(1, "to read from a list"));
  return stacked(l, list, indices);
}

// All elements one after the other, and their lengths.
Result<std::vector<TensorId>> join_items(Layer& l, TensorList list) {
  std::vector<TensorId> parts;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < list.items.size(); ++i) {
    ORKNN_TRY_ASSIGN(const TensorId item, item_of(l, list, static_cast<int64_t>(i)));
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(item, "to join a list"));
    lengths.push_back(dims.empty() ? 0 : dims[0]);
    parts.push_back(item);
  }
  if (parts.empty()) return unsupported("an empty list cannot be joined");
  return std::vector{l.concat(std::move(parts), 0), l.add_ints("lengths", lengths)};
}

// Pieces of an input, of the lengths in input 2.
template <size_t Whole>
Result<TensorList> split_to_items(Layer& l, TensorList list) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.operand(Whole));
  ORKNN_TRY_ASSIGN(const auto lengths, l.ints(2, "to take a tensor apart"));
  list.items.clear();
  int64_t at = 0;
  for (int64_t length : lengths) {
    if (length < 0 || length > (int64_t{1} << 40)) return invalid_model("a length is out of range").found(std::to_string(length));
    list.items.push_back(l.slice(x, 0, at, at + length));
    at += length;
  }
  return list;
}

Result<TensorId> count_items(Layer& l, TensorList list) {
  return l.add_scalar("size", static_cast<double>(list.items.size()), DType::Int32);
}
Result<TensorList> resize_list(Layer& l, TensorList list) {
  ORKNN_TRY_ASSIGN(const size_t size, list_size(l, 1));
  list.items.resize(size);
  return list;
}
Result<TensorList> push_item(Layer& l, TensorList list) {
  ORKNN_TRY_ASSIGN(const TensorId item, l.operand(1));
  ORKNN_TRY(put(list, static_cast<int64_t>(list.items.size()), item, true));
  return list;
}
Result<std::vector<Value>> pop_item(Layer& l, TensorList list) {
  ORKNN_TRY_ASSIGN(const TensorId item, item_of(l, list, static_cast<int64_t>(list.items.size()) - 1));
  list.items.pop_back();
  return std::vector<Value>{Value(std::move(list)), item};
}
Result<TensorId> stack_items(Layer& l, TensorList list) {
  std::vector<int64_t> all(list.items.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  return stacked(l, list, all);
}
Result<TensorId> shape_of_items(Layer& l, TensorList list) {
  const std::optional<Dims> dims = element_shape(l, list);
  if (!dims) return unsupported("the shape of the elements of a list must be known");
  return l.cast(l.add_ints("shape", *dims), l.dtype_or("shape_type", DType::Int32));
}

// --- new lists

// A TensorArray has a handle and its flow.
Result<std::vector<Value>> array(Layer& l) {
  TensorList list;
  ORKNN_TRY_ASSIGN(const size_t size, list_size(l, 0));
  list.items.resize(size);
  list.dtype = element_type(l, "dtype");
  list.element = known_shape(l.attribute("element_shape"));
  return std::vector<Value>(2, Value(std::move(list)));
}
TensorList empty_list(Layer& l) {
  TensorList list;
  list.dtype = element_type(l, "element_dtype");
  list.element = known_shape(l, 0);
  return list;
}
Result<TensorList> reserved_list(Layer& l) { return resize_list(l, empty_list(l)); }
Result<TensorList> list_of_rows(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(std::vector<TensorId> rows, rows_of(l, x));
  return TensorList{std::move(rows), l.dtype_of(x), known_shape(l, 1)};
}
Result<TensorList> list_of_pieces(Layer& l, TensorId x) { return split_to_items<0>(l, {{}, l.dtype_of(x), {}}); }
Result<TensorList> scattered_list(Layer& l, TensorId x) {
  TensorList list{{}, l.dtype_of(x), known_shape(l, 2)};
  if (l.op() == "TensorListScatterV2") {
    ORKNN_TRY_ASSIGN(const int64_t size, l.integer(3, "to size the list"));
    if (size > kMostItems) return invalid_model("the size of a list is out of range").found(std::to_string(size));
    if (size > 0) list.items.resize(static_cast<size_t>(size));
  }
  return scatter_rows<0, 1>(l, std::move(list));
}
}  // namespace

std::span<const Row> list_rows() {
  static const RowLimits one{.inputs = {.least = 1}}, four{.inputs = {.least = 4}};
  static const Row rows[] = {
      {"TensorArray|TensorArrayV2|TensorArrayV3", array},
      {"TensorArrayWrite|TensorArrayWriteV2|TensorArrayWriteV3", of_array<write_item>, four},
      {"TensorArrayRead|TensorArrayReadV2|TensorArrayReadV3", of_array<read_item>, one},
      {"TensorArrayScatter|TensorArrayScatterV2|TensorArrayScatterV3", of_array<scatter_rows<2, 1>>, four},
      {"TensorArrayGather|TensorArrayGatherV2|TensorArrayGatherV3", of_array<gather_items>, one},
      {"TensorArraySize|TensorArraySizeV2|TensorArraySizeV3", of_array<count_items>, one},
      {"TensorArrayConcatV2|TensorArrayConcatV3", of_array<join_items>, one},
      {"TensorArraySplitV2|TensorArraySplitV3", of_array<split_to_items<1>>, one},
      {"EmptyTensorList", empty_list},
      {"TensorListReserve", reserved_list},
      {"TensorListFromTensor", list_of_rows},
      {"TensorListSplit", list_of_pieces},
      {"TensorListScatter|TensorListScatterV2", scattered_list},
      {"TensorListScatterIntoExistingList", of_list<scatter_rows<1, 2>>},
      {"TensorListGetItem", of_list<read_item, 2>},
      {"TensorListSetItem", of_list<write_item>},
      {"TensorListPushBack", of_list<push_item>},
      {"TensorListPopBack", of_list<pop_item>},
      {"TensorListStack", of_list<stack_items, 1>},
      {"TensorListGather", of_list<gather_items, 2>},
      {"TensorListConcat|TensorListConcatV2", of_list<join_items>},
      {"TensorListLength", of_list<count_items>},
      {"TensorListResize", of_list<resize_list>},
      {"TensorListElementShape", of_list<shape_of_items>},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
