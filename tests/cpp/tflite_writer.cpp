#include "tflite_writer.h"

#include <algorithm>

namespace orknn::tests {
namespace {
void align(std::string& out, size_t to) { out.resize((out.size() + to - 1) / to * to); }
template <class T>
void put(std::string& out, size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}
}  // namespace

FlatTable& FlatTable::vector(unsigned id, std::string bytes, uint32_t count) {
  Field& f = fields_[id];
  f.is_vector = true;
  f.bytes = std::move(bytes);
  f.count = count;
  return *this;
}

FlatTable& FlatTable::table(unsigned id, const FlatTable& value) {
  fields_[id].children = {value};
  return *this;
}

FlatTable& FlatTable::tables(unsigned id, const std::vector<FlatTable>& values) {
  Field& f = fields_[id];
  f.is_vector = true;
  f.count = static_cast<uint32_t>(values.size());
  f.children = values;
  return *this;
}

// The field list, the table with room for its references, then what it refers to: references only point forwards.
uint32_t FlatTable::write(std::string& out) const {
  const unsigned slots = fields_.empty() ? 0 : fields_.rbegin()->first + 1;
  align(out, 8);
  const size_t vtable = out.size();
  out.resize(vtable + 4 + 2 * slots);
  align(out, 8);
  const size_t table = out.size();
  out.resize(table + 4);
  std::map<unsigned, size_t> places;
  for (const auto& [id, f] : fields_) {
    const bool is_number = !f.is_vector && f.children.empty();
    const size_t size = is_number ? f.bytes.size() : 4;
    align(out, size);
    places[id] = out.size();
    out.resize(out.size() + size);
    if (is_number) std::memcpy(out.data() + places[id], f.bytes.data(), size);
    put(out, vtable + 4 + 2 * id, static_cast<uint16_t>(places[id] - table));
  }
  put(out, vtable, static_cast<uint16_t>(4 + 2 * slots));
  put(out, vtable + 2, static_cast<uint16_t>(out.size() - table));
  put(out, table, static_cast<int32_t>(table - vtable));
  for (const auto& [id, f] : fields_) {
    if (!f.is_vector && f.children.empty()) continue;
    size_t target;
    if (!f.is_vector) {
      target = f.children[0].write(out);
    } else {
      align(out, 16);
      out.resize(out.size() + 12);  // elements begin at a multiple of 16
      target = out.size();
      out.resize(target + 4);
      put(out, target, f.count);
      if (f.children.empty()) {
        out += f.bytes;
        out.push_back('\0');
      } else {
        const size_t first = out.size();
        out.resize(first + 4 * f.children.size());
        for (size_t i = 0; i < f.children.size(); ++i) {
          const uint32_t child = f.children[i].write(out);
          put(out, first + 4 * i, static_cast<uint32_t>(child - (first + 4 * i)));
        }
      }
    }
    put(out, places[id], static_cast<uint32_t>(target - places[id]));
  }
  return static_cast<uint32_t>(table);
}

std::string FlatTable::file(const std::string& identifier) const {
  std::string out(4, '\0');
  out += identifier;
  const uint32_t root = write(out);
  put(out, 0, root);
  return out;
}

namespace tflite {
std::string model(const std::vector<Subgraph>& subgraphs, const std::vector<Signature>& outputs, uint32_t version) {
  std::vector<FlatTable> buffers(1), codes, graphs;
  std::vector<std::pair<int32_t, std::string>> known;
  for (const Subgraph& g : subgraphs) {
    std::vector<FlatTable> tensors, operators;
    for (const Tensor& t : g.tensors) {
      FlatTable table;
      table.numbers<int32_t>(0, t.shape).number<int8_t>(1, t.type).text(3, t.name);
      if (!t.data.empty()) {
        table.number<uint32_t>(2, static_cast<uint32_t>(buffers.size()));
        buffers.push_back(FlatTable().text(0, t.data));
      }
      if (!t.scale.empty())
        table.table(4, FlatTable().numbers<float>(2, t.scale).numbers<int64_t>(3, t.zero_point).number<int32_t>(6, t.axis));
      if (t.variable) table.number<uint8_t>(5, 1);
      if (!t.sparsity.empty()) table.table(6, t.sparsity);
      tensors.push_back(table);
    }
    for (const Operator& o : g.operators) {
      const std::pair<int32_t, std::string> code(o.code, o.custom);
      auto at = std::find(known.begin(), known.end(), code);
      if (at == known.end()) {
        FlatTable table;
        table.number<int8_t>(0, static_cast<int8_t>(std::min(o.code, 127))).number<int32_t>(3, o.code);
        if (!o.custom.empty()) table.text(1, o.custom);
        codes.push_back(table);
        at = known.insert(known.end(), code);
      }
      FlatTable table;
      table.number<uint32_t>(0, static_cast<uint32_t>(at - known.begin()))
          .numbers<int32_t>(1, o.inputs)
          .numbers<int32_t>(2, o.outputs);
      if (!o.options.empty()) table.number<uint8_t>(3, 1).table(4, o.options);
      if (!o.custom_options.empty()) table.text(5, o.custom_options);
      operators.push_back(table);
    }
    graphs.push_back(FlatTable()
                         .tables(0, tensors)
                         .numbers<int32_t>(1, g.inputs)
                         .numbers<int32_t>(2, g.outputs)
                         .tables(3, operators)
                         .text(4, "main"));
  }
  FlatTable root;
  root.number<uint32_t>(0, version).tables(1, codes).tables(2, graphs).text(3, "test").tables(4, buffers);
  if (!outputs.empty()) {
    std::vector<FlatTable> map;
    for (const Signature& s : outputs) map.push_back(FlatTable().text(0, s.name).number<uint32_t>(1, s.tensor));
    root.tables(7, {FlatTable().tables(1, map).text(2, "serving_default").number<uint32_t>(4, 0)});
  }
  return root.file("TFL3");
}
}  // namespace tflite

}  // namespace orknn::tests
