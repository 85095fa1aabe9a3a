#include "runtime/custom_op_callbacks.h"

#include <cstring>
#include <optional>

#include "base/files.h"
#include "ir/custom_op.h"
#include "ops/custom_ops.h"
#include "runtime/convert.h"
#include "runtime/custom_op_attributes.h"
#include "runtime/custom_op_opencl.h"
#include "runtime/memory.h"
#include "runtime/tensor_attr.h"

namespace orknn::runtime {
namespace {
using namespace ir;

template <size_t N>
std::string text_of(const char (&field)[N]) {
  return std::string(field, strnlen(field, N));
}

bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }

// How callbacks see elements of a tensor: floats and quantized values as float32, and on a GPU everything.
DType shown_type(const Tensor& tensor, bool on_gpu) {
  const DType stated = tensor.dtype;
  if (on_gpu || is_float(stated) || is_quantized(tensor)) return DType::Float32;
  switch (stated) {
    case DType::UInt64: return DType::Int64;
    case DType::UInt4: return DType::UInt8;
    case DType::Int4: return DType::Int8;
    default: return stated;
  }
}

// Everything but the memory. Dense, in the order of the source model.
void describe(const Tensor& tensor, std::span<const int64_t> dims, DType shown, uint32_t index, rknn_custom_op_tensor& to) {
  to = {};
  rknn_tensor_attr& attr = to.attr;
  attr.index = index;
  std::memcpy(attr.name, tensor.name.data(), std::min<size_t>(tensor.name.size(), RKNN_MAX_NAME_LEN - 1));
  attr.n_dims = static_cast<uint32_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) attr.dims[i] = saturate(static_cast<uint64_t>(dims[i]));
  const auto count = static_cast<uint64_t>(element_count(dims));
  attr.n_elems = saturate(count);
  attr.size = attr.size_with_stride = saturate(count * dtype_bytes(shown));
  attr.fmt = dims.size() == 4 ? RKNN_TENSOR_NCHW : RKNN_TENSOR_UNDEFINED;
  attr.type = shown == DType::Float32 ? RKNN_TENSOR_FLOAT32 : public_type(shown);
  attr.qnt_type = RKNN_TENSOR_QNT_NONE;
  attr.scale = 1.0f;
  to.mem.fd = -1;
  to.mem.size = attr.size;
}

// What callbacks see of one tensor: memory with a descriptor, which other units can import.
class Shown {
 public:
  // At least `bytes`; contents, address and descriptor change when it has to grow.
  Status reserve(size_t bytes) {
    if (block_ && block_->bytes() >= bytes) return {};
    constant_ = nullptr;
    block_ = SharedBlock::allocate(std::max<size_t>(bytes, 1));
    if (block_) return {};
    return Status::error(Code::OutOfMemory, "no memory for a custom operator (" + std::to_string(bytes) + " bytes)");
  }
  // The value as type `shown`. Constants are converted once.
  Status fill(const Tensor& tensor, const TensorView& value, DType shown, ThreadPool& pool) {
    const bool is_constant = tensor.is_constant() && tensor.constant.data() == value.data;
    if (is_constant && constant_ == value.data) return {};
    ORKNN_TRY(reserve(static_cast<size_t>(value.count()) * dtype_bytes(shown)));
    convert_output(tensor, value, shown, block_->data(), pool);
    constant_ = is_constant ? value.data : nullptr;
    return {};
  }
  void describe(rknn_tensor_mem& mem) const {
    mem.virt_addr = block_->data();
    mem.phys_addr = block_->bus_address();
    mem.fd = block_->fd();
    mem.flags = RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE;
  }
  std::byte* data() const { return block_->data(); }
  void sync(uint32_t modes) const {
    if (block_) block_->sync(modes);
  }

 private:
  std::shared_ptr<SharedBlock> block_;
  const void* constant_ = nullptr;  // whose value it holds
};

Status check_rank(const Tensor& tensor, std::span<const int64_t> dims) {
  if (dims.size() <= RKNN_MAX_DIMS) return {};
  return unsupported("tensor '" + tensor.name + "' has too many axes for a custom operator")
      .expected("at most " + std::to_string(RKNN_MAX_DIMS))
      .found(std::to_string(dims.size()));
}

