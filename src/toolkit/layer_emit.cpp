// From a described layer to its folder of streams and packed operands.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/folders.h"
#include "data/npy.h"
#include "silicon/chip_model.h"
#include "toolkit/layer_description.h"
#include "toolkit/layer_fields.h"
#include "toolkit/layer_folder.h"

namespace orknn::toolkit {
namespace {
using nlohmann::ordered_json;
using namespace silicon;
namespace fs = std::filesystem;

std::string hex(uint64_t v) { return fmt::format("{:#x}", v); }

ordered_json words_json(const Stream& stream) {
  auto words = ordered_json::array();
  for (const uint64_t word : stream) {
    const Command c = decode(word);
    words.push_back({fmt::format("{:#06x}", static_cast<uint16_t>(c.target)), fmt::format("{:#06x}", c.offset),
                     fmt::format("{:#010x}", c.value), register_name(c)});
  }
  return words;
}

// Streams one after the other, each at a multiple of 64 bytes.
std::vector<std::byte> joined(std::span<const Stream> streams) {
  std::vector<std::byte> bytes;
  for (const Stream& s : streams) {
    const size_t at = bytes.size();
    bytes.resize(at + static_cast<size_t>(round_up(static_cast<int64_t>(s.size() * 8), 64)));
    std::memcpy(bytes.data() + at, s.data(), s.size() * 8);
  }
  return bytes;
}

Status write_bytes(const fs::path& path, std::span<const std::byte> bytes) {
  return write_file_atomically(path.string(), [&](FileWriter& w) { return w.write(bytes); });
}

// A tensor's memory; results of steps are written into it.
struct PlacedTensor {
  uint32_t address = 0;
  std::vector<std::byte> bytes;
};
struct PlacedStep {
  uint32_t weights = 0, bias = 0, streams_at = 0;
  ConvOperands operands;
  std::vector<Stream> streams;
  std::vector<std::byte> joined_streams;
};

class Emitter {
 public:
  Emitter(const std::string& folder, const std::string& out, FolderLayer& layer) : folder_(folder), out_(out), layer_(layer) {}

  Result<EmitReport> run(const EmitOptions& options) {
    for (FolderStep& s : layer_.steps)
      if (auto* conv = std::get_if<ConvLayer>(&s.layer)) conv->grouping = options.grouping;
    ORKNN_TRY(place());
    ORKNN_TRY(make_streams());
    ORKNN_TRY(execute());
    ORKNN_TRY(make_folder(out_.string()));
    ORKNN_TRY(write_results());
    ORKNN_TRY(copy_operands());
    ORKNN_TRY(write_streams());
    ORKNN_TRY(write_layer());
    return report_;
  }

 private:
  // Addresses in the order of use: operands of all steps, tensors, streams.
  Status place() {
    tensors_.resize(layer_.tensors.size());
    for (const FolderStep& s : layer_.steps) {
      PlacedStep placed;
      if (const auto* conv = std::get_if<ConvLayer>(&s.layer)) {
        ORKNN_TRY_ASSIGN(placed.operands, pack_operands(*conv, s.weights.data(), s.bias));
        ORKNN_TRY_ASSIGN(placed.weights, space_.allocate(placed.operands.weights.size()));
        if (conv->has_bias) ORKNN_TRY(assign(placed.bias, placed.operands.bias.size()));
      }
      steps_.push_back(std::move(placed));
    }
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (layer_.tensors[i].file.empty()) continue;
      const FolderTensor& t = layer_.tensors[i];
      const auto bytes = static_cast<size_t>(bytes_in_memory(layer_, i));
      ORKNN_TRY(assign(tensors_[i].address, bytes));
      tensors_[i].bytes.resize(bytes, static_cast<std::byte>(t.cube.precision == Precision::Int8 ? t.zero_point : 0));
    }
    return {};
  }
  Status assign(uint32_t& address, size_t bytes) {
    ORKNN_TRY_ASSIGN(address, space_.allocate(bytes));
    return {};
  }

