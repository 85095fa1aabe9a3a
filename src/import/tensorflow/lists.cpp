// TensorArray (TensorFlow 1) and TensorList (2): while a graph is lowered they are lists of tensors of ours, since the indices by
// which loops read and write them are constants then. The state of a TensorArray travels with its flow.
#include <algorithm>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
constexpr int64_t kMostItems = 1 << 13;

Result<int64_t> list_size(Layer& layer, size_t input) {
  ORKNN_TRY_ASSIGN(const int64_t size, layer.integer(input, "to size the list"));
  if (size < 0 || size > kMostItems) return invalid_model("the size of a list is out of range").found(std::to_string(size));
  return size;
}

// A shape attribute or constant input with every extent known.
std::optional<Dims> known_shape(const AttributeValue& shape) {
  if (shape.kind != AttributeValue::Kind::Shape) return std::nullopt;
  const auto parsed = parse_shape(shape.message);
  return parsed && *parsed ? to_dims(**parsed) : std::nullopt;
}
std::optional<Dims> known_shape(Layer& layer, size_t input) {
  if (layer.input_count() <= input || !layer.value(input).tensor) return std::nullopt;
  const TensorData* value = layer.constant_of(layer.value(input).tensor);
  if (!value || is_float(value->dtype()) || value->dims().size() != 1) return std::nullopt;
  const auto dims = to_ints(value->view());
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; })) return std::nullopt;
  return dims;
}

Status out_of_range(int64_t index, size_t size) {
  return invalid_model("an index lies outside of the list")
      .expected("0 to " + std::to_string(static_cast<int64_t>(size) - 1))
      .found(std::to_string(index));
}

// An element, zeros when it was never written.
Result<TensorId> item_of(Layer& layer, const TensorList& list, int64_t index) {
  if (index < 0 || index >= static_cast<int64_t>(list.items.size())) return out_of_range(index, list.items.size());
  if (const TensorId item = list.items[static_cast<size_t>(index)]) return item;
  std::optional<Dims> dims = list.element;
  for (TensorId other : list.items)
    if (!dims && other) dims = layer.dims_of(other);
  if (!dims) return unsupported("an element is read that was never written").found("element " + std::to_string(index));
  return layer.emit("Expand", {layer.add_scalar("zero", 0, list.dtype), layer.add_ints("shape", *dims)});
}

Status put(TensorList& list, int64_t index, TensorId item, bool grows) {
  if (index < 0 || index >= kMostItems || (!grows && index >= static_cast<int64_t>(list.items.size())))
    return out_of_range(index, list.items.size());
  if (static_cast<size_t>(index) >= list.items.size()) list.items.resize(static_cast<size_t>(index) + 1);
  list.items[static_cast<size_t>(index)] = item;
  return {};
}

// The rows of a tensor.
Result<std::vector<TensorId>> rows_of(Layer& layer, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(x, "to take it apart"));
  const Dim extent = rank > 0 ? (*layer.shape_of(x))[0] : Dim();
  if (!extent.is_known())
    return unsupported("the number of rows must be known to take a tensor apart")
        .hint("give the input shapes with input_size_list");
  const int64_t count = extent.value();
  if (count > kMostItems) return unsupported("the tensor has too many rows").found(std::to_string(count));
  if (count == 0) return std::vector<TensorId>();
  std::vector<TensorId> rows;
  if (count == 1) {
    rows.push_back(layer.squeeze(x, {0}));
    return rows;
  }
  for (TensorId part : layer.emit_all("Split", {x, layer.add_ints("sizes", std::vector<int64_t>(static_cast<size_t>(count), 1))},
                                      {{"axis", int64_t{0}}}, static_cast<size_t>(count)))
    rows.push_back(layer.squeeze(part, {0}));
  return rows;
}

Result<TensorId> stacked(Layer& layer, const TensorList& list, const std::vector<int64_t>& indices) {
  std::vector<TensorId> parts;
  for (int64_t index : indices) {
    ORKNN_TRY_ASSIGN(const TensorId item, item_of(layer, list, index));
    parts.push_back(layer.unsqueeze(item, {0}));
  }
  if (!parts.empty()) return layer.concat(std::move(parts), 0);
  Dims dims{0};
  if (list.element) dims.insert(dims.end(), list.element->begin(), list.element->end());
  return layer.add_constant("empty", TensorData::zeros(list.dtype, dims));
}