// A callback that throws has failed; nothing leaves the C API.
template <class Call>
int guarded(Call call) {
  try {
    return call();
  } catch (...) {
    return RKNN_ERR_FAIL;
  }
}

// One node: what its callbacks get, kept between calls.
struct NodeState {
  explicit NodeState(const CustomNode& n)
      : attributes(*n.node),
        inputs(n.node->own_input_count()),
        outputs(n.node->outputs.size()),
        memory(inputs.size() + outputs.size()) {
    context.internal_ctx =
        static_cast<rknn_custom_op_interal_context>(reinterpret_cast<uintptr_t>(static_cast<OpHandle*>(&attributes)));
  }

  rknn_custom_op_context context{};
  NodeAttributes attributes;
  bool initialized = false;
  bool built_in = false;  // init asked for the built-in operator
  std::vector<rknn_custom_op_tensor> inputs, outputs;
  std::vector<Shown> memory;  // inputs, then outputs
};

class CallbackOperator final : public CustomOperator {
 public:
  explicit CallbackOperator(const rknn_custom_op& record) : record_(record), type_(text_of(record.op_type)) {}
  ~CallbackOperator() override;

  // Says why in `problem`.
  int set_up(const CustomNodes& nodes, std::string& problem);
  Status run(const CustomNode& node, RunContext& context) override;
  bool leaves_to_built_in(const CustomNode& node) const override {
    return node.number < states_.size() && states_[node.number]->built_in;
  }
  Result<std::unique_ptr<CustomOperator>> duplicate(const CustomNodes& nodes) const override;

 private:
  bool on_gpu() const { return record_.target == RKNN_TARGET_TYPE_GPU; }
  int check(std::string& problem) const;
  int load_source(std::string& problem);
  int init_node(const CustomNode& node, NodeState& state, std::string& problem);
  Status describe_stated(const CustomNode& node, NodeState& state) const;
  Status bind_inputs(const CustomNode& node, NodeState& state, RunContext& context) const;
  Status call(NodeState& state) const;

  rknn_custom_op record_;
  std::string type_, source_;
  std::unique_ptr<OpenClProgram> program_;
  std::vector<std::unique_ptr<NodeState>> states_;  // by CustomNode::number
};

CallbackOperator::~CallbackOperator() {
  if (!record_.destroy) return;
  for (const std::unique_ptr<NodeState>& state : states_)
    if (state->initialized) guarded([&] { return record_.destroy(&state->context); });
}

int CallbackOperator::check(std::string& problem) const {
  const auto refuse = [&](std::string text) {
    problem = std::move(text);
    return RKNN_ERR_PARAM_INVALID;
  };
  if (type_.empty()) return refuse("op_type is empty");
  const std::string of_op = " of '" + type_ + "'";
  if (!record_.compute) return refuse("compute" + of_op + " is NULL");
  if (record_.compute_native) return refuse("compute_native" + of_op + " must be NULL");
  if (record_.target != RKNN_TARGET_TYPE_CPU && record_.target != RKNN_TARGET_TYPE_GPU)
    return refuse("target" + of_op + " is neither RKNN_TARGET_TYPE_CPU nor RKNN_TARGET_TYPE_GPU");
  if (!on_gpu()) return RKNN_SUCC;
  if (text_of(record_.cl_kernel_name).empty()) return refuse("cl_kernel_name" + of_op + " is empty");
  if (!record_.cl_kernel_source) return refuse("cl_kernel_source" + of_op + " is NULL");
  return RKNN_SUCC;
}