  Status make_streams() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const FolderStep& s = layer_.steps[i];
      PlacedStep& placed = steps_[i];
      const uint32_t in = tensors_[s.input].address, out = tensors_[s.output].address;
      if (const auto* conv = std::get_if<ConvLayer>(&s.layer)) {
        const uint32_t operand = s.operand ? tensors_[*s.operand].address : 0;
        ORKNN_TRY_ASSIGN(placed.streams, conv_streams(*conv, {in, placed.weights, placed.bias, out, operand}));
      } else if (const auto* table = std::get_if<TableLayer>(&s.layer)) {
        ORKNN_TRY_ASSIGN(placed.streams, table_streams(*table, in, out));
      } else {
        ORKNN_TRY_ASSIGN(Stream stream, pool_stream(std::get<PoolLayer>(s.layer), in, out));
        placed.streams.push_back(std::move(stream));
      }
      placed.joined_streams = joined(placed.streams);
      ORKNN_TRY(assign(placed.streams_at, placed.joined_streams.size()));
      report_.tasks += placed.streams.size();
      for (const Stream& stream : placed.streams) report_.words += stream.size();
      report_.packed_bytes += placed.operands.weights.size() + placed.operands.bias.size();
    }
    return {};
  }

  Status execute() {
    std::vector<std::vector<std::byte>> biases;
    DeviceMemory memory;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (layer_.tensors[i].file.empty()) continue;
      ORKNN_TRY(memory.map("tensor " + layer_.tensors[i].id, tensors_[i].address, tensors_[i].bytes));
      if (!layer_.is_computed(i)) ORKNN_TRY(load_tensor(folder_, layer_.tensors[i], tensors_[i].bytes));
    }
    for (size_t i = 0; i < steps_.size(); ++i) {
      PlacedStep& s = steps_[i];
      if (s.weights) ORKNN_TRY(memory.map("weights " + std::to_string(i), s.weights, s.operands.weights));
      if (!s.bias) continue;
      // The reader fetches a bias for every channel that is written, of which short groups hold less: a driver allocates pages.
      biases.push_back(s.operands.bias);
      biases.back().resize(AddressSpace::whole_pages(biases.back().size()));
      ORKNN_TRY(memory.map("bias " + std::to_string(i), s.bias, biases.back()));
    }
    for (const PlacedStep& s : steps_) ORKNN_TRY(run_streams(s.streams, memory, ThreadPool::shared()));
    return {};
  }

  Result<ir::TensorData> value_of(size_t tensor) const {
    const FolderTensor& t = layer_.tensors[tensor];
    ir::TensorData value = ir::TensorData::allocate(dtype_of_precision(t.cube.precision), t.dims());
    unpack_cube(t.cube, t.order, tensors_[tensor].bytes, value.mutable_data());
    return value;
  }

  Status write_results() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const FolderTensor& t = layer_.tensors[i];
      if (t.file.empty() || !layer_.is_computed(i)) continue;
      ORKNN_TRY_ASSIGN(const ir::TensorData value, value_of(i));
      ORKNN_TRY(compare_with_stored(t, value));
      ORKNN_TRY(data::write_npy((out_ / t.file).string(), value));
      report_.results.push_back(t.file);
    }
    return {};
  }
  Status compare_with_stored(const FolderTensor& t, const ir::TensorData& value) {
    const fs::path stored = fs::path(folder_) / t.file;
    std::error_code ignored;
    if (!fs::exists(stored, ignored)) return {};
    ORKNN_TRY_ASSIGN(const ir::TensorData expected, read_array(folder_, t.file, value.dtype(), value.dims()));
    const std::vector<double> a = ir::to_doubles(value.view()), b = ir::to_doubles(expected.view());
    for (size_t i = 0; i < a.size(); ++i)
      if (!(std::abs(a[i] - b[i]) <= layer_.tolerance))
        return Status::error(
                   Code::Fail,
                   fmt::format("'{}': the streams give other values than the folder holds, first at element {}", t.file, i))
            .expected(std::to_string(b[i]))
            .found(std::to_string(a[i]));
    ++report_.compared;
    return {};
  }

  // Inputs, weights and biases make the new folder complete.
  Status copy_operands() const {
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(folder_, failed)) {
      if (entry.path().extension() != ".npy" || fs::exists(out_ / entry.path().filename())) continue;
      ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(entry.path().string()));
      ORKNN_TRY(write_bytes(out_ / entry.path().filename(), file->bytes()));
    }
    return failed ? io_error("cannot list '" + folder_ + "': " + failed.message()) : Status();
  }

  std::string numbered(const char* stem, size_t op) const {
    return layer_.is_chain ? fmt::format("{}_{}.bin", stem, op) : fmt::format("{}.bin", stem);
  }

  Status write_streams() const {
    auto all = ordered_json::array();
    for (size_t i = 0; i < steps_.size(); ++i) {
      const PlacedStep& s = steps_[i];
      const size_t op = layer_.steps[i].op;
      if (!s.operands.weights.empty()) ORKNN_TRY(write_bytes(out_ / numbered("packed_weights", op), s.operands.weights));
      if (!s.operands.bias.empty()) ORKNN_TRY(write_bytes(out_ / numbered("packed_bias", op), s.operands.bias));
      // A single task of the single form is the file, without padding, as readers of that form expect.
      const std::span<const std::byte> bytes =
          !layer_.is_chain && s.streams.size() == 1 ? std::as_bytes(std::span(s.streams[0])) : s.joined_streams;
      ORKNN_TRY(write_bytes(out_ / numbered("regcmd", op), bytes));
      uint64_t at = s.streams_at;
      for (const Stream& stream : s.streams) {
        ordered_json task;
        if (layer_.is_chain) task["op"] = op;
        task["regcmd_address"] = hex(at);
        task["words"] = words_json(stream);
        all.push_back(std::move(task));
        at += static_cast<uint64_t>(round_up(static_cast<int64_t>(stream.size() * 8), 64));
      }
    }
    const std::string text = all.dump(1) + "\n";
    return write_file_atomically((out_ / "regcmd.json").string(), [&](FileWriter& w) { return w.write(text); });
  }

  ordered_json tasks_json(const PlacedStep& s) const {
    auto tasks = ordered_json::array();
    uint64_t at = s.streams_at;
    for (const Stream& stream : s.streams) {
      const Result<DecodedTask> task = decode_task(stream);
      ordered_json j{{"regcmd_address", hex(at)}, {"regcmd_count", stream.size()}};
      if (task && task->enable == kEnableConvolution) {
        const DpuTask d = dpu_task(task->registers);
        j["out_rows_x_cols"] = fmt::format("{}x{}", d.height, d.width);
      }
      tasks.push_back(std::move(j));
      at += static_cast<uint64_t>(round_up(static_cast<int64_t>(stream.size() * 8), 64));
    }
    return tasks;
  }

  void describe_chain(ordered_json& j) const {
    auto memory = ordered_json::array(), jobs = ordered_json::array();
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (!layer_.tensors[i].file.empty())
        memory.push_back({{"what", "tensor " + layer_.tensors[i].id},
                          {"address", hex(tensors_[i].address)},
                          {"size", tensors_[i].bytes.size()}});
    for (size_t i = 0; i < steps_.size(); ++i) {
      const PlacedStep& s = steps_[i];
      const FolderStep& step = layer_.steps[i];
      const std::string op = std::to_string(step.op);
      const auto add = [&](const char* what, const char* stem, uint32_t address, size_t bytes) {
        memory.push_back(
            {{"what", what + (" " + op)}, {"address", hex(address)}, {"size", bytes}, {"file", numbered(stem, step.op)}});
      };
      if (s.weights) add("weights", "packed_weights", s.weights, s.operands.weights.size());
      if (s.bias) add("bias", "packed_bias", s.bias, s.operands.bias.size());
      add("regcmd", "regcmd", s.streams_at, s.joined_streams.size());
      ordered_json reads{std::stoll(layer_.tensors[step.input].id)};
      if (step.operand) reads.push_back(std::stoll(layer_.tensors[*step.operand].id));
      jobs.push_back({{"op", step.op},
                      {"reads", reads},
                      {"writes", std::stoll(layer_.tensors[step.output].id)},
                      {"clip_truncate", 0},
                      {"tasks", tasks_json(s)}});
    }
    j["memory"] = std::move(memory);
    j["jobs"] = std::move(jobs);
  }

  void describe_single(ordered_json& j) const {
    ordered_json memory;
    for (size_t i = 0; i < tensors_.size(); ++i) memory[layer_.tensors[i].id] = hex(tensors_[i].address);
    const PlacedStep& s = steps_.front();
    if (s.weights) memory["weights"] = hex(s.weights);
    if (s.bias) memory["bias"] = hex(s.bias);
    memory["regcmd"] = hex(s.streams_at);
    j["memory"] = std::move(memory);
    j["enable"] = hex(decode(s.streams.front().back()).value);
    j["tasks"] = tasks_json(s);
  }

  Status write_layer() const {
    ordered_json j = layer_.json;
    j["origin"] = "OpenRKNN";
    j["checks"] = {{"chip_model", "executed"}};
    if (layer_.is_chain)
      describe_chain(j);
    else
      describe_single(j);
    const std::string text = j.dump(1) + "\n";
    return write_file_atomically((out_ / "layer.json").string(), [&](FileWriter& w) { return w.write(text); });
  }

  const std::string& folder_;
  const fs::path out_;
  FolderLayer& layer_;
  AddressSpace space_;
  std::vector<PlacedTensor> tensors_;
  std::vector<PlacedStep> steps_;
  EmitReport report_;
};

