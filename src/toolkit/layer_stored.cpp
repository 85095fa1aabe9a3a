// Streams that a folder holds: executed by the chip model, or as text.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/half.h"
#include "silicon/chip_model.h"
#include "toolkit/layer_description.h"
#include "toolkit/layer_folder.h"

namespace orknn::toolkit {
namespace {
using nlohmann::ordered_json;
using namespace silicon;
namespace fs = std::filesystem;

struct Buffer {
  uint32_t address = 0;
  std::vector<std::byte> bytes;
};

Result<std::vector<std::byte>> read_bytes(const fs::path& path) {
  ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(path.string()));
  const auto bytes = file->bytes();
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

uint64_t parse_address(const ordered_json& j) {
  return j.is_string() ? std::stoull(j.get<std::string>(), nullptr, 0) : j.get<uint64_t>();
}

// Exceptions of the JSON library, and of numbers that are none, as a Status.
template <class Read>
auto guarded(Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const std::exception& e) {
    return bad_layer(e.what());
  }
}

// A folder's buffers as its layer.json places them, and its streams in order.
class StoredLayer {
 public:
  Status read(const std::string& folder) {
    folder_ = folder;
    ORKNN_TRY_ASSIGN(json_, read_json_object((fs::path(folder) / "layer.json").string()));
    return guarded([&] { return json_.contains("jobs") ? read_chain() : read_single(); });
  }
  const std::vector<Stream>& streams() const { return streams_; }

  Result<StoredRun> run() {
    ORKNN_TRY_ASSIGN(const FolderLayer layer, guarded([&] { return described(); }));
    DeviceMemory memory;
    for (auto& [name, b] : buffers_) ORKNN_TRY(memory.map(name, b.address, b.bytes));
    for (size_t i = 0; i < layer.tensors.size(); ++i)
      if (const FolderTensor& t = layer.tensors[i]; !layer.is_computed(i) && t.file.ends_with(".npy"))
        ORKNN_TRY(load_tensor(folder_, t, buffer_of(t).bytes));
    ORKNN_TRY(run_streams(streams_, memory, ThreadPool::shared()));
    StoredRun result{.tasks = streams_.size()};
    for (size_t i = 0; i < layer.tensors.size(); ++i)
      if (layer.is_computed(i) && !layer.tensors[i].file.empty()) ORKNN_TRY(compare(layer.tensors[i], layer.tolerance, result));
    return result;
  }

 private:
  Status read_chain() {
    for (const ordered_json& m : json_.at("memory")) {
      const std::string what = m.at("what").get<std::string>();
      Buffer b{static_cast<uint32_t>(parse_address(m.at("address"))), {}};
      const auto size = m.at("size").get<uint64_t>();
      if (size > uint64_t{1} << 31) return bad_layer("'" + what + "' is too large");
      if (m.contains("file")) {
        ORKNN_TRY_ASSIGN(b.bytes, read_bytes(fs::path(folder_) / file_name(m.at("file"))));
        if (b.bytes.size() != size) return bad_layer("'" + what + "' and its file have different sizes");
      } else {
        b.bytes.resize(size);
      }
      buffers_[what] = std::move(b);
    }
    for (const ordered_json& job : json_.at("jobs")) {
      const auto at = buffers_.find("regcmd " + std::to_string(job.at("op").get<int64_t>()));
      if (at == buffers_.end()) return bad_layer("a job has no stream");
      for (const ordered_json& task : job.at("tasks"))
        ORKNN_TRY(add_stream(at->second, parse_address(task.at("regcmd_address")), task.at("regcmd_count").get<uint64_t>()));
    }
    return {};
  }
  Status add_stream(const Buffer& buffer, uint64_t address, uint64_t words) {
    const uint64_t from = address - buffer.address;
    if (address < buffer.address || words > buffer.bytes.size() / 8 || from > buffer.bytes.size() - words * 8)
      return bad_layer("a task lies outside of its buffer");
    Stream s(words);
    std::memcpy(s.data(), buffer.bytes.data() + from, words * 8);
    streams_.push_back(std::move(s));
    return {};
  }

  Status read_single() {
    ORKNN_TRY_ASSIGN(const std::vector<std::byte> bytes, read_bytes(fs::path(folder_) / "regcmd.bin"));
    const ordered_json& memory = json_.at("memory");
    Buffer all{memory.contains("regcmd") ? static_cast<uint32_t>(parse_address(memory.at("regcmd"))) : 0, bytes};
    if (json_.contains("tasks")) {
      for (const ordered_json& task : json_.at("tasks"))
        ORKNN_TRY(add_stream(all, parse_address(task.at("regcmd_address")), task.at("regcmd_count").get<uint64_t>()));
    } else {
      uint64_t words = bytes.size() / 8;  // a board's file is padded to 64 bytes
      const auto word = [&](uint64_t i) {
        uint64_t v;
        std::memcpy(&v, bytes.data() + i * 8, 8);
        return v;
      };
      while (words > 0 && word(words - 1) == 0) --words;
      ORKNN_TRY(add_stream(all, all.address, words));
    }
    for (const auto& [name, address] : memory.items()) {
      if (name == "regcmd") continue;
      Buffer b{static_cast<uint32_t>(parse_address(address)), {}};
      if (name == "weights" || name == "bias") {
        ORKNN_TRY_ASSIGN(b.bytes, read_bytes(fs::path(folder_) / ("packed_" + name + ".bin")));
      } else if (fs::exists(fs::path(folder_) / (name + "_cube.bin"))) {
        ORKNN_TRY_ASSIGN(b.bytes, read_bytes(fs::path(folder_) / (name + "_cube.bin")));
      }
      buffers_[name] = std::move(b);
    }
    return {};
  }

