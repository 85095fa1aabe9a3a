// One call of an operator, as a lowering function sees it: the arguments by the names of the signature, facts about them, nodes
// of ours to build, and results that are new tensors, views or plain values.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "import/lower/emitter.h"
#include "import/pytorch/schema.h"
#include "import/pytorch/session.h"

namespace orknn::importer::pytorch {

class Call : public Emitter {
 public:
  Call(Session& session, std::string layer, const Schema& schema, std::vector<Value> arguments)
      : Emitter(session.graph, session.ops, layer, {layer}),
        session_(session),
        schema_(schema),
        arguments_(std::move(arguments)) {}

  Session& session() { return session_; }
  Heap& heap() { return session_.heap; }
  const std::string& op() const { return schema_.name; }
  // Brings every tensor among the arguments up to date; numbers given for tensors become constants.
  Status prepare();

  // --- arguments, by name; the signature guarantees their types
  const Value& value(std::string_view name) const;
  bool has(std::string_view name) const { return !value(name).is_none(); }
  TensorValue& handle(std::string_view name) const { return value(name).tensor(); }
  ir::TensorId tensor(std::string_view name) const { return handle(name).id; }
  // None when absent.
  ir::TensorId optional_tensor(std::string_view name) const { return has(name) ? tensor(name) : ir::TensorId{}; }
  const ir::Dims& dims(std::string_view name) const { return handle(name).dims; }
  int64_t rank(std::string_view name) const { return static_cast<int64_t>(dims(name).size()); }
  DType dtype(std::string_view name) const { return dtype_of(tensor(name)); }
  int64_t integer(std::string_view name) const { return value(name).integer(); }
  int64_t integer_or(std::string_view name, int64_t fallback) const { return has(name) ? integer(name) : fallback; }
  double number(std::string_view name) const { return value(name).number(); }
  bool flag(std::string_view name) const { return value(name).boolean(); }
  std::string_view text(std::string_view name) const { return value(name).text(); }
  std::vector<int64_t> ints(std::string_view name) const;  // one number is a list of one
  std::vector<double> numbers(std::string_view name) const;
  const std::vector<Value>& items(std::string_view name) const { return value(name).sequence().items; }
  // The first tensor among the arguments, in a list or not; None when there is none.
  Value first_tensor() const;
  // The list as `count` entries, a single one repeated.
  Result<std::vector<int64_t>> ints(std::string_view name, size_t count) const;
  // An axis of a tensor of this rank; rank 0 counts as 1.
  Result<size_t> axis(std::string_view name, int64_t rank) const;
  Result<size_t> axis_of(int64_t axis, int64_t rank) const;
  // Sorted distinct axes; all of them when the list is absent or empty.
  Result<std::vector<int64_t>> axes(std::string_view name, int64_t rank) const;
  // The element type an argument asks for by number, or the fallback when absent.
  Result<DType> dtype_argument(std::string_view name, DType fallback) const;
  // Contents of a constant.
  Result<std::vector<int64_t>> constant_ints(std::string_view name, std::string_view reason) const {
    return need_ints(tensor(name), reason);
  }

  // --- types
  // The type in which operands are combined: tensors with axes outweigh 0-d tensors, those outweigh numbers, unless of a higher
  // kind.
  Result<DType> common_type(std::initializer_list<const Value*> operands) const;
  Result<DType> common_type(std::span<const Value> operands) const;
  // A tensor or number as a tensor of this type.
  ir::TensorId as(const Value& value, DType dtype);
  ir::TensorId as_float(std::string_view name);  // integers become float32
  ir::TensorId scalar(double value, DType dtype) { return add_scalar("scalar", value, dtype); }
  ir::TensorId int_scalar(int64_t value, DType dtype);
  // The tensor as integers to index with; a float input of the model turns out to be one of integers.
  Result<ir::TensorId> as_index(TensorValue& tensor);
  Result<ir::TensorId> as_bool(TensorValue& tensor);
  ir::TensorId as_bool(ir::TensorId x);