std::vector<int64_t> all_of(const TensorList& list) {
  std::vector<int64_t> indices(list.items.size());
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i);
  return indices;
}

DType element_type(const Layer& layer, std::string_view attribute) {
  const DType dtype = layer.dtype_or(attribute, DType::Float32);
  return dtype == DType::Undefined ? DType::Float32 : dtype;
}

// --- TensorArray: outputs handle and flow; every other operator reads and answers with the flow, its last input

Status lower_array(Layer& layer) {
  TensorList list;
  ORKNN_TRY_ASSIGN(const int64_t size, list_size(layer, 0));
  list.items.resize(static_cast<size_t>(size));
  list.dtype = element_type(layer, "dtype");
  list.element = known_shape(layer.attribute("element_shape"));
  layer.set(Value(list));
  layer.set(Value(std::move(list)));
  return {};
}

Result<const TensorList*> flow_of(Layer& layer) {
  if (layer.input_count() == 0) return invalid_model("inputs are missing");
  return layer.list(layer.input_count() - 1);
}

Status lower_array_write(Layer& layer) {
  ORKNN_TRY(layer.need_inputs(4));
  ORKNN_TRY_ASSIGN(const TensorList* flow, flow_of(layer));
  ORKNN_TRY_ASSIGN(const int64_t index, layer.integer(1, "to write to a list"));
  ORKNN_TRY_ASSIGN(const TensorId item, layer.input(2));
  TensorList list = *flow;
  ORKNN_TRY(put(list, index, item, true));
  layer.set(Value(std::move(list)));
  return {};
}

Status lower_array_read(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* flow, flow_of(layer));
  ORKNN_TRY_ASSIGN(const int64_t index, layer.integer(1, "to read from a list"));
  ORKNN_TRY_ASSIGN(const TensorId item, item_of(layer, *flow, index));
  layer.set(item);
  return {};
}

Status lower_array_scatter(Layer& layer) {
  ORKNN_TRY(layer.need_inputs(4));
  ORKNN_TRY_ASSIGN(const TensorList* flow, flow_of(layer));
  ORKNN_TRY_ASSIGN(const auto indices, layer.ints(1, "to write to a list"));
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(2));
  ORKNN_TRY_ASSIGN(const auto rows, rows_of(layer, x));
  if (rows.size() != indices.size())
    return shape_mismatch("as many indices as rows are needed")
        .expected(std::to_string(rows.size()))
        .found(std::to_string(indices.size()));
  TensorList list = *flow;
  for (size_t i = 0; i < rows.size(); ++i) ORKNN_TRY(put(list, indices[i], rows[i], true));
  layer.set(Value(std::move(list)));
  return {};
}

Status lower_array_gather(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* flow, flow_of(layer));
  ORKNN_TRY_ASSIGN(const auto indices, layer.ints(1, "to read from a list"));
  ORKNN_TRY_ASSIGN(const TensorId y, stacked(layer, *flow, indices));
  layer.set(y);
  return {};
}

Status lower_array_size(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* flow, flow_of(layer));
  layer.set(layer.add_scalar("size", static_cast<double>(flow->items.size()), DType::Int32));
  return {};
}

Result<TensorId> joined(Layer& layer, const TensorList& list, std::vector<int64_t>& lengths) {
  std::vector<TensorId> parts;
  for (int64_t index : all_of(list)) {
    ORKNN_TRY_ASSIGN(const TensorId item, item_of(layer, list, index));
    ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(item, "to join a list"));
    lengths.push_back(dims.empty() ? 0 : dims[0]);
    parts.push_back(item);
  }
  if (parts.empty()) return unsupported("an empty list cannot be joined");
  return layer.concat(std::move(parts), 0);
}

Status lower_list_concat(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* list, layer.op().starts_with("TensorArray") ? flow_of(layer) : layer.list(0));
  std::vector<int64_t> lengths;
  ORKNN_TRY_ASSIGN(const TensorId y, joined(layer, *list, lengths));
  layer.set(y);
  layer.set(layer.add_ints("lengths", lengths));
  return {};
}

