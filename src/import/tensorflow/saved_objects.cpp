#include "import/tensorflow/saved_objects.h"

#include <unordered_map>
#include <vector>

namespace orknn::importer::tensorflow {
namespace {
using wire::Slot;

// An object of either file, whose numbers differ.
struct Object {
  std::vector<std::pair<std::string_view, size_t>> members;  // name and number
  std::string_view value;                                    // the name of its value in the files of variables
};

Status read_member(Bytes message, Object& object) {
  uint64_t number = 0;
  std::string_view name;
  ORKNN_TRY(read_fields(message, Slot{1, number}, Slot{2, name}));
  object.members.emplace_back(name, number);
  return {};
}

// A value of an object in the files of variables; that of a variable is called so.
Status read_value(Bytes message, Object& object) {
  std::string_view name, key;
  ORKNN_TRY(read_fields(message, Slot{1, name}, Slot{3, key}));
  if (name == "VARIABLE_VALUE") object.value = key;
  return {};
}

enum class ObjectsOf { SavedModel, Variables };
Result<std::vector<Object>> read_objects(Bytes message, ObjectsOf file) {
  std::vector<Object> objects;
  ORKNN_TRY_ASSIGN(const std::vector<Bytes> messages, wire::messages_of(message, 1));
  for (const Bytes m : messages) {
    Object& object = objects.emplace_back();
    ORKNN_TRY(
        read_fields(m, Slot{1, [&](Bytes member) { return read_member(member, object); }},
                    Slot{2, [&](Bytes value) { return file == ObjectsOf::Variables ? read_value(value, object) : Status(); }}));
  }
  return objects;
}

// The names of the values of the saved objects. Objects are the same when the same names lead to them from the first one.
std::vector<std::string_view> values_of(const std::vector<Object>& saved, const std::vector<Object>& stored) {
  std::vector<std::string_view> values(saved.size());
  if (saved.empty() || stored.empty()) return values;
  std::vector<bool> is_found(saved.size());
  std::vector<std::pair<size_t, size_t>> waiting{{0, 0}};
  is_found[0] = true;
  while (!waiting.empty()) {
    const auto [ours, theirs] = waiting.back();
    waiting.pop_back();
    values[ours] = stored[theirs].value;
    std::unordered_map<std::string_view, size_t> members(stored[theirs].members.begin(), stored[theirs].members.end());
    for (const auto& [name, number] : saved[ours].members) {
      const auto same = members.find(name);
      if (same == members.end() || number >= saved.size() || same->second >= stored.size() || is_found[number]) continue;
      is_found[number] = true;
      waiting.emplace_back(number, same->second);
    }
  }
  return values;
}

// The objects that a function was made with: it takes them after its arguments.
Result<std::vector<size_t>> captured_objects(Bytes function) {
  std::vector<size_t> objects;
  ORKNN_TRY(wire::for_each_field(function, [&](const wire::Field& field) -> Status {
    if (field.number != 2) return {};
    return wire::for_each_varint(field, [&](uint64_t number) { objects.push_back(number); });
  }));
  return objects;
}
}  // namespace

Result<ValueNames> names_by_objects(const GraphDef& graph, Bytes saved_model, Bytes stored_objects) {
  constexpr uint32_t kMetaGraphs = 2, kObjectGraph = 7, kFunctions = 2;
  ValueNames names;
  ORKNN_TRY_ASSIGN(const std::vector<Bytes> graphs, wire::messages_of(saved_model, kMetaGraphs));
  if (graphs.empty()) return names;
  ORKNN_TRY_ASSIGN(const std::vector<Bytes> object_graphs, wire::messages_of(graphs.front(), kObjectGraph));
  if (object_graphs.empty()) return names;
  ORKNN_TRY_ASSIGN(const std::vector<Object> saved, read_objects(object_graphs.front(), ObjectsOf::SavedModel));
  ORKNN_TRY_ASSIGN(const std::vector<Object> stored, read_objects(stored_objects, ObjectsOf::Variables));
  const std::vector<std::string_view> values = values_of(saved, stored);
  std::unordered_map<std::string_view, std::vector<size_t>> captured;
  ORKNN_TRY_ASSIGN(const std::vector<Bytes> functions, wire::messages_of(object_graphs.front(), kFunctions));
  for (const Bytes message : functions) {
    ORKNN_TRY_ASSIGN(const wire::MapEntry function, wire::map_entry(message));
    ORKNN_TRY_ASSIGN(captured[function.key], captured_objects(function.value));
  }
  for (const NodeDef& call : graph.nodes) {
    ORKNN_TRY_ASSIGN(const std::string_view function, called_function(call));
    const auto found = captured.find(function);
    if (found == captured.end()) continue;
    const std::vector<size_t>& objects = found->second;
    std::vector<std::string_view> inputs;
    for (const std::string_view input : call.inputs)
      if (!input.starts_with("^")) inputs.push_back(input);
    if (objects.size() > inputs.size()) continue;
    for (size_t i = 0; i < objects.size(); ++i)
      if (objects[i] < values.size() && !values[objects[i]].empty())
        names.emplace(node_of(inputs[inputs.size() - objects.size() + i]), values[objects[i]]);
  }
  return names;
}

}  // namespace orknn::importer::tensorflow