  // --- results
  Result<Value> made(ir::TensorId id);
  Result<Value> made_list(std::span<const ir::TensorId> ids);
  Result<Value> tuple(std::vector<Value> items) { return Value::tuple(heap().list(std::move(items))); }
  Result<Value> list(std::vector<Value> items) { return Value::list(heap().list(std::move(items))); }
  Result<Value> string(std::string text) { return heap().string(std::move(text)); }
  Result<Value> int_list(std::span<const int64_t> values);
  // A tensor that shares its elements with `parent`.
  Result<Value> view(TensorValue& parent, ir::Dims strides, TensorValue::Apply apply, TensorValue::Write write);
  // Overwrites a tensor; broadcasts and converts the value to its shape and type.
  Status write(TensorValue& tensor, ir::TensorId value);
  // A copy: the same value under no alias.
  Result<Value> copy_of(TensorValue& tensor);
  // A complex tensor: the last axis of the value holds real and imaginary parts.
  Result<Value> made_complex(ir::TensorId id);
  // Says that something was stored in training mode and is computed as in inference.
  void warn_of_training(std::string_view what);
  Status fail(std::string message) const { return unsupported(std::move(message)); }

  // --- small compositions
  ir::TensorId add(ir::TensorId a, ir::TensorId b) { return emit("Add", {a, b}); }
  ir::TensorId sub(ir::TensorId a, ir::TensorId b) { return emit("Sub", {a, b}); }
  ir::TensorId mul(ir::TensorId a, ir::TensorId b) { return emit("Mul", {a, b}); }
  ir::TensorId div(ir::TensorId a, ir::TensorId b) { return emit("Div", {a, b}); }
  ir::TensorId where(ir::TensorId condition, ir::TensorId a, ir::TensorId b) { return emit("Where", {condition, a, b}); }
  ir::TensorId matmul(ir::TensorId a, ir::TensorId b) { return emit("MatMul", {a, b}); }
  ir::TensorId softmax(ir::TensorId x, int64_t axis) { return emit("Softmax", {x}, {{"axis", axis}}); }
  ir::TensorId concat(std::vector<ir::TensorId> parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : emit("Concat", std::move(parts), {{"axis", axis}});
  }
  ir::TensorId slice(ir::TensorId x, int64_t axis, int64_t start, int64_t end, int64_t step = 1);
  ir::TensorId unsqueeze(ir::TensorId x, std::vector<int64_t> axes) { return emit("Unsqueeze", {x, add_ints("axes", axes)}); }
  ir::TensorId squeeze(ir::TensorId x, std::vector<int64_t> axes) { return emit("Squeeze", {x, add_ints("axes", axes)}); }
  ir::TensorId expand(ir::TensorId x, std::span<const int64_t> dims);
  ir::TensorId gather(ir::TensorId x, ir::TensorId index, int64_t axis) { return emit("Gather", {x, index}, {{"axis", axis}}); }
  ir::TensorId reduce(std::string_view op, ir::TensorId x, std::vector<int64_t> axes, bool keep);
  ir::TensorId clip(ir::TensorId x, std::optional<double> least, std::optional<double> most);
  ir::TensorId full(std::span<const int64_t> dims, double value, DType dtype);
  // Swaps two axes, counted from the end when negative.
  ir::TensorId swap_axes(ir::TensorId x, int64_t a, int64_t b);

 private:
  Status prepare(Value& value, Type type);

  Session& session_;
  const Schema& schema_;
  std::vector<Value> arguments_;
};

// An operator's name as a template argument: `{"relu(Tensor self)", unary<"Relu">}`.
template <size_t N>
struct OpName {
  constexpr OpName(const char (&text)[N]) { std::copy_n(text, N, chars); }
  std::string string() const { return chars; }
  char chars[N];
};

}  // namespace orknn::importer::pytorch
