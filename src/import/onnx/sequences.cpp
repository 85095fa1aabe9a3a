#include "import/onnx/sequences.h"

#include <algorithm>

#include "ir/shape.h"

namespace orknn::importer::onnx {
namespace {
using namespace ir;

constexpr size_t kMaxLength = 4096;  // every tensor of a sequence becomes a node or two
// Every step of a list that grows in a loop is a list.
constexpr size_t kMaxHandled = 10'000'000;

// Input `i` as a place in a list of `length`; `end` allows the place after the last. Without the input it is the last (or the
// end).
Result<size_t> position(Layer& l, size_t i, size_t length, bool end) {
  const auto places = static_cast<int64_t>(length) + (end ? 1 : 0);
  if (!l.has_input(i)) {
    if (places < 1) return invalid_model("the sequence is empty");
    return static_cast<size_t>(places - 1);
  }
  l.settle(l.input(i));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> given, l.need_ints(l.input(i), "to find the place in the sequence"));
  const auto count = static_cast<int64_t>(length);
  if (given.size() != 1 || given[0] < -count || given[0] >= places)
    return invalid_model("the place is outside the sequence")
        .expected("one number from " + std::to_string(-count) + " to " + std::to_string(places - 1))
        .found(given.size() == 1 ? std::to_string(given[0]) : std::to_string(given.size()) + " numbers");
  return static_cast<size_t>(given[0] < 0 ? given[0] + count : given[0]);
}

Result<std::vector<TensorId>> split_up(Layer& l) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.input(0), "to split it into a sequence"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.take_int("axis").value_or(0), std::ssize(dims)));
  const int64_t extent = dims[static_cast<size_t>(axis)];
  const bool keeps_axis = l.take_flag("keepdims", true) || l.has_input(1);
  std::vector<int64_t> sizes;
  int64_t part = 1;
  if (l.has_input(1)) {
    l.settle(l.input(1));
    ORKNN_TRY_ASSIGN(sizes, l.need_ints(l.input(1), "to split into a sequence"));
    const Shape* shape = l.shape(1);
    if (shape && shape->empty() && sizes.size() == 1) {  // one number: parts of that size, the last may be smaller
      part = sizes[0];
      sizes.clear();
      if (part < 1) return invalid_model("illegal part size").found(std::to_string(part));
    }
  }
  if (extent / part > static_cast<int64_t>(kMaxLength))
    return unsupported("the sequence is too long").expected("at most " + std::to_string(kMaxLength) + " tensors");
  if (sizes.empty())
    for (int64_t at = 0; at < extent; at += part) sizes.push_back(std::min(part, extent - at));
  if (sizes.empty()) return std::vector<TensorId>();
  std::vector<TensorId> parts = l.emit_all("Split", {l.input(0), l.add_ints("split", sizes)}, {{"axis", axis}}, sizes.size());
  if (!keeps_axis)
    for (TensorId& t : parts) t = l.squeeze(t, {axis});
  return parts;
}

Result<TensorId> concatenate(Layer& l, std::vector<TensorId> tensors) {
  if (tensors.empty()) return unsupported("an empty sequence cannot be joined");
  const auto axis = l.take_int("axis");
  if (!axis) return invalid_model("attribute 'axis' is missing");
  if (l.take_flag("new_axis"))
    for (TensorId& t : tensors) t = l.unsqueeze(t, {*axis});
  return l.emit_kept("Concat", std::move(tensors), {{"axis", *axis}});
}
}  // namespace

const Sequences::Tensors* Sequences::find(const Graph& graph, TensorId id) const {
  const auto it = lists_.find({&graph, id.index});
  return it == lists_.end() ? nullptr : &it->second;
}

Result<Sequences::Tensors> Sequences::need(const Graph& graph, TensorId id) const {
  if (const Tensors* tensors = find(graph, id)) return *tensors;
  return unsupported("this sequence is not known while importing")
      .hint("sequences may not be inputs, nor go into or come out of the body of a Scan");
}

Status Sequences::count(size_t tensors) {
  handled_ += tensors;
  if (handled_ <= kMaxHandled) return {};
  return unsupported("the sequences of the model are too long")
      .expected("at most " + std::to_string(kMaxHandled) + " tensors in all");
}

Result<std::optional<Sequences::Tensors>> Sequences::keep(Layer& l, Tensors tensors) {
  ORKNN_TRY(count(tensors.size()));
  if (l.node.output()) set(l.graph(), l.node.output(), std::move(tensors));
  return std::optional(Tensors{});
}

Result<std::optional<Sequences::Tensors>> Sequences::apply(Layer& l) {
  const std::string& op = l.node.op;
  if (op == "SequenceEmpty") return keep(l, {});
  if (op == "SequenceConstruct") return keep(l, l.node.inputs);
  if (op == "SplitToSequence") {
    ORKNN_TRY_ASSIGN(Tensors parts, split_up(l));
    return keep(l, std::move(parts));
  }
  const bool reads_sequence = std::ranges::any_of(l.node.inputs, [&](TensorId t) { return t && contains(l.graph(), t); });
  const bool is_known = op == "SequenceInsert" || op == "SequenceErase" || op == "SequenceAt" || op == "SequenceLength" ||
                        op == "ConcatFromSequence";
  const bool passes_on = (op == "Identity" || op == "Optional" || op == "OptionalGetElement") && reads_sequence;
  if (!is_known && !passes_on) {
    if (reads_sequence && op != "OptionalHasElement")
      return unsupported("it reads a sequence of tensors").hint("cut the model before it with 'outputs'");
    return std::optional<Tensors>();
  }
  ORKNN_TRY_ASSIGN(Tensors tensors, need(l.graph(), l.input(0)));
  if (passes_on) return keep(l, std::move(tensors));
  if (op == "SequenceLength") return std::optional(Tensors{l.add_int_scalar("length", std::ssize(tensors))});
  if (op == "ConcatFromSequence") {
    ORKNN_TRY(count(tensors.size()));
    ORKNN_TRY_ASSIGN(const TensorId joined, concatenate(l, std::move(tensors)));
    return std::optional(Tensors{joined});
  }
  if (op == "SequenceInsert") {
    if (!l.has_input(1)) return invalid_model("the tensor to insert is missing");
    if (tensors.size() >= kMaxLength)
      return unsupported("the sequence is too long").expected("at most " + std::to_string(kMaxLength) + " tensors");
    ORKNN_TRY_ASSIGN(const size_t at, position(l, 2, tensors.size(), true));
    tensors.insert(tensors.begin() + static_cast<std::ptrdiff_t>(at), l.input(1));
    return keep(l, std::move(tensors));
  }
  ORKNN_TRY_ASSIGN(const size_t at, position(l, 1, tensors.size(), false));
  if (op == "SequenceAt") return std::optional(Tensors{tensors[at]});
  tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(at));
  return keep(l, std::move(tensors));
}

}  // namespace orknn::importer::onnx
