// One call of an operator, as a lowering sees it: an Emitter with the arguments by the names of the signature, and results that
// are new tensors, views or plain values.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "import/lower/row.h"
#include "import/pytorch/schema.h"
#include "import/pytorch/session.h"

namespace orknn::importer::pytorch {

// A tensor of complex numbers: the last axis of the value in the graph holds real and imaginary parts.
struct ComplexId {
  ir::TensorId id;
};

// What a lowering returns that makes a tensor in one case and hands on a value in another.
class Output {
 public:
  Output(ir::TensorId tensor) : content_(tensor) {}
  Output(ComplexId tensor) : content_(tensor) {}
  Output(std::vector<ir::TensorId> tuple) : content_(std::move(tuple)) {}
  Output(Value value) : content_(value) {}
  Output(Result<Value> value) : content_(value ? Result<Content>(*value) : Result<Content>(value.status())) {}
  Output(Status problem) : content_(std::move(problem)) {}

 private:
  friend class Call;
  using Content = std::variant<ir::TensorId, ComplexId, std::vector<ir::TensorId>, Value>;
  Result<Content> content_;
};

class Call : public Emitter {
 public:
  using Outputs = Value;

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

  // --- operands: the tensor parameters of the signature in order. An absent one is no tensor, a number a constant of its type.
  size_t operand_count() const { return operands_.size(); }
  Result<ir::TensorId> operand(size_t i);
  // All that are given, in the type in which they are combined; `to_float`: integers become float32.
  Result<std::vector<ir::TensorId>> promoted(bool to_float = false);

  // --- arguments, by name; the signature guarantees their types
  const Value& value(std::string_view name) const;
  bool has(std::string_view name) const { return !value(name).is_none(); }
  TensorValue& handle(std::string_view name = "self") const { return value(name).tensor(); }
  ir::TensorId tensor(std::string_view name) const { return handle(name).id; }
  // None when absent.
  ir::TensorId optional_tensor(std::string_view name) const { return has(name) ? tensor(name) : ir::TensorId{}; }
  const ir::Dims& dims(std::string_view name = "self") const { return handle(name).dims; }
  int64_t rank(std::string_view name = "self") const { return static_cast<int64_t>(dims(name).size()); }
  DType dtype(std::string_view name = "self") const { return dtype_of(tensor(name)); }
  int64_t integer(std::string_view name) const { return value(name).integer(); }
  int64_t integer_or(std::string_view name, int64_t fallback) const { return has(name) ? integer(name) : fallback; }
  double number(std::string_view name) const { return value(name).number(); }
  double number_or(std::string_view name, double fallback) const { return has(name) ? number(name) : fallback; }
  bool flag(std::string_view name) const { return value(name).boolean(); }  // false when absent
  std::string_view text(std::string_view name) const { return value(name).text(); }
  std::vector<int64_t> ints(std::string_view name) const;  // one number is a list of one
  std::vector<double> numbers(std::string_view name) const;
  std::vector<Value>& items(std::string_view name = "self") const { return value(name).sequence().items; }
  // The tensors of a list, which holds nothing else.
  Result<std::vector<ir::TensorId>> tensors(std::string_view name) const;
  // The first tensor among the arguments, in a list or not; None when there is none.
  Value first_tensor() const;
  // The list as `count` entries, a single one repeated.
  Result<std::vector<int64_t>> ints(std::string_view name, size_t count) const;
  // An axis of a tensor of this rank; rank 0 counts as 1.
  Result<int64_t> axis_of(int64_t axis, int64_t rank) const { return ir::normalize_axis(axis, std::max<int64_t>(rank, 1)); }
  Result<int64_t> axis(std::string_view name = "dim", std::string_view of = "self") const {
    return axis_of(integer(name), rank(of));
  }
  // The same where a tensor without axes is an error: it "cannot be sliced".
  Result<int64_t> real_axis(std::string_view problem, std::string_view name = "dim") const;
  // Sorted distinct axes; all of them when the list is absent or empty.
  Result<std::vector<int64_t>> axes(std::string_view name = "dim", std::string_view of = "self") const;
  // Distinct axes in the order given.
  Result<std::vector<int64_t>> ordered_axes(std::string_view name, std::string_view of = "self") const;
  // The element type an argument asks for by number, or the fallback when absent.
  Result<DType> dtype_argument(DType fallback, std::string_view name = "dtype") const;

  // --- types
  // The type in which operands are combined: tensors with axes outweigh 0-d tensors, those outweigh numbers, unless of a higher
  // kind.
  Result<DType> common_type(std::span<const Value> operands) const;
  Result<DType> common_type(std::initializer_list<std::string_view> names) const;
  // A tensor or number as a tensor of this type.
  ir::TensorId as(const Value& value, DType dtype);
  ir::TensorId as(std::string_view name, DType dtype) { return as(value(name), dtype); }
  ir::TensorId as_float(ir::TensorId x) { return is_float(dtype_of(x)) ? x : cast(x, DType::Float32); }
  ir::TensorId scalar(double value, DType dtype) { return add_scalar("scalar", value, dtype); }
  ir::TensorId int_scalar(int64_t value, DType dtype = DType::Int64);
  // The tensor as integers to index with; a float input of the model becomes one of integers.
  Result<ir::TensorId> as_index(TensorValue& tensor);
  Result<ir::TensorId> as_index(std::string_view name) { return as_index(handle(name)); }
  // The tensor as truth values; the same holds for a float input of the model.
  Result<ir::TensorId> as_bool(std::string_view name);

  // --- results, what lowerings return as values: for the table, and for the items of lists that a lowering makes
  Result<Value> made(const Output& output);
  Result<Value> made(ir::TensorId id);
  Result<Value> made(const std::vector<ir::TensorId>& ids);  // a tuple; None for no tensor
  Result<Value> made(std::vector<Value> items) { return Value::tuple(heap().list(std::move(items))); }
  Result<Value> made(const ir::Dims& numbers);  // a list
  Result<Value> made(ComplexId x);
  Result<Value> made(std::string text) { return heap().string(std::move(text)); }
  Result<Value> list(std::vector<Value> items) { return Value::list(heap().list(std::move(items))); }
  // A tensor that shares its elements with `parent`.
  Result<Value> view(TensorValue& parent, ir::Dims strides, TensorValue::Apply apply, TensorValue::Write write);
  // Overwrites a tensor; broadcasts and converts the value to its shape and type.
  Status write(TensorValue& tensor, ir::TensorId value);
  // A copy: the same value under no alias.
  Result<Value> copy_of(std::string_view name = "self");
  // Says that something was stored in training mode and is computed as in inference.
  void warn_of_training(std::string_view what);

 private:
  Status prepare(Value& value, Type type);

  Session& session_;
  const Schema& schema_;
  std::vector<Value> arguments_;
  std::vector<size_t> operands_;  // which arguments are operands
};

}  // namespace orknn::importer::pytorch