// Streams of others may drop low bits of the sums; ours keep them and would give other results.
Status check_truncation(const ordered_json& json) {
  try {
    const Fields fields(json);
    if (!fields.has("jobs")) return {};
    for (const Fields& job : fields.objects("jobs"))
      if (job.integer("clip_truncate", 0) != 0) job.refuse("clip_truncate", "0: streams keep all bits of the sums");
  } catch (const std::invalid_argument& e) {
    return bad_layer(e.what());
  }
  return {};
}

}  // namespace

Result<EmitReport> emit_layer(const std::string& folder, const std::string& out, const EmitOptions& options) {
  std::error_code ignored;
  if (fs::equivalent(folder, out, ignored))
    return invalid_argument("the result would overwrite the described layer").hint("name another folder");
  if (fs::exists(fs::path(folder) / "input_cube.bin", ignored) && !fs::exists(fs::path(folder) / "input.npy", ignored))
    return unsupported("'" + folder + "' holds packed operands only, as captured on a board")
        .expected("input.npy and weights.npy")
        .found("input_cube.bin")
        .hint("its streams can be executed: openrknn emit FOLDER --execute");
  ORKNN_TRY_ASSIGN(FolderLayer layer, read_layer(folder));
  ORKNN_TRY(check_truncation(layer.json));
  return Emitter(folder, out, layer).run(options);
}

}  // namespace orknn::toolkit