  // The layer as described; folders that hold cubes are described by their cubes.
  Result<FolderLayer> described() {
    if (!fs::exists(fs::path(folder_) / "input_cube.bin")) {
      ORKNN_TRY_ASSIGN(FolderLayer layer, read_layer(folder_));
      if (!layer.is_chain) size_single(layer);
      return layer;
    }
    FolderLayer layer;
    const ordered_json& j = json_.at("layer");
    const Cube cube{extent(j, "height"), extent(j, "width"), extent(j, "channels"), Precision::Int8};
    FolderStep step;
    step.output = 1;
    layer.steps.push_back(std::move(step));
    layer.tensors = {{"input", "input_cube.bin", cube}, {"output", "output_cube.bin", cube}};
    return layer;
  }
  // This form states no sizes.
  void size_single(const FolderLayer& layer) {
    for (size_t i = 0; i < layer.tensors.size(); ++i)
      buffers_[layer.tensors[i].id].bytes.resize(static_cast<size_t>(bytes_in_memory(layer, i)));
  }
  Buffer& buffer_of(const FolderTensor& t) { return buffers_[json_.contains("jobs") ? "tensor " + t.id : t.id]; }
  Status compare(const FolderTensor& t, double tolerance, StoredRun& result) {
    const int64_t count = t.count();
    const DType dtype = dtype_of_precision(t.cube.precision);
    if (static_cast<int64_t>(buffer_of(t).bytes.size()) < t.cube.bytes())
      return bad_layer("the buffer of tensor " + t.id + " is too small");
    ir::TensorData value = ir::TensorData::allocate(dtype, {count});
    unpack_cube(t.cube, t.order, buffer_of(t).bytes, value.mutable_data());
    const std::vector<double> a = ir::to_doubles(value.view());
    if (t.is_flat && !fs::exists(fs::path(folder_) / t.file)) {
      // A row of float16 numbers up to one, and what a table with so few entries leaves out.
      constexpr double kTableError = 0x1p-10;
      count_differences(a, function_on_ramp(count), kTableError, result);
      return {};
    }
    ir::TensorData expected;
    if (t.file.ends_with(".bin")) {
      ORKNN_TRY_ASSIGN(const std::vector<std::byte> cube, read_bytes(fs::path(folder_) / t.file));
      if (static_cast<int64_t>(cube.size()) < t.cube.bytes()) return bad_layer("'" + t.file + "' is too small");
      expected = ir::TensorData::allocate(dtype, {count});
      unpack_cube(t.cube, t.order, cube, expected.mutable_data());
    } else {
      ORKNN_TRY_ASSIGN(expected, read_array(folder_, t.file, dtype, count));
    }
    count_differences(a, ir::to_doubles(expected.view()), tolerance, result);
    return {};
  }
  static void count_differences(const std::vector<double>& a, const std::vector<double>& b, double tolerance, StoredRun& result) {
    result.elements += static_cast<int64_t>(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const double difference = std::abs(a[i] - b[i]);
      result.largest = std::max(result.largest, difference);
      result.different += !(difference <= tolerance);
    }
  }
  // The described function of the ramp that stands for a missing input.
  std::vector<double> function_on_ramp(int64_t count) const {
    const auto name = json_.at("layer").at("function").get<std::string>();
    std::vector<double> values;
    for (const uint16_t x : table_ramp(count)) values.push_back(value_of_function(name, half_to_float(x)));
    return values;
  }

  std::string folder_;
  ordered_json json_;
  std::map<std::string, Buffer> buffers_;
  std::vector<Stream> streams_;
};
}  // namespace

Result<StoredRun> run_stored_layer(const std::string& folder) {
  StoredLayer stored;
  ORKNN_TRY(stored.read(folder));
  return stored.run();
}

Result<std::string> disassemble_stored_layer(const std::string& folder) {
  StoredLayer stored;
  ORKNN_TRY(stored.read(folder));
  std::string text;
  for (size_t i = 0; i < stored.streams().size(); ++i) text += fmt::format("task {}\n{}", i, disassemble(stored.streams()[i]));
  return text;
}

}  // namespace orknn::toolkit