Result<std::vector<TensorId>> pieces_of(Layer& layer, TensorId x, size_t lengths_input) {
  ORKNN_TRY_ASSIGN(const auto lengths, layer.ints(lengths_input, "to take a tensor apart"));
  std::vector<TensorId> pieces;
  int64_t at = 0;
  for (int64_t length : lengths) {
    if (length < 0 || length > (int64_t{1} << 40)) return invalid_model("a length is out of range").found(std::to_string(length));
    pieces.push_back(layer.slice(x, {at}, {at + length}, {0}));
    at += length;
  }
  return pieces;
}

Status lower_array_split(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* flow, flow_of(layer));
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(1));
  TensorList list = *flow;
  ORKNN_TRY_ASSIGN(list.items, pieces_of(layer, x, 2));
  layer.set(Value(std::move(list)));
  return {};
}

// --- TensorList: the list itself is the value

Status lower_list_reserve(Layer& layer) {
  TensorList list;
  list.dtype = element_type(layer, "element_dtype");
  list.element = known_shape(layer, 0);
  if (layer.op() == "TensorListReserve") {
    ORKNN_TRY_ASSIGN(const int64_t size, list_size(layer, 1));
    list.items.resize(static_cast<size_t>(size));
  }
  layer.set(Value(std::move(list)));
  return {};
}

Status lower_list_from_tensor(Layer& layer) {
  TensorList list;
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(list.items, rows_of(layer, x));
  list.dtype = layer.dtype_of(x);
  list.element = known_shape(layer, 1);
  layer.set(Value(std::move(list)));
  return {};
}

Status lower_list_get(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* list, layer.list(0));
  ORKNN_TRY_ASSIGN(const int64_t index, layer.integer(1, "to read from a list"));
  TensorList stated = *list;
  if (!stated.element) stated.element = known_shape(layer, 2);
  ORKNN_TRY_ASSIGN(const TensorId item, item_of(layer, stated, index));
  layer.set(item);
  return {};
}

Status lower_list_set(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* source, layer.list(0));
  ORKNN_TRY_ASSIGN(const int64_t index, layer.integer(1, "to write to a list"));
  ORKNN_TRY_ASSIGN(const TensorId item, layer.input(2));
  TensorList list = *source;
  ORKNN_TRY(put(list, index, item, layer.bool_or("resize_if_index_out_of_bounds", false)));
  layer.set(Value(std::move(list)));
  return {};
}

Status lower_list_push(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* source, layer.list(0));
  ORKNN_TRY_ASSIGN(const TensorId item, layer.input(1));
  TensorList list = *source;
  ORKNN_TRY(put(list, static_cast<int64_t>(list.items.size()), item, true));
  layer.set(Value(std::move(list)));
  return {};
}

Status lower_list_pop(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* source, layer.list(0));
  TensorList list = *source;
  ORKNN_TRY_ASSIGN(const TensorId item, item_of(layer, list, static_cast<int64_t>(list.items.size()) - 1));
  list.items.pop_back();
  layer.set(Value(std::move(list)));
  layer.set(item);
  return {};
}

Status lower_list_stack(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* list, layer.list(0));
  TensorList stated = *list;
  if (!stated.element) stated.element = known_shape(layer, 1);
  ORKNN_TRY_ASSIGN(const TensorId y, stacked(layer, stated, all_of(stated)));
  layer.set(y);
  return {};
}

Status lower_list_gather(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* list, layer.list(0));
  ORKNN_TRY_ASSIGN(const auto indices, layer.ints(1, "to read from a list"));
  TensorList stated = *list;
  if (!stated.element) stated.element = known_shape(layer, 2);
  ORKNN_TRY_ASSIGN(const TensorId y, stacked(layer, stated, indices));
  layer.set(y);
  return {};
}

