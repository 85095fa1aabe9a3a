#include "runtime/session.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/log.h"
#include "format/rknn_file.h"
#include "ir/mapped_constants.h"
#include "platform/platforms.h"
#include "runtime/perf_report.h"
#include "silicon/drivers/board.h"

namespace orknn::runtime {
namespace {
using namespace ir;

PortInfo describe(const format::Program& program, const format::Port& port) {
  const Tensor& t = program.graph.tensor(port.tensor);
  PortInfo info;
  info.name = t.name;
  if (t.shape)
    for (const Dim& d : *t.shape) info.dims.push_back(d.is_known() ? d.value() : -1);
  info.layout = port_layout(port, t);
  info.source_dtype = port.dtype;
  info.dtype = t.dtype;
  info.quantized = t.quant && !t.quant->scale.empty() && is_integer(t.dtype);
  if (info.quantized) {
    info.scale = t.quant->scale[0];
    info.fixed_point = t.quant->fixed_point;
    info.zero_point = t.quant->zero_point.empty() ? 0 : t.quant->zero_point[0];
  }
  return info;
}

std::vector<PortInfo> describe_all(const format::Program& program, const std::vector<format::Port>& ports) {
  std::vector<PortInfo> infos;
  for (const format::Port& port : ports) infos.push_back(describe(program, port));
  return infos;
}

// Whether some number of `data` is outside an integer type.
bool leaves_range(const InputData& data, DType type) {
  const auto low = static_cast<double>(dtype_min(type)), high = static_cast<double>(dtype_max(type));
  bool leaves = false;
  visit_dtype(data.dtype, [&]<class T>(TypeTag<T>) {
    for (size_t i = 0; i < data.bytes / sizeof(T) && !leaves; ++i) {
      T value;
      std::memcpy(&value, static_cast<const std::byte*>(data.data) + i * sizeof value, sizeof value);
      const auto number = static_cast<double>(value);
      leaves = !(number >= low && number <= high);
    }
  });
  return leaves;
}

// What kernels may rely on.
bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 64 == 0; }

Status no_memory() { return Status::error(Code::OutOfMemory, "memory ran out"); }
}  // namespace

Session::~Session() = default;

std::unique_ptr<Session> Session::make(std::shared_ptr<const format::Model> model, size_t program,
                                       std::unique_ptr<sim::Executor> executor, ThreadPool& pool, CustomOps custom_ops) {
  std::unique_ptr<Session> session(new Session());
  session->model_ = std::move(model);
  session->custom_ops_ = std::move(custom_ops);
  session->executors_.resize(session->model_->programs.size());
  session->executors_[program] = std::move(executor);
  session->networks_.resize(session->executors_.size());
  session->current_ = program;
  session->pool_ = &pool;
  for (const format::Program& p : session->model_->programs) ir::collect_mapped_files(p.graph, session->files_);
  session->describe_ports();
  session->replace_operators();
  return session;
}

void Session::replace_operators() {
  for (size_t i = 0; i < executors_.size(); ++i)
    if (executors_[i]) replace_operators(i);
}

void Session::replace_operators(size_t program) {
  const format::Program& p = model_->programs[program];
  for (size_t i = 0; i < p.tasks.size(); ++i)
    executors_[program]->replace_operator(
        i, custom_ops_.replaces(p.graph.node(p.tasks[i].node)) ? &CustomNodes::replacement() : nullptr);
}

void Session::describe_ports() {
  inputs_ = inputs_of_program(current_);
  outputs_ = outputs_of_program(current_);
  values_.assign(inputs_.size(), {});
  bound_inputs_.clear();
  bound_inputs_.resize(inputs_.size());
  bound_outputs_.clear();
  bound_outputs_.resize(outputs_.size());
  if (sim::Executor* e = executors_[current_].get())
    for (size_t i = 0; i < outputs_.size(); ++i) e->place_output(i, nullptr);
  has_run_ = false;
}

std::vector<PortInfo> Session::inputs_of_program(size_t index) const {
  return describe_all(model_->programs[index], model_->programs[index].inputs);
}
std::vector<PortInfo> Session::outputs_of_program(size_t index) const {
  return describe_all(model_->programs[index], model_->programs[index].outputs);
}

