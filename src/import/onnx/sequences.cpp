#include "import/onnx/sequences.h"

#include <algorithm>

#include "ir/shape.h"

namespace orknn::importer::onnx {
namespace {
using namespace ir;

constexpr size_t kMaxLength = 4096;  // every tensor of a sequence becomes a node or two
// Every step of a list that grows in a loop is a list.
constexpr size_t kMaxHandled = 10'000'000;

// Input `i` as a place in a list of `length`; `end` allows the place behind the last. Without the input it is the last (or the
// end).
Result<size_t> position(Upgrade& u, size_t i, size_t length, bool end) {
  const auto places = static_cast<int64_t>(length) + (end ? 1 : 0);
  if (!u.has_input(i)) {
    if (places < 1) return invalid_model("the sequence is empty");
    return static_cast<size_t>(places - 1);
  }
  u.settle(u.input(i));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> given, u.need_ints(u.input(i), "to find the place in the sequence"));
  const auto count = static_cast<int64_t>(length);
  if (given.size() != 1 || given[0] < -count || given[0] >= places)
    return invalid_model("the place lies outside the sequence")
        .expected("one number from " + std::to_string(-count) + " to " + std::to_string(places - 1))
        .found(given.size() == 1 ? std::to_string(given[0]) : std::to_string(given.size()) + " numbers");
  return static_cast<size_t>(given[0] < 0 ? given[0] + count : given[0]);
}

Result<std::vector<TensorId>> split(Upgrade& u) {
  ORKNN_TRY_ASSIGN(const Dims dims, u.need_dims(u.input(0), "to split it into a sequence"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(u.take_int("axis").value_or(0), static_cast<int64_t>(dims.size())));
  const int64_t extent = dims[static_cast<size_t>(axis)];
  const bool keeps_axis = u.take_int("keepdims").value_or(1) != 0 || u.has_input(1);
  std::vector<int64_t> sizes;
  int64_t part = 1;
  if (u.has_input(1)) {
    u.settle(u.input(1));
    ORKNN_TRY_ASSIGN(sizes, u.need_ints(u.input(1), "to split into a sequence"));
    const Shape* shape = u.shape(1);
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
  std::vector<TensorId> parts = u.emit_all("Split", {u.input(0), u.add_ints("split", sizes)}, {{"axis", axis}}, sizes.size());
  if (!keeps_axis)
    for (TensorId& t : parts) t = u.emit("Squeeze", {t, u.add_ints("axes", {axis})});
  return parts;
}

Status concatenate(Upgrade& u, std::vector<TensorId> tensors) {
  if (tensors.empty()) return unsupported("an empty sequence cannot be joined");
  const auto axis = u.take_int("axis");
  if (!axis) return invalid_model("attribute 'axis' is missing");
  if (u.take_int("new_axis").value_or(0) != 0)
    for (TensorId& t : tensors) t = u.emit("Unsqueeze", {t, u.add_ints("axes", {*axis})});
  u.become("Concat", std::move(tensors), {{"axis", *axis}});
  return {};
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

Result<bool> Sequences::keep(Upgrade& u, Tensors tensors) {
  ORKNN_TRY(count(tensors.size()));
  if (u.node.output()) set(u.graph(), u.node.output(), std::move(tensors));
  return true;
}

Result<bool> Sequences::apply(Upgrade& u) {
  const std::string op = u.node.op;
  if (op == "SequenceEmpty") return keep(u, {});
  if (op == "SequenceConstruct") return keep(u, u.node.inputs);
  if (op == "SplitToSequence") {
    ORKNN_TRY_ASSIGN(Tensors parts, split(u));
    return keep(u, std::move(parts));
  }
  const bool reads_sequence =
      std::any_of(u.node.inputs.begin(), u.node.inputs.end(), [&](TensorId t) { return t && contains(u.graph(), t); });
  if (op == "OptionalHasElement") return false;
  if ((op == "Identity" || op == "Optional" || op == "OptionalGetElement") && reads_sequence) {
    ORKNN_TRY_ASSIGN(Tensors same, need(u.graph(), u.input(0)));
    return keep(u, std::move(same));
  }
  const bool is_known = op == "SequenceInsert" || op == "SequenceErase" || op == "SequenceAt" || op == "SequenceLength" ||
                        op == "ConcatFromSequence";
  if (!is_known) {
    if (reads_sequence) return unsupported("it reads a sequence of tensors").hint("cut the model before it with 'outputs'");
    return false;
  }
  ORKNN_TRY_ASSIGN(Tensors tensors, need(u.graph(), u.input(0)));
  if (op == "SequenceLength") {
    u.become("Identity", {u.add_int_scalar("length", static_cast<int64_t>(tensors.size()))});
    return false;
  }
  if (op == "ConcatFromSequence") {
    ORKNN_TRY(count(tensors.size()));
    ORKNN_TRY(concatenate(u, std::move(tensors)));
    return false;
  }
  if (op == "SequenceInsert") {
    if (!u.has_input(1)) return invalid_model("the tensor to insert is missing");
    if (tensors.size() >= kMaxLength)
      return unsupported("the sequence is too long").expected("at most " + std::to_string(kMaxLength) + " tensors");
    ORKNN_TRY_ASSIGN(const size_t at, position(u, 2, tensors.size(), true));
    tensors.insert(tensors.begin() + static_cast<std::ptrdiff_t>(at), u.input(1));
    return keep(u, std::move(tensors));
  }
  ORKNN_TRY_ASSIGN(const size_t at, position(u, 1, tensors.size(), false));
  if (op == "SequenceErase") {
    tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(at));
    return keep(u, std::move(tensors));
  }
  u.become("Identity", {tensors[at]});
  return false;
}

}  // namespace orknn::importer::onnx
