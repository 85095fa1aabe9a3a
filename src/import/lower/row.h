// How a framework binds its operators to ours: one row per foreign operator.
//
//   {"ABS", same<"Abs">},                     our operator under another name, on all inputs
//   {"LOG1P", log1p},                         a composed function of import/lower/functions.h
//   {"SOFTMAX", softmax},                     a function of the framework's own: Result<TensorId> softmax(Layer&, TensorId x)
//   {"SPLIT", split, {.inputs = {2, 2}}},     several results, and the number of inputs checked before the call
//
// A lowering takes the layer and as many of its inputs as it names (`TensorId` parameters, fetched in order; a missing one is
// an error), or all of them as a span. It returns one tensor, several, the framework's own kind of output, or a Status or nothing
// when it has no outputs; each of them bare or as a Result.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/lower/emitter.h"

namespace orknn::importer {

// An operator's name as a template argument.
template <size_t N>
struct OpName {
  constexpr OpName(const char (&text)[N]) { std::copy_n(text, N, chars); }
  std::string string() const { return chars; }
  char chars[N];
};

// Inputs of a layer as a lowering that takes all of them sees them.
using Operands = std::span<const ir::TensorId>;

template <class T>
struct ResultTraits {
  using Value = T;
};
template <class T>
struct ResultTraits<Result<T>> {
  using Value = T;
};

// A lowering function of any of the accepted signatures. `Layer` is the framework's view of one layer: an Emitter with
//   using Outputs                                    what a lowered layer hands over, a vector of tensors by default
//   size_t operand_count() const
//   Result<ir::TensorId> operand(size_t i)           the i-th input as lowerings see it by default; an error when it is missing
// and, where Outputs is no vector of tensors, `Result<Outputs> made(...)` for what its lowerings return.
template <class Layer>
class Lowering {
 public:
  using Outputs = typename Layer::Outputs;

  template <class R, class L, class... Inputs>
  requires std::derived_from<Layer, L> &&(std::same_as<Inputs, ir::TensorId>&&...)Lowering(R (*function)(L&, Inputs...))
      : function_(reinterpret_cast<Function>(function)), call_(&call_with_inputs<R, L, Inputs...>) {}
  template <class R, class L>
  requires std::derived_from<Layer, L> Lowering(R (*function)(L&, Operands))
      : function_(reinterpret_cast<Function>(function)), call_(&call_with_all<R, L>) {}

  Result<Outputs> operator()(Layer& layer) const { return call_(layer, function_); }

 private:
  using Function = void (*)();

  // What a call returns, as outputs.
  template <class R, class Call>
  static Result<Outputs> outputs_of(Layer& layer, const Call& call) {
    if constexpr (std::same_as<R, void>) {
      call();
      return Outputs{};
    } else {
      return to_outputs<R>(layer, call());
    }
  }
  template <class R>
  static Result<Outputs> to_outputs(Layer& layer, R result) {
    if constexpr (std::same_as<R, Status>) {
      if (!result) return result;
      return Outputs{};
    } else if constexpr (!std::same_as<typename ResultTraits<R>::Value, R>) {
      if (!result) return result.status();
      return to_outputs(layer, *std::move(result));
    } else if constexpr (std::convertible_to<R, Outputs>) {
      return Outputs(std::move(result));
    } else if constexpr (requires { layer.made(std::move(result)); }) {
      return layer.made(std::move(result));
    } else if constexpr (std::convertible_to<R, typename Outputs::value_type>) {
      Outputs outputs;
      outputs.push_back(std::move(result));
      return outputs;
    } else {
      return Outputs(result.begin(), result.end());
    }
  }

  template <class R, class L, class... Inputs>
  static Result<Outputs> call_with_inputs(Layer& layer, Function function) {
    ir::TensorId inputs[sizeof...(Inputs) + 1];
    for (size_t i = 0; i < sizeof...(Inputs); ++i) {
      ORKNN_TRY_ASSIGN(inputs[i], layer.operand(i));
    }
    return [&]<size_t... I>(std::index_sequence<I...>)->Result<Outputs> {
      return outputs_of<R>(layer, [&] { return reinterpret_cast<R (*)(L&, Inputs...)>(function)(layer, inputs[I]...); });
    }
    (std::index_sequence_for<Inputs...>{});
  }