// TensorListScatter(tensor, indices, element_shape, [number]) and ...IntoExistingList(list, tensor, indices).
Status lower_list_scatter(Layer& layer) {
  const bool existing = layer.op() == "TensorListScatterIntoExistingList";
  TensorList list;
  if (existing) {
    ORKNN_TRY_ASSIGN(const TensorList* source, layer.list(0));
    list = *source;
  }
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(existing ? 1 : 0));
  ORKNN_TRY_ASSIGN(const auto indices, layer.ints(existing ? 2 : 1, "to write to a list"));
  ORKNN_TRY_ASSIGN(const auto rows, rows_of(layer, x));
  if (!existing) {
    list.dtype = layer.dtype_of(x);
    list.element = known_shape(layer, 2);
    if (layer.op() == "TensorListScatterV2") {
      ORKNN_TRY_ASSIGN(const int64_t size, layer.integer(3, "to size the list"));
      if (size > kMostItems) return invalid_model("the size of a list is out of range").found(std::to_string(size));
      if (size > 0) list.items.resize(static_cast<size_t>(size));
    }
  }
  if (rows.size() != indices.size())
    return shape_mismatch("as many indices as rows are needed")
        .expected(std::to_string(rows.size()))
        .found(std::to_string(indices.size()));
  for (size_t i = 0; i < rows.size(); ++i) ORKNN_TRY(put(list, indices[i], rows[i], true));
  layer.set(Value(std::move(list)));
  return {};
}

Status lower_list_split(Layer& layer) {
  TensorList list;
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(list.items, pieces_of(layer, x, 2));
  list.dtype = layer.dtype_of(x);
  layer.set(Value(std::move(list)));
  return {};
}

Status lower_list_length(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* list, layer.list(0));
  layer.set(layer.add_scalar("length", static_cast<double>(list->items.size()), DType::Int32));
  return {};
}

Status lower_list_resize(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* source, layer.list(0));
  ORKNN_TRY_ASSIGN(const int64_t size, list_size(layer, 1));
  TensorList list = *source;
  list.items.resize(static_cast<size_t>(size));
  layer.set(Value(std::move(list)));
  return {};
}

Status lower_list_element_shape(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorList* list, layer.list(0));
  std::optional<Dims> dims = list->element;
  for (TensorId item : list->items)
    if (!dims && item) dims = layer.dims_of(item);
  if (!dims) return unsupported("the shape of the elements of a list must be known");
  layer.set(layer.cast(layer.add_ints("shape", *dims), layer.dtype_or("shape_type", DType::Int32)));
  return {};
}
}  // namespace

std::span<const Row> list_rows() {
  static constexpr Row kRows[] = {
      {"TensorArray", lower_array},
      {"TensorArrayV2", lower_array},
      {"TensorArrayV3", lower_array},
      {"TensorArrayWrite", lower_array_write},
      {"TensorArrayWriteV2", lower_array_write},
      {"TensorArrayWriteV3", lower_array_write},
      {"TensorArrayRead", lower_array_read},
      {"TensorArrayReadV2", lower_array_read},
      {"TensorArrayReadV3", lower_array_read},
      {"TensorArrayScatter", lower_array_scatter},
      {"TensorArrayScatterV2", lower_array_scatter},
      {"TensorArrayScatterV3", lower_array_scatter},
      {"TensorArrayGather", lower_array_gather},
      {"TensorArrayGatherV2", lower_array_gather},
      {"TensorArrayGatherV3", lower_array_gather},
      {"TensorArraySize", lower_array_size},
      {"TensorArraySizeV2", lower_array_size},
      {"TensorArraySizeV3", lower_array_size},
      {"TensorArrayConcatV2", lower_list_concat},
      {"TensorArrayConcatV3", lower_list_concat},
      {"TensorArraySplitV2", lower_array_split},
      {"TensorArraySplitV3", lower_array_split},
      {"TensorListReserve", lower_list_reserve},
      {"EmptyTensorList", lower_list_reserve},
      {"TensorListFromTensor", lower_list_from_tensor},
      {"TensorListGetItem", lower_list_get},
      {"TensorListSetItem", lower_list_set},
      {"TensorListPushBack", lower_list_push},
      {"TensorListPopBack", lower_list_pop},
      {"TensorListStack", lower_list_stack},
      {"TensorListGather", lower_list_gather},
      {"TensorListScatter", lower_list_scatter},
      {"TensorListScatterV2", lower_list_scatter},
      {"TensorListScatterIntoExistingList", lower_list_scatter},
      {"TensorListSplit", lower_list_split},
      {"TensorListConcat", lower_list_concat},
      {"TensorListConcatV2", lower_list_concat},
      {"TensorListLength", lower_list_length},
      {"TensorListResize", lower_list_resize},
      {"TensorListElementShape", lower_list_element_shape},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
