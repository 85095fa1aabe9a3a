// A loaded model with its inputs and results. The C API and the Python module both stand on it, so they give the same bytes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "format/program.h"
#include "remote/device.h"
#include "runtime/convert.h"
#include "runtime/custom_ops.h"
#include "silicon/network.h"
#include "sim/executor.h"

namespace orknn::runtime {

// An input or output as users see it.
struct PortInfo {
  std::string name;
  ir::Dims dims;                              // of the source model; -1 where known only at run time
  ir::Layout layout = ir::Layout::Undefined;  // NCHW or NHWC for 4-D, else Undefined
  DType source_dtype = DType::Float32;
  DType dtype = DType::Float32;  // what the program computes with
  bool quantized = false;
  float scale = 1;  // of a quantized tensor
  int32_t zero_point = 0;
  bool fixed_point = false;  // the scale is a power of two, the zero point 0
};

struct MemorySizes {
  uint64_t weight_bytes = 0;
  uint64_t internal_bytes = 0;  // activations, without inputs and outputs
  uint64_t port_bytes = 0;      // inputs and outputs
  uint64_t command_bytes = 0;   // register commands of the NPU's layers
  uint64_t other_bytes() const { return port_bytes + command_bytes; }
  uint64_t total_bytes() const { return weight_bytes + internal_bytes + other_bytes(); }
};

// Not for use from two threads at once. Sessions made by duplicate() are independent and share the weights.
class Session {
 public:
  // `pool` = nullptr: the shared one. It must outlive the session. `ops`: the built-in operators and those of the user's own that
  // the caller computes; nothing = only the built-in ones.
  static Result<std::unique_ptr<Session>> open(const std::string& path, ThreadPool* pool = nullptr,
                                               std::shared_ptr<const ir::OpSet> ops = {});
  // From memory; copied unless `keeper` keeps it alive.
  static Result<std::unique_ptr<Session>> open(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                                               ThreadPool* pool = nullptr);
  static Result<std::unique_ptr<Session>> open(std::shared_ptr<const format::Model> model, ThreadPool* pool = nullptr,
                                               std::shared_ptr<const ir::OpSet> ops = {});
  Result<std::unique_ptr<Session>> duplicate() const;
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const format::Model& model() const { return *model_; }
  const std::shared_ptr<const format::Model>& shared_model() const { return model_; }
  const format::Program& program() const { return model_->programs[current_]; }
  // Models of several shape sets hold a program for each. A session begins with the first; the others are prepared when they are
  // asked for. Choosing another one forgets inputs and results.
  Status choose_program(size_t index);
  std::vector<PortInfo> inputs_of_program(size_t index) const;
  std::vector<PortInfo> outputs_of_program(size_t index) const;
  const std::vector<PortInfo>& inputs() const { return inputs_; }
  const std::vector<PortInfo>& outputs() const { return outputs_; }
  // Of the first program, which is the largest.
  MemorySizes memory() const;

  // From now on runs go through command streams: layers with a recipe on the unit, the others on the reference kernels. A session
  // begins with what ORKNN_ENGINE says: simulator; registers, the chip model; npu, the board's own NPU; without it the board's
  // NPU where there is one that fits the model, else the simulator. Nothing for `unit` stands for the chip model. An error for
  // chips whose registers are not known.
  using MakeUnit = std::function<Result<std::unique_ptr<silicon::Unit>>()>;
  Status use_registers(MakeUnit unit = {});
  void use_simulator() { make_unit_ = {}, uses_board_ = false; }
  bool uses_registers() const { return static_cast<bool>(make_unit_); }
  // Whether the session began with this board's own NPU.
  bool uses_board() const { return uses_board_; }
  // In the words of ORKNN_ENGINE.
  std::string_view engine_name() const { return uses_board_ ? "npu" : uses_registers() ? "registers" : "simulator"; }
  // Where the streams of the last run were executed: "the chip model", "rocket (/dev/accel/accel0)". Empty before there was one.
  std::string unit_name() const;

  // Takes the data at once. An input that was never set is all zeros.
  Status set_input(size_t index, const InputData& data);
  Status run(const sim::RunHooks& hooks = {});
  bool has_run() const { return has_run_; }

  // Memory of the caller's instead of set_input and read_output; it stays in use until the input is set, the port bound again
  // or another program chosen.
  // The input is read from data.data when a run begins, without a copy where the bytes are what the program computes with.
  Status bind_input(size_t index, const InputData& data);
  // The output is written to `to`, which holds `bytes`, when a run ends, or computed there where the form is the program's own.
  Status bind_output(size_t index, const OutputForm& form, void* to, size_t bytes);
  // A bound input in the order of the program's extents, with the numbers and in the type that the caller gives: before (x -
  // mean) / std and quantization. Nothing when the program takes these numbers as they are, or when the input is not bound.
  std::optional<ir::TensorData> given_input(size_t index) const;
  // Bytes of memory that a form takes.
  Result<uint64_t> input_bytes(size_t index, const InputData& data) const;
  Result<uint64_t> output_bytes(size_t index, const OutputForm& form) const;
  // The weights as the model file holds them, as far as they fit.
  void copy_weights(std::span<std::byte> to) const;
  // Activations of all programs live at `bytes`: memory().internal_bytes, aligned to 64.
  void use_internal_memory(std::byte* bytes);