// The record's own copy of the text; from then on its size is known.
int CallbackOperator::load_source(std::string& problem) {
  if (record_.cl_source_size > 0) {
    source_.assign(record_.cl_kernel_source, record_.cl_source_size);
  } else {
    const auto file = MappedFile::open(record_.cl_kernel_source);
    if (!file) {
      problem = "the kernel source of '" + type_ + "' cannot be read: " + file.status().to_string();
      return RKNN_ERR_PARAM_INVALID;
    }
    const auto bytes = (*file)->bytes();
    source_.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  record_.cl_kernel_source = source_.data();
  record_.cl_source_size = source_.size();
  if (!source_.empty()) return RKNN_SUCC;
  problem = "the kernel source of '" + type_ + "' is empty";
  return RKNN_ERR_PARAM_INVALID;
}

int CallbackOperator::set_up(const CustomNodes& nodes, std::string& problem) {
  if (const int code = check(problem); code != RKNN_SUCC) return code;
  if (on_gpu()) {
    if (const int code = load_source(problem); code != RKNN_SUCC) return code;
    if (std::string why; !OpenClProgram::is_available(why)) {
      problem = "the GPU operator '" + type_ + "' needs OpenCL: " + why;
      return RKNN_ERR_DEVICE_UNAVAILABLE;
    }
    auto program = OpenClProgram::build(source_, text_of(record_.cl_build_options), text_of(record_.cl_kernel_name));
    if (!program) {
      problem = "'" + type_ + "': " + program.status().to_string();
      return RKNN_ERR_FAIL;
    }
    program_ = std::move(*program);
  }
  for (const CustomNode* node : nodes.of_type(type_)) {
    NodeState& state = *states_.emplace_back(std::make_unique<NodeState>(*node));
    if (const int code = init_node(*node, state, problem); code != RKNN_SUCC) return code;
  }
  return RKNN_SUCC;
}

int CallbackOperator::init_node(const CustomNode& node, NodeState& state, std::string& problem) {
  state.context.target = record_.target;
  const auto refuse = [&](const std::string& text) {
    problem = "'" + type_ + "', node '" + node.node->name + "': " + text;
    return RKNN_ERR_FAIL;
  };
  if (program_) {
    auto kernel = program_->make_kernel();
    if (!kernel) return refuse(kernel.status().to_string());
    state.context.gpu_ctx = *kernel;
  }
  if (Status s = describe_stated(node, state); !s) return refuse(s.to_string());
  if (record_.init) {
    const int code = guarded([&] {
      return record_.init(&state.context, state.inputs.data(), static_cast<uint32_t>(state.inputs.size()), state.outputs.data(),
                          static_cast<uint32_t>(state.outputs.size()));
    });
    state.built_in = code == RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE;
    if (state.built_in && !node.is_built_in && !ops::builtin_of(node.node->op))
      return refuse("init asks for the built-in operator, but there is none of this name");
    if (code < 0 && !state.built_in) return refuse("init returned " + std::to_string(code));
  }
  state.initialized = !state.built_in;
  return RKNN_SUCC;
}

// Tensors as the program states them; extents that are known only at run time are 0. Only constants have their data yet.
Status CallbackOperator::describe_stated(const CustomNode& node, NodeState& state) const {
  const auto describe_one = [&](TensorId t, size_t index, rknn_custom_op_tensor& to, Shown& memory) -> Status {
    if (!t) return {};
    const Tensor& tensor = node.graph->tensor(t);
    Dims dims;
    if (tensor.shape)
      for (const Dim& d : *tensor.shape) dims.push_back(d.is_known() ? d.value() : 0);
    ORKNN_TRY(check_rank(tensor, dims));
    const DType shown = shown_type(tensor, on_gpu());
    describe(tensor, dims, shown, static_cast<uint32_t>(index), to);
    if (!tensor.is_constant()) return {};
    ORKNN_TRY(memory.fill(tensor, tensor.constant.view(), shown, ThreadPool::shared()));
    memory.describe(to.mem);
    return {};
  };
  for (size_t i = 0; i < state.inputs.size(); ++i)
    ORKNN_TRY(describe_one(node.node->inputs[i], i, state.inputs[i], state.memory[i]));
  for (size_t i = 0; i < state.outputs.size(); ++i)
    ORKNN_TRY(describe_one(node.node->outputs[i], i, state.outputs[i], state.memory[state.inputs.size() + i]));
  return {};
}

Status CallbackOperator::bind_inputs(const CustomNode& node, NodeState& state, RunContext& context) const {
  for (size_t i = 0; i < state.inputs.size(); ++i) {
    if (!context.has_input(i)) continue;
    const Tensor& tensor = node.graph->tensor(node.node->inputs[i]);
    const DType shown = shown_type(tensor, on_gpu());
    const TensorView value = context.input(i);
    ORKNN_TRY(check_rank(tensor, value.dims));
    ORKNN_TRY(state.memory[i].fill(tensor, value, shown, context.pool));
    describe(tensor, value.dims, shown, static_cast<uint32_t>(i), state.inputs[i]);
    state.memory[i].describe(state.inputs[i].mem);
  }
  return {};
}

Status CallbackOperator::call(NodeState& state) const {
  const auto step = [&](const char* name, decltype(record_.compute) function) -> Status {
    if (!function) return {};
    const int code = guarded([&] {
      return function(&state.context, state.inputs.data(), static_cast<uint32_t>(state.inputs.size()), state.outputs.data(),
                      static_cast<uint32_t>(state.outputs.size()));
    });
    if (code >= 0) return {};
    return Status::error(Code::Fail,
                         std::string(name) + " of the custom operator '" + type_ + "' returned " + std::to_string(code));
  };
  ORKNN_TRY(step("prepare", record_.prepare));
  return step("compute", record_.compute);
}

Status CallbackOperator::run(const CustomNode& node, RunContext& context) {
  if (node.number >= states_.size()) return invalid_model("the programs of the model have different numbers of '" + type_ + "'");
  NodeState& state = *states_[node.number];
  if (state.built_in) return ops::run_as_builtin(context);
  ORKNN_TRY(bind_inputs(node, state, context));

  struct Result {
    const Tensor& tensor;
    MutableTensorView to;
    TensorView shown;
  };
  std::vector<Result> results;
  results.reserve(state.outputs.size());
  for (size_t i = 0; i < state.outputs.size(); ++i) {
    const TensorId t = node.node->outputs[i];
    if (!t) continue;
    const Tensor& tensor = node.graph->tensor(t);
    const std::optional<Dims> dims = tensor.shape ? to_dims(*tensor.shape) : std::nullopt;
    if (!dims)
      return unsupported("the shape of '" + tensor.name + "' is known only when it is computed")
          .hint("build the model with fixed input shapes, callbacks of the C API need them");
    ORKNN_TRY(check_rank(tensor, *dims));
    ORKNN_TRY_ASSIGN(const MutableTensorView to, context.output(i, is_half(tensor.dtype) ? DType::Float32 : tensor.dtype, *dims));
    const DType shown = shown_type(tensor, on_gpu());
    Shown& memory = state.memory[state.inputs.size() + i];
    ORKNN_TRY(memory.reserve(static_cast<size_t>(to.count()) * dtype_bytes(shown)));
    describe(tensor, to.dims, shown, static_cast<uint32_t>(i), state.outputs[i]);
    memory.describe(state.outputs[i].mem);
    results.push_back({tensor, to, {shown, to.dims, memory.data()}});
  }
  for (const Shown& memory : state.memory) memory.sync(RKNN_MEMORY_SYNC_TO_DEVICE);
  ORKNN_TRY(call(state));
  for (const Shown& memory : state.memory) memory.sync(RKNN_MEMORY_SYNC_FROM_DEVICE);
  for (const Result& r : results)
    if (is_quantized(r.tensor))
      quantize_values(r.tensor, r.shown.values<float>(), r.to.data);
    else
      convert_elements(r.shown, r.to);
  return {};
}

Result<std::unique_ptr<CustomOperator>> CallbackOperator::duplicate(const CustomNodes& nodes) const {
  Registration second = register_callbacks(record_, nodes);
  if (!second.op) return Status::error(Code::Fail, second.problem);
  return std::move(second.op);
}
}  // namespace

Registration register_callbacks(const rknn_custom_op& record, const CustomNodes& nodes) {
  Registration result;
  auto op = std::make_unique<CallbackOperator>(record);
  result.code = op->set_up(nodes, result.problem);
  if (result.code == RKNN_SUCC) result.op = std::move(op);
  return result;
}

}  // namespace orknn::runtime
