// Streams that a folder holds: executed by the chip model, or as text.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <new>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/half.h"
#include "silicon/chip_model.h"
#include "toolkit/layer_description.h"
#include "toolkit/layer_fields.h"
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

// What Fields throw, and what a hostile folder makes the standard library throw, as a Status.
template <class Read>
auto guarded(Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
    throw;  // says nothing about the folder
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
    return guarded([&]() -> Status {
      ORKNN_TRY(check_chip(json_));
      return json_.contains("jobs") ? read_chain() : read_single();
    });
  }
  const std::vector<Stream>& streams() const { return streams_; }

  Result<StoredRun> run() {
    ORKNN_TRY_ASSIGN(const FolderLayer layer, guarded([&] { return described(); }));
    extend_biases();
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
    const Fields fields(json_);
    for (const Fields& m : fields.objects("memory")) {
      const std::string what = m.text("what");
      Buffer b{m.address("address"), {}};
      const int64_t size = m.integer("size");
      if (size < 0 || size > int64_t{1} << 31) return bad_layer("'" + what + "' is too large");
      if (m.has("file")) {
        ORKNN_TRY_ASSIGN(b.bytes, read_bytes(fs::path(folder_) / m.file("file")));
        if (std::ssize(b.bytes) != size) return bad_layer("'" + what + "' and its file have different sizes");
      } else {
        b.bytes.resize(static_cast<size_t>(size));
      }
      buffers_[what] = std::move(b);
    }
    for (const Fields& job : fields.objects("jobs")) {
      const std::string name = "regcmd " + std::to_string(job.integer("op"));
      const auto at = buffers_.find(name);
      if (at == buffers_.end()) return bad_layer("'memory' has no '" + name + "'");
      for (const Fields& task : job.objects("tasks")) ORKNN_TRY(add_task(at->second, task));
    }
    return {};
  }
  Status add_task(const Buffer& buffer, const Fields& task) {
    return add_stream(buffer, task.address("regcmd_address"), static_cast<uint64_t>(task.integer("regcmd_count")));
  }
  Status add_stream(const Buffer& buffer, uint64_t address, uint64_t words) {
    const uint64_t from = address - buffer.address;
    if (address < buffer.address || words > buffer.bytes.size() / 8 || from > buffer.bytes.size() - words * 8)
      return bad_layer("a task is outside its buffer");
    Stream s(words);
    std::memcpy(s.data(), buffer.bytes.data() + from, words * 8);
    streams_.push_back(std::move(s));
    return {};
  }

  Status read_single() {
    ORKNN_TRY_ASSIGN(const std::vector<std::byte> bytes, read_bytes(fs::path(folder_) / "regcmd.bin"));
    const Fields fields(json_), memory = fields.object("memory");
    Buffer all{memory.has("regcmd") ? memory.address("regcmd") : 0, bytes};
    if (fields.has("tasks")) {
      for (const Fields& task : fields.objects("tasks")) ORKNN_TRY(add_task(all, task));
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
    for (const std::string& name : memory.keys()) {
      if (name == "regcmd") continue;
      Buffer b{memory.address(name.c_str()), {}};
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
    const Fields j = Fields(json_).object("layer");
    const Cube cube{j.extent("height"), j.extent("width"), j.extent("channels"), Precision::Int8};
    FolderStep step;
    step.output = 1;
    layer.steps.push_back(std::move(step));
    layer.tensors = {{"input", "input_cube.bin", cube}, {"output", "output_cube.bin", cube}};
    return layer;
  }
  // The reader fetches a bias for every channel that is written, of which some folders hold the real ones only: on a board the
  // rest of the page belongs to the buffer, as far as no other one begins there.
  void extend_biases() {
    for (auto& [name, b] : buffers_) {
      if (!name.starts_with("bias")) continue;
      uint64_t end = AddressSpace::whole_pages(b.address + b.bytes.size());
      for (const auto& [other_name, other] : buffers_)
        if (other.address > b.address) end = std::min<uint64_t>(end, other.address);
      if (end > b.address + b.bytes.size()) b.bytes.resize(end - b.address);
    }
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
      ORKNN_TRY_ASSIGN(expected, read_array(folder_, t.file, dtype, t.dims()));
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
    const auto name = Fields(json_).object("layer").text("function");
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