  // Runs happen on `device` from here on, which gets the model now; everything else stays as it is, and so do the results.
  Status use_device(std::unique_ptr<remote::Device> device);
  remote::Device* device() const { return device_.get(); }
  // Cores and priority of runs on a device.
  void choose_device_cores(uint32_t mask, uint32_t priority) { device_cores_ = mask, device_priority_ = priority; }

  // After a run: extents and contents of output `index`.
  std::span<const int64_t> output_dims(size_t index) const { return output_value(index).dims; }
  // float32 for floats and quantized values, the source model's type for integers and bool. Values that the source model itself
  // states in quantized uint8 (TFLite) stay as they are.
  DType natural_dtype(size_t index) const;
  // `to` holds exactly the elements in type `dtype`.
  void read_output(size_t index, DType dtype, void* to) const { convert_result(index, output_value(index), dtype, to); }
  // Packs the simulator's weights ahead of its runs (sim::Executor::prepare).
  Status prepare(bool reproducible) { return executor().prepare(reproducible, *pool_); }
  // The result as the program computed it, valid until the next run, and what read_output makes of such a value.
  ir::TensorView output_value(size_t index) const;
  // The values that the program takes, as output_value gives those that it makes; for whoever runs the model for somebody else.
  Status run_values(std::span<const ir::TensorView> inputs, const sim::RunHooks& hooks);
  // Result `index` of run_values(), whose size the program states, is computed to `to`; nullptr = into the session's own memory.
  void place_result(size_t index, void* to) { executor().place_output(index, to); }
  // Whether run_values() does nothing with input `index`, or with the place of result `index`, but what sim::Executor says of
  // these: then the memory may be somebody's who changes it meanwhile.
  bool only_converts_input(size_t index) const { return !uses_registers() && executor().only_converts_input(index); }
  bool only_converts_result(size_t index) const { return !uses_registers() && executor().only_converts_output(index); }
  void convert_result(size_t index, const ir::TensorView& value, DType dtype, void* to) const;
  ir::TensorData output(size_t index) const;

  std::string_view kernel_name(size_t task) const;
  // Who computes the model's custom nodes.
  CustomOps& custom_ops() { return custom_ops_; }
  // After operators were added there: those with the name of a built-in one compute its nodes from the next run on.
  void replace_operators();

 private:
  Session() = default;
  static std::unique_ptr<Session> make(std::shared_ptr<const format::Model> model, size_t program,
                                       std::unique_ptr<sim::Executor> executor, ThreadPool& pool, CustomOps custom_ops);
  void describe_ports();
  void replace_operators(size_t program);
  Status choose_engine();
  bool replaces_operators() const;
  // The network of the current program, made when it is needed first.
  Status prepare_network();
  Status run_registers(std::span<const ir::TensorView> inputs, const sim::RunHooks& hooks);
  sim::Executor& executor() const { return *executors_[current_]; }
  Result<ir::TensorView> input_view(size_t index, ThreadPool& pool);
  Status run_on_device(const sim::RunHooks& hooks);
  // The same with the layers fetched from the device for hooks.observe and hooks.amend.
  Status trace_on_device(const remote::RunOptions& options, const sim::RunHooks& hooks);
  Result<OutputConverter> output_converter(size_t index, const OutputForm& form) const;
  bool overlaps_an_output(const void* from, size_t bytes) const;

  struct BoundInput {
    InputConverter converter;
    InputData form;
    bool in_place = false;  // the program reads the caller's bytes themselves
  };
  struct BoundOutput {
    OutputConverter converter;
    void* to = nullptr;
    bool in_place = false;
  };
  // Which inputs are read where they lie. It depends on the outputs, too: one that overlaps an input is written while others
  // read.
  void find_inputs_in_place();

  std::shared_ptr<const format::Model> model_;
  CustomOps custom_ops_;
  std::vector<std::unique_ptr<sim::Executor>> executors_;    // one per program; nothing = not prepared yet
  std::vector<std::unique_ptr<silicon::Network>> networks_;  // the same as command streams
  MakeUnit make_unit_;                                       // one for each network; nothing = the simulator
  bool uses_board_ = false;                                  // chosen when the session began
  size_t current_ = 0;
  ThreadPool* pool_ = nullptr;
  std::vector<PortInfo> inputs_, outputs_;
  std::vector<std::shared_ptr<const MappedFile>> files_;  // that hold the weights
  std::vector<ir::TensorData> values_;                    // inputs as the program takes them; no value = not set yet
  std::vector<ir::TensorView> views_;                     // inputs of the current run
  std::vector<std::optional<BoundInput>> bound_inputs_;
  std::vector<std::optional<BoundOutput>> bound_outputs_;
  std::byte* internal_memory_ = nullptr;    // of the caller's; nullptr = each executor has its own
  std::unique_ptr<remote::Device> device_;  // nullptr = runs happen here
  std::vector<ir::TensorView> device_results_;
  uint32_t device_cores_ = 0, device_priority_ = 0;
  bool has_run_ = false;
  bool warned_of_range_ = false;
};

}  // namespace orknn::runtime