Status Session::choose_program(size_t index) {
  if (index >= executors_.size())
    return invalid_argument("there is no program " + std::to_string(index))
        .expected("below " + std::to_string(executors_.size()))
        .model(model_->name);
  if (index == current_) return {};
  try {
    if (!executors_[index]) {
      auto executor = sim::Executor::create(model_->programs[index], custom_ops_.nodes().op_set(), *pool_);
      if (!executor) return Status(executor.status()).model(model_->name).stage("init_runtime");
      executors_[index] = std::move(*executor);
      if (internal_memory_) executors_[index]->use_arena(internal_memory_);
      replace_operators(index);
    }
    current_ = index;
    describe_ports();
    return {};
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<std::unique_ptr<Session>> Session::open(std::shared_ptr<const format::Model> model, ThreadPool* pool,
                                               std::shared_ptr<const ir::OpSet> ops) {
  if (model->programs.empty()) return invalid_model("the model holds no program");
  const format::Program& first = model->programs[0];
  for (const format::Program& p : model->programs) {
    if (p.inputs.size() != first.inputs.size() || p.outputs.size() != first.outputs.size())
      return invalid_model("the programs of the model have different inputs or outputs").model(model->name);
    if (Status s = ir::check_mapped_files(p.graph); !s) return s.model(model->name).stage("init_runtime");
  }
  ThreadPool& threads = pool ? *pool : ThreadPool::shared();
  try {
    CustomOps custom_ops(std::make_shared<const CustomNodes>(*model, std::move(ops)));
    auto executor = sim::Executor::create(model->programs[0], custom_ops.nodes().op_set(), threads);
    if (!executor) return Status(executor.status()).model(model->name).stage("init_runtime");
    std::unique_ptr<Session> session = make(std::move(model), 0, std::move(*executor), threads, std::move(custom_ops));
    ORKNN_TRY(session->choose_engine());
    return session;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<std::unique_ptr<Session>> Session::open(const std::string& path, ThreadPool* pool, std::shared_ptr<const ir::OpSet> ops) {
  ORKNN_TRY_ASSIGN(format::Model model, format::read_rknn(path, pool ? *pool : ThreadPool::shared()));
  return open(std::make_shared<const format::Model>(std::move(model)), pool, std::move(ops));
}

Result<std::unique_ptr<Session>> Session::open(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                                               ThreadPool* pool) {
  ORKNN_TRY_ASSIGN(format::Model model, format::read_rknn(bytes, std::move(keeper), pool ? *pool : ThreadPool::shared()));
  return open(std::make_shared<const format::Model>(std::move(model)), pool);
}

Result<std::unique_ptr<Session>> Session::duplicate() const {
  ORKNN_TRY_ASSIGN(CustomOps custom_ops, custom_ops_.duplicate());
  ORKNN_TRY_ASSIGN(std::unique_ptr<sim::Executor> executor, executors_[current_]->duplicate(*pool_));
  std::unique_ptr<Session> other = make(model_, current_, std::move(executor), *pool_, std::move(custom_ops));
  if (device_) {
    ORKNN_TRY_ASSIGN(other->device_, device_->duplicate());
    other->choose_device_cores(device_cores_, device_priority_);
  }
  other->make_unit_ = make_unit_;
  other->uses_board_ = uses_board_;
  return other;
}

Status Session::choose_engine() {
  const char* wanted = std::getenv("ORKNN_ENGINE");
  const std::string_view name = wanted ? wanted : "";
  if (!name.empty() && name != "simulator" && name != "registers" && name != "npu")
    return invalid_argument("ORKNN_ENGINE names no engine").expected("simulator, registers or npu").found(std::string(name));
  // Calibration measures with models that were built for no chip.
  if (name == "simulator" || model_->target_platform.empty()) return {};
  if (name == "registers") return use_registers();
  const std::string chip = model_->target_platform;
  auto board = silicon::open_board(chip);
  if (name == "npu") {
    if (!board) return Status(board.status()).model(model_->name);
    if (!*board)
      return unsupported("this machine has no NPU of an " + chip + ", which the model was built for")
          .model(model_->name)
          .hint("run on a board with the kernel driver rocket or rknpu, or set ORKNN_ENGINE=simulator");
  } else if (!board) {
    log(LogLevel::Warn, "init_runtime", "the simulator runs the model, not the board's NPU: " + board.status().to_string());
    return {};
  } else if (!*board || replaces_operators()) {
    return {};
  }
  ORKNN_TRY(use_registers([chip]() -> Result<std::unique_ptr<silicon::Unit>> {
    ORKNN_TRY_ASSIGN(std::unique_ptr<silicon::Unit> unit, silicon::open_board(chip));
    if (!unit) return io_error("the NPU is no longer there");
    return unit;
  }));
  uses_board_ = true;
  return {};
}

Status Session::use_registers(MakeUnit unit) {
  const platform::Platform* chip = platform::find(model_->target_platform);
  if (!chip || !silicon::knows_registers_of(*chip))
    return unsupported("the registers of the chip that the model was built for are not known")
        .found(model_->target_platform)
        .model(model_->name)
        .hint("use the simulator");
  uses_board_ = false;
  make_unit_ = unit ? std::move(unit) : [] { return Result(silicon::make_chip_model_unit()); };
  return {};
}

std::string Session::unit_name() const { return networks_[current_] ? networks_[current_]->unit().name() : std::string(); }

bool Session::replaces_operators() const {
  return std::ranges::any_of(program().tasks,
                             [&](const format::Task& task) { return custom_ops_.replaces(program().graph.node(task.node)); });
}

Status Session::prepare_network() {
  if (networks_[current_]) return {};
  const OpSet& ops = custom_ops_.nodes().op_set();
  ORKNN_TRY_ASSIGN(silicon::Image image, silicon::image_of(*model_, current_, ops));
  ORKNN_TRY_ASSIGN(std::unique_ptr<silicon::Unit> unit, make_unit_());
  ORKNN_TRY_ASSIGN(networks_[current_], silicon::Network::create(program(), ops, std::move(image), std::move(unit)));
  return {};
}

// Results go where the caller bound them, as the executor does it.
Status Session::run_registers(std::span<const TensorView> inputs, const sim::RunHooks& hooks) {
  if (replaces_operators())
    return unsupported("operators that replace built-in ones are computed by the simulator only")
        .hint("set ORKNN_ENGINE=simulator");
  try {
    ORKNN_TRY(prepare_network());
    const silicon::UnitRun options{hooks.pool ? hooks.pool : pool_, hooks.deadline, device_cores_};
    Status s = networks_[current_]->run(inputs, options, {hooks.observe, hooks.amend, hooks.timing});
    // Of a unit that failed nothing is known: the next run gets another one.
    if (!s && networks_[current_]->unit().is_board()) networks_[current_].reset();
    ORKNN_TRY(s);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  for (size_t i = 0; i < bound_outputs_.size(); ++i)
    if (const std::optional<BoundOutput>& b = bound_outputs_[i]; b && b->in_place)
      std::memcpy(b->to, output_value(i).data, output_value(i).bytes());
  return {};
}

TensorView Session::output_value(size_t index) const {
  if (device_) return index < device_results_.size() ? device_results_[index] : TensorView{};
  return uses_registers() && networks_[current_] ? networks_[current_]->output(index) : executor().output(index);
}

std::string_view Session::kernel_name(size_t task) const {
  if (!uses_registers() || !networks_[current_]) return executor().kernel_name(task);
  return networks_[current_]->layers()[task].tasks ? "command stream" : "reference";
}

MemorySizes Session::memory() const {
  // Register commands of one NPU layer, as the vendor's reports show them on average.
  constexpr uint64_t kCommandBytes = 4096;
  const format::Program& largest = model_->programs[0];
  const uint64_t packed = packed_weight_bytes(largest);
  MemorySizes sizes;
  sizes.weight_bytes = packed ? packed : model_->weight_bytes;
  sizes.internal_bytes = largest.arena_bytes;
  for (const format::Task& t : largest.tasks) sizes.command_bytes += t.device == format::Device::Npu ? kCommandBytes : 0;
  for (const auto* ports : {&largest.inputs, &largest.outputs})
    for (const format::Port& port : *ports) sizes.port_bytes += largest.buffers[static_cast<size_t>(port.tensor.index)].bytes;
  return sizes;
}

Status Session::set_input(size_t index, const InputData& data) {
  if (index >= inputs_.size())
    return invalid_argument("there is no input " + std::to_string(index))
        .expected("below " + std::to_string(inputs_.size()))
        .model(model_->name);
  try {
    const format::Port& port = program().inputs[index];
    auto value = convert_input(port, program().graph.tensor(port.tensor), data, *pool_,
                               [&](size_t bytes) { return device_ ? device_->input_place(index, bytes) : nullptr; });
    if (!value) return Status(value.status()).model(model_->name);
    const PortInfo& info = inputs_[index];
    if (!warned_of_range_ && !info.quantized && is_integer(info.dtype) && data.dtype != info.dtype &&
        leaves_range(data, info.dtype)) {
      warned_of_range_ = true;
      log(LogLevel::Warn, "inference",
          "The input '" + info.name + "' has values outside the range of " + std::string(dtype_name(info.dtype)) +
              ", they are changed to fit it!");
    }
    values_[index] = std::move(*value);
    bound_inputs_[index].reset();
    return {};
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<uint64_t> Session::input_bytes(size_t index, const InputData& data) const {
  const format::Port& port = program().inputs[index];
  ORKNN_TRY_ASSIGN(const InputConverter converter, InputConverter::make(port, program().graph.tensor(port.tensor), data));
  return static_cast<uint64_t>(converter.needed_bytes());
}

Result<OutputConverter> Session::output_converter(size_t index, const OutputForm& form) const {
  const format::Port& port = program().outputs[index];
  const Tensor& tensor = program().graph.tensor(port.tensor);
  const std::optional<Dims> dims = tensor.shape ? to_dims(*tensor.shape) : std::nullopt;
  if (!dims) return unsupported("the shape of output '" + tensor.name + "' is known only at run time").model(model_->name);
  return OutputConverter(port, tensor, *dims, form);
}

Result<uint64_t> Session::output_bytes(size_t index, const OutputForm& form) const {
  ORKNN_TRY_ASSIGN(const OutputConverter converter, output_converter(index, form));
  return static_cast<uint64_t>(converter.bytes());
}

Status Session::bind_input(size_t index, const InputData& data) {
  try {
    const format::Port& port = program().inputs[index];
    auto converter = InputConverter::make(port, program().graph.tensor(port.tensor), data);
    if (!converter) return Status(converter.status()).model(model_->name);
    if (data.bytes < converter->needed_bytes())
      return invalid_argument("the memory of input '" + inputs_[index].name + "' is too small")
          .expected(std::to_string(converter->needed_bytes()) + " bytes")
          .found(std::to_string(data.bytes));
    TensorData value = TensorData::allocate(converter->dtype(), converter->dims());
    bound_inputs_[index].emplace(BoundInput{std::move(*converter), data});
    bound_inputs_[index]->form.dims = {};  // the caller's
    values_[index] = std::move(value);
    find_inputs_in_place();
    return {};
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Status Session::bind_output(size_t index, const OutputForm& form, void* to, size_t bytes) {
  try {
    ORKNN_TRY_ASSIGN(OutputConverter converter, output_converter(index, form));
    if (bytes < converter.bytes())
      return invalid_argument("the memory of output '" + outputs_[index].name + "' is too small")
          .expected(std::to_string(converter.bytes()) + " bytes")
          .found(std::to_string(bytes));
    const bool in_place = converter.is_copy() && is_aligned(to);
    bound_outputs_[index].emplace(BoundOutput{std::move(converter), to, in_place});
    executor().place_output(index, in_place ? to : nullptr);
    find_inputs_in_place();
    return {};
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

void Session::copy_weights(std::span<std::byte> to) const {
  for (const format::Program& p : model_->programs)
    for (size_t i = 0; i < p.buffers.size(); ++i) {
      const TensorData* constant = p.graph.constant(TensorId{static_cast<int32_t>(i)});
      const format::Buffer& b = p.buffers[i];
      if (!constant || b.place != format::Buffer::Place::Weights || b.offset >= to.size()) continue;
      std::memcpy(to.data() + b.offset, constant->data(), std::min<uint64_t>(constant->bytes(), to.size() - b.offset));
    }
}

bool Session::overlaps_an_output(const void* from, size_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(from);
  return std::any_of(bound_outputs_.begin(), bound_outputs_.end(), [&](const std::optional<BoundOutput>& o) {
    if (!o || !o->in_place) return false;
    const auto* to = static_cast<const std::byte*>(o->to);
    return begin < to + o->converter.bytes() && to < begin + bytes;
  });
}

void Session::find_inputs_in_place() {
  for (std::optional<BoundInput>& b : bound_inputs_)
    if (b)
      b->in_place =
          b->converter.is_copy() && is_aligned(b->form.data) && !overlaps_an_output(b->form.data, b->converter.needed_bytes());
}

std::optional<TensorData> Session::given_input(size_t index) const {
  const std::optional<BoundInput>& bound = bound_inputs_[index];
  if (!bound) return std::nullopt;
  const format::Port& port = program().inputs[index];
  const Tensor& tensor = program().graph.tensor(port.tensor);
  if (bound->form.dtype == tensor.dtype || bound->form.pass_through) return std::nullopt;
  // A port of the same extents that takes numbers as they come.
  const format::Port plain{.tensor = port.tensor, .dtype = bound->form.dtype, .layout = port.layout, .mean = {}, .std = {}};
  Tensor given = tensor;
  given.dtype = bound->form.dtype;
  given.quant.reset();
  auto converter = InputConverter::make(plain, given, bound->form);
  if (!converter) return std::nullopt;
  TensorData value = TensorData::allocate(converter->dtype(), converter->dims());
  converter->run(bound->form.data, value.mutable_data(), *pool_);
  return value;
}

void Session::use_internal_memory(std::byte* bytes) {
  internal_memory_ = bytes;
  for (const auto& e : executors_)
    if (e) e->use_arena(bytes);
}

Result<TensorView> Session::input_view(size_t index, ThreadPool& pool) {
  if (std::optional<BoundInput>& b = bound_inputs_[index]) {
    if (b->in_place) return TensorView{b->converter.dtype(), b->converter.dims(), b->form.data};
    b->converter.run(b->form.data, values_[index].mutable_data(), pool);
  } else if (!values_[index].has_value()) {
    const Tensor& t = program().graph.tensor(program().inputs[index].tensor);
    const std::optional<Dims> dims = t.shape ? to_dims(*t.shape) : std::nullopt;
    if (!dims) return invalid_argument("input '" + t.name + "' has no fixed shape and was not set");
    values_[index] = TensorData::zeros(t.dtype, *dims);
  }
  return values_[index].view();
}

Status Session::run(const sim::RunHooks& hooks) {
  if (Status s = ir::check_mapped_files(files_); !s) return s.model(model_->name).stage("run");
  ThreadPool& pool = hooks.pool ? *hooks.pool : *pool_;
  views_.clear();
  try {
    for (size_t i = 0; i < values_.size(); ++i) {
      Result<TensorView> view = input_view(i, pool);
      if (!view) return Status(view.status()).model(model_->name);
      views_.push_back(*view);
    }
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  ORKNN_TRY(device_ ? run_on_device(hooks) : run_values(views_, hooks));
  for (size_t i = 0; i < bound_outputs_.size(); ++i)
    if (std::optional<BoundOutput>& b = bound_outputs_[i]; b && (device_ || !b->in_place))
      b->converter.run(output_value(i), b->to, pool);
  return {};
}

Status Session::run_values(std::span<const TensorView> inputs, const sim::RunHooks& hooks) {
  has_run_ = false;
  const CustomOps::Active active(custom_ops_);
  Status s = uses_registers() ? run_registers(inputs, hooks) : executor().run(inputs, hooks);
  if (s) s = ir::check_mapped_files(files_);  // what was read of a file that was shortened meanwhile is worth nothing
  if (!s) return s.model(model_->name).stage("run");
  has_run_ = true;
  return {};
}

Status Session::use_device(std::unique_ptr<remote::Device> device) {
  Status s = device->load([model = model_] { return format::write_rknn_to_memory(*model); });
  if (!s) return s.model(model_->name).stage("init_runtime");
  device_ = std::move(device);
  has_run_ = false;
  return {};
}

namespace {
// What `amend` makes of a layer: nothing when it leaves the layer as it is. It is asked twice, with different values, because the
// layer's own are only known on the device. Layers whose size is only known there stay as they are.
std::optional<TensorData> amended_layer(const sim::RunHooks& hooks, TensorId id, const Tensor& tensor) {
  const std::optional<Dims> dims = tensor.shape ? to_dims(*tensor.shape) : std::nullopt;
  if (!dims || dtype_bytes(tensor.dtype) == 0) return std::nullopt;
  TensorData a = TensorData::zeros(tensor.dtype, *dims), b = TensorData::allocate(tensor.dtype, *dims);
  if (b.bytes()) std::memset(b.mutable_data(), 0xff, b.bytes());
  for (TensorData* value : {&a, &b}) hooks.amend(id, {tensor.dtype, value->dims(), value->mutable_data()});
  return identical(a.view(), b.view()) ? std::optional(std::move(a)) : std::nullopt;
}
}  // namespace

Status Session::trace_on_device(const remote::RunOptions& options, const sim::RunHooks& hooks) {
  const Graph& g = program().graph;
  std::vector<remote::LayerValue> amendments;
  if (hooks.amend)
    for (const format::Task& task : program().tasks)
      for (const TensorId t : g.node(task.node).outputs) {
        if (!t) continue;
        if (std::optional<TensorData> value = amended_layer(hooks, t, g.tensor(t)))
          amendments.emplace_back(static_cast<uint32_t>(t.index), std::move(*value));
      }
  Status misfit;
  const auto observe = [&](uint32_t index, const TensorView& value) {
    const TensorId t{static_cast<int32_t>(index)};
    if (index >= g.tensor_count() || g.tensor(t).dtype != value.dtype)
      misfit = io_error("the device sent a layer that is not in the program");
    else if (hooks.observe)
      hooks.observe(t, value);
  };
  ORKNN_TRY(device_->trace(options, views_, amendments, observe, device_results_));
  return misfit;
}

Status Session::run_on_device(const sim::RunHooks& hooks) {
  has_run_ = false;
  const remote::RunOptions options{static_cast<uint32_t>(current_), device_cores_, device_priority_, hooks.deadline};
  Status s = hooks.observe || hooks.amend ? trace_on_device(options, hooks) : device_->run(options, views_, device_results_);
  if (s && device_results_.size() != outputs_.size()) s = io_error("the device sent another number of results");
  for (size_t i = 0; s && i < outputs_.size(); ++i) {
    const Tensor& t = program().graph.tensor(program().outputs[i].tensor);
    const std::optional<Dims> dims = t.shape ? to_dims(*t.shape) : std::nullopt;
    if (device_results_[i].dtype != t.dtype || (dims && !std::ranges::equal(*dims, device_results_[i].dims)))
      s = io_error("the device sent a result of another form than output '" + t.name + "'");
  }
  if (s.code() == Code::NotFound)
    s.hint("operators that a program registers stay in its process; the device needs a plug-in for them");
  if (!s) return s.model(model_->name).stage("run");
  has_run_ = true;
  return {};
}

DType Session::natural_dtype(size_t index) const {
  const PortInfo& port = outputs_[index];
  if (port.quantized && port.source_dtype == DType::UInt8) return DType::UInt8;
  return port.quantized || is_float(port.source_dtype) || port.source_dtype == DType::Undefined ? DType::Float32
                                                                                                : port.source_dtype;
}

void Session::convert_result(size_t index, const TensorView& value, DType dtype, void* to) const {
  convert_output(program().graph.tensor(program().outputs[index].tensor), value, dtype, to, *pool_);
}

TensorData Session::output(size_t index) const {
  const std::span<const int64_t> dims = output_dims(index);
  TensorData out = TensorData::allocate(natural_dtype(index), Dims(dims.begin(), dims.end()));
  const TensorView value = output_value(index);
  if (out.dtype() != DType::UInt8 || value.dtype != DType::Int8) {
    read_output(index, out.dtype(), out.mutable_data());
    return out;
  }
  // The chip computes in int8 what the source states in uint8: the same numbers, 128 lower.
  const auto* from = value.as<int8_t>();
  auto* to = static_cast<uint8_t*>(out.mutable_data());
  for (int64_t i = 0; i < value.count(); ++i) to[i] = static_cast<uint8_t>(from[i] + 128);
  return out;
}

}  // namespace orknn::runtime