  template <class R, class L>
  static Result<Outputs> call_with_all(Layer& layer, Function function) {
    std::vector<ir::TensorId> inputs;
    for (size_t i = 0; i < layer.operand_count(); ++i) {
      ORKNN_TRY_ASSIGN(const ir::TensorId x, layer.operand(i));
      inputs.push_back(x);
    }
    return outputs_of<R>(layer, [&] { return reinterpret_cast<R (*)(L&, Operands)>(function)(layer, inputs); });
  }

  Function function_;
  Result<Outputs> (*call_)(Layer&, Function);
};

// What a row demands of a layer before its lowering is called.
struct RowLimits {
  struct Counts {
    size_t least = 0, most = SIZE_MAX;
  };
  Counts inputs = {};
  int64_t since = 0, below = INT64_MAX;  // versions of the framework's operator set the row is for
};

template <class Layer>
struct OperatorRow {
  std::string_view op;  // or several that are lowered alike: "abs|_abs"
  Lowering<Layer> lower;
  RowLimits limits = {};

  template <class F>
  void for_each_name(F call) const {
    for (std::string_view names = op; !names.empty();) {
      const size_t end = std::min(names.find('|'), names.size());
      call(names.substr(0, end));
      names.remove_prefix(std::min(end + 1, names.size()));
    }
  }
  bool is_for(int64_t version) const { return version >= limits.since && version < limits.below; }
  Result<typename Layer::Outputs> operator()(Layer& layer) const {
    const size_t count = layer.operand_count();
    if (count < limits.inputs.least || count > limits.inputs.most)
      return wrong_input_count(count, limits.inputs.least, limits.inputs.most);
    return lower(layer);
  }
};

// A function of one tensor within a layer, an activation for the most part, as its row sees it.
class InnerLayer : public Emitter {
 public:
  using Outputs = std::vector<ir::TensorId>;
  InnerLayer(const Emitter& layer, ir::TensorId x) : Emitter(layer), x_(x) {}
  size_t operand_count() const { return 1; }
  Result<ir::TensorId> operand(size_t) const { return x_; }

 private:
  ir::TensorId x_;
};

// What a layer does in one of several forms, which an attribute names. Their rows have no versions.
template <class Layer>
Result<typename Layer::Outputs> lower_form(Layer& layer, std::string_view what, std::string_view name,
                                           std::span<const OperatorRow<Layer>> forms) {
  std::vector<std::string_view> known;
  for (const OperatorRow<Layer>& form : forms) {
    bool is_named = false;
    form.for_each_name([&](std::string_view op) {
      known.push_back(op);
      is_named |= op == name;
    });
    if (is_named) return form(layer);
  }
  std::string list(known[0]);
  for (size_t i = 1; i < known.size(); ++i) list.append(i + 1 == known.size() ? " or " : ", ").append(known[i]);
  return unsupported("unknown " + std::string(what)).expected(std::move(list)).found(std::string(name));
}

// The rows of a framework by operator.
template <class Layer>
class RowTable {
 public:
  RowTable(std::initializer_list<std::span<const OperatorRow<Layer>>> tables) {
    for (const auto rows : tables)
      for (const OperatorRow<Layer>& row : rows) row.for_each_name([&](std::string_view op) { add(op, row); });
  }
  // nullptr for an operator without a row for that version.
  const OperatorRow<Layer>* find(std::string_view op, int64_t version = 0) const {
    const auto it = rows_.find(op);
    if (it == rows_.end()) return nullptr;
    for (const OperatorRow<Layer>* row : it->second)
      if (row->is_for(version)) return row;
    return nullptr;
  }

 private:
  void add(std::string_view op, const OperatorRow<Layer>& row) {
    std::vector<const OperatorRow<Layer>*>& forms = rows_[op];
    for (const OperatorRow<Layer>* other : forms)
      ORKNN_ASSERT(other->limits.below <= row.limits.since || row.limits.below <= other->limits.since,
                   "one row per operator and version");
    forms.push_back(&row);
  }

  std::unordered_map<std::string_view, std::vector<const OperatorRow<Layer>*>> rows_;
};

// Our operator under another name: all inputs, as many as it takes, no attributes.
template <OpName Op>
Result<ir::TensorId> same(Emitter& e, Operands inputs) {
  return e.emit_same(Op.chars, inputs);
}
// The same, with the operands swapped.
template <OpName Op>
ir::TensorId swapped(Emitter& e, ir::TensorId a, ir::TensorId b) {
  return e.emit(Op.chars, {b, a});
}
// The only input handed on.
inline ir::TensorId pass_on(Emitter&, ir::TensorId x) { return x; }

}  // namespace orknn::importer
