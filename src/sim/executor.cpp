#include "sim/executor.h"

#include <atomic>
#include <cstring>
#include <forward_list>

#include "base/files.h"
#include "base/forks.h"
#include "base/memory.h"
#include "format/verify.h"
#include "ir/index_of.h"
#include "ir/infer.h"
#include "ops/eval.h"
#include "sim/kernel.h"
#include "sim/kernels/support/blocked.h"

namespace orknn::sim {
namespace {
using namespace ir;
using format::Buffer;
using format::Program;
using format::Task;

// Where tensors without elements lie if nothing else does: kernels may hand a tensor's place to memcpy, which takes no null
// pointer.
alignas(64) std::byte no_elements[64];

Status out_of_memory(const std::string& what, uint64_t bytes) {
  return Status::error(Code::OutOfMemory, "no memory for " + what + " (" + std::to_string(bytes) + " bytes)");
}
}  // namespace

struct Executor::Plan {
  struct Step {
    const Node* node = nullptr;
    const OpDef* def = nullptr;  // nullptr = unknown op
    std::vector<DType> output_types;
    std::vector<OperandFacts> inputs, outputs;  // filled for fast kernels, in the forms that the kernel wants

    Form input_form(size_t i) const { return i < inputs.size() ? inputs[i].form : Form::Rows; }
    const Kernel* kernel = nullptr;
    CallMutex preparing;
    std::atomic<bool> prepared{false};
    std::unique_ptr<const KernelState> state;  // constant once `prepared`
  };
  const Program* program = nullptr;
  const OpSet* ops = nullptr;
  std::vector<Step> steps;
  std::vector<std::optional<Dims>> dims;  // per tensor, where known ahead
  std::vector<uint32_t> readers;          // per tensor, graph outputs included
  std::vector<Form> forms;                // per tensor, while it waits for its readers

  Status infer_and_choose();
  // The kernel of a step whose operands are known: one of feature maps in blocks where it can be, else one of rows.
  void choose(Step& step);
  // Lets the kernel of a step prepare itself, unless that is done. A failure is that of this run: the next one tries again.
  static Status prepare(Step& step, ThreadPool& pool);
};

// Compares every stated shape with the shape rules and picks kernels. A kernel that relies on a shape ahead of time only
// gets nodes whose rule confirms it; everywhere else the shape is checked when the value appears.
Status Executor::Plan::infer_and_choose() {
  const Graph& g = program->graph;
  std::vector<std::optional<std::vector<Dim>>> contents(g.tensor_count());
  for (Step& step : steps) {
    const Node& n = *step.node;
    for (TensorId t : n.outputs) step.output_types.push_back(t ? g.tensor(t).dtype : DType::Undefined);
    if (!step.def) continue;
    std::vector<TensorFacts> facts;
    bool all_static = true;
    for (TensorId t : n.inputs) {
      TensorFacts f;
      if (t) {
        const Tensor& tensor = g.tensor(t);
        f.dtype = tensor.dtype;
        f.shape = tensor.shape;
        f.constant = g.constant(t);
        f.content = contents[index_of(t)];
        all_static &= dims[index_of(t)].has_value();
      }
      facts.push_back(std::move(f));
    }
    ORKNN_TRY_ASSIGN(std::vector<TensorFacts> inferred, infer_node(n, *ops, std::move(facts)));
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      const TensorId t = n.outputs[i];
      if (!t) continue;
      const Tensor& tensor = g.tensor(t);
      const std::optional<Dims> rule = inferred[i].shape ? to_dims(*inferred[i].shape) : std::nullopt;
      const std::optional<Dims>& stated = dims[index_of(t)];
      if (inferred[i].dtype != tensor.dtype || (rule && stated && *rule != *stated))
        return invalid_model("tensor '" + tensor.name + "' does not fit the operator that computes it")
            .expected(std::string(dtype_name(inferred[i].dtype)) + (inferred[i].shape ? to_string(*inferred[i].shape) : ""))
            .found(std::string(dtype_name(tensor.dtype)) + (tensor.shape ? to_string(*tensor.shape) : ""))
            .node(n.name, n.op);
      all_static &= rule.has_value() && stated.has_value();
      contents[index_of(t)] = std::move(inferred[i].content);
    }
    if (!all_static) continue;
    const auto describe = [&](TensorId t) {
      OperandFacts o;
      if (t) {
        o.dtype = g.tensor(t).dtype;
        o.dims = *dims[index_of(t)];
        o.constant = g.constant(t);
      }
      return o;
    };
    for (TensorId t : n.inputs) step.inputs.push_back(describe(t));
    for (TensorId t : n.outputs) step.outputs.push_back(describe(t));
    bool tail_fits = true;
    for (const TailStep& tail : n.tail) {
      if (tail.operand < 0) continue;
      const auto i = static_cast<size_t>(tail.operand);
      const auto joined = broadcast(step.outputs[0].dims, step.inputs[i].dims);
      tail_fits &= joined && *joined == step.outputs[0].dims;
    }
    // Empty tensors are left to the reference kernels, which all handle them; fast ones may divide by an extent. An empty list is
    // the way to leave out a parameter.
    const auto is_empty = [](const OperandFacts& o) {
      const bool is_list = o.constant && o.dims.size() == 1;
      return o.exists() && !is_list && element_count(o.dims) == 0;
    };
    const bool any_empty = std::any_of(step.inputs.begin(), step.inputs.end(), is_empty) ||
                           std::any_of(step.outputs.begin(), step.outputs.end(), is_empty);
    if (tail_fits && !any_empty) choose(step);
  }
  return {};
}

void Executor::Plan::choose(Step& step) {
  const auto is_map = [](const OperandFacts& o) { return o.exists() && !o.constant && can_be_blocked(o.dtype, o.dims); };
  const auto try_forms = [&](bool as_they_are) {
    bool begins = true;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      OperandFacts& o = step.inputs[i];
      if (!is_map(o)) continue;
      const Form now = forms[index_of(step.node->inputs[i])];
      o.form = as_they_are ? now : Form::Blocked;
      begins &= now == Form::Rows;
    }
    for (OperandFacts& o : step.outputs)
      if (is_map(o)) o.form = Form::Blocked;
    step.kernel = find_kernel({*step.node, *step.def, step.inputs, step.outputs});
    if (step.kernel && begins && step.kernel->blocks == Blocks::Continue) step.kernel = nullptr;
    return step.kernel != nullptr;
  };
  const bool makes_maps = !step.outputs.empty() && std::ranges::all_of(step.outputs, is_map);
  if (!makes_maps || !(try_forms(true) || try_forms(false))) {
    for (OperandFacts& o : step.inputs) o.form = Form::Rows;
    for (OperandFacts& o : step.outputs) o.form = Form::Rows;
    step.kernel = find_kernel({*step.node, *step.def, step.inputs, step.outputs});
    return;
  }
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (!program->graph.is_output(step.node->outputs[i])) forms[index_of(step.node->outputs[i])] = step.outputs[i].form;
}

Status Executor::Plan::prepare(Step& step, ThreadPool& pool) {
  if (!step.kernel->prepare || step.prepared.load(std::memory_order_acquire)) return {};
  const CallLock lock(step.preparing);
  if (!lock)
    return Status::error(Code::Fail, "another thread was preparing the model when this process was forked")
        .hint("load it again in the child");
  if (step.prepared.load(std::memory_order_relaxed)) return {};
  ORKNN_TRY_ASSIGN(step.state, step.kernel->prepare({*step.node, *step.def, step.inputs, step.outputs}, pool));
  // Packed weights would count twice; what is looked at again comes back from the file.
  for (const OperandFacts& input : step.inputs)
    if (input.constant) release_mapped_pages({static_cast<const std::byte*>(input.constant->data()), input.constant->bytes()});
  step.prepared.store(true, std::memory_order_release);
  return {};
}

struct Executor::State {
  // The current value of a tensor.
  struct Value {
    DType dtype = DType::Undefined;
    Dims dims;
    void* data = nullptr;
    bool ready = false;
    TensorData owned;  // memory of its own: graph outputs, sizes known only now, blocks that were not planned
  };
  const Plan& plan;
  ThreadPool& own_pool;
  ThreadPool* pool;  // of the current run
  AlignedBytes arena, scratch;
  std::byte* activations = no_elements;  // the arena or memory of the caller's
  std::vector<Value> values;             // per tensor
  std::vector<void*> places;             // per tensor: memory of the caller's for a result; nullptr = none
  std::vector<void*> targets;            // the same per output
  std::vector<const OpDef*> replaced;    // per task: the operator that computes it instead; empty = none is replaced
  std::vector<uint32_t> left;            // readers still to come in this run
  std::vector<AlignedBytes> converted_inputs, converted_outputs;  // of the current step, in the form its kernel wants
  AlignedBytes observed;                                          // rows of a tensor in blocks
  std::vector<TensorView> input_views;
  std::vector<MutableTensorView> output_views;
  std::vector<TensorView> results;
  std::vector<AlignedBytes> kept;                     // copies of outputs that are graph inputs
  ops::WideValuesPtr wide = ops::make_wide_values();  // of reference kernels

  State(const Plan& p, ThreadPool& thread_pool)
      : plan(p),
        own_pool(thread_pool),
        pool(&thread_pool),
        values(p.program->graph.tensor_count()),
        places(values.size()),
        targets(p.program->outputs.size()),
        kept(targets.size()) {
    for (const Plan::Step& step : p.steps) {
      converted_inputs.resize(std::max(converted_inputs.size(), step.node->inputs.size()));
      converted_outputs.resize(std::max(converted_outputs.size(), step.node->outputs.size()));
    }
  }

  TensorView view(TensorId t) const {
    const Value& v = values[index_of(t)];
    return {v.dtype, v.dims, v.data};
  }
  // Memory for a computed tensor of the given type and shape, which must agree with what the program states.
  Result<MutableTensorView> bind(TensorId t, DType dtype, std::span<const int64_t> dims) {
    const Tensor& tensor = plan.program->graph.tensor(t);
    const std::optional<Dims>& stated = plan.dims[index_of(t)];
    if (dtype != tensor.dtype || (stated && !std::equal(stated->begin(), stated->end(), dims.begin(), dims.end())))
      return invalid_model("the result '" + tensor.name + "' differs from what the program states")
          .expected(std::string(dtype_name(tensor.dtype)) + (tensor.shape ? to_string(*tensor.shape) : ""))
          .found(std::string(dtype_name(dtype)) + to_string(dims));
    ORKNN_TRY(checked_element_count(dims).status());
    Value& v = values[index_of(t)];
    v.dtype = dtype;
    v.dims.assign(dims.begin(), dims.end());
    const Buffer& b = plan.program->buffers[index_of(t)];
    if (b.place == Buffer::Place::Arena) {
      v.data = activations + b.offset;
    } else if (stated && places[index_of(t)]) {
      v.data = places[index_of(t)];
    } else {
      if (!stated || !v.owned.has_value()) v.owned = TensorData::allocate(dtype, v.dims);
      v.data = v.owned.mutable_data();
    }
    v.ready = true;
    return MutableTensorView{dtype, v.dims, v.data};
  }
  // Memory for a tensor in blocks: what the plan has for it, where that suffices.
  MutableTensorView bind_blocks(TensorId t, const OperandFacts& facts) {
    Value& v = values[index_of(t)];
    v.dtype = facts.dtype;
    v.dims = facts.dims;
    const Buffer& b = plan.program->buffers[index_of(t)];
    const int64_t bytes = blocked_bytes(facts.dtype, facts.dims);
    if (b.place == Buffer::Place::Arena && b.bytes >= static_cast<uint64_t>(bytes)) {
      v.data = activations + b.offset;
    } else {
      if (!v.owned.has_value()) v.owned = TensorData::allocate(DType::UInt8, {bytes});
      v.data = v.owned.mutable_data();
    }
    v.ready = true;
    return {v.dtype, v.dims, v.data};
  }
  // The value of a tensor in rows.
  TensorView rows(TensorId t) {
    if (plan.forms[index_of(t)] == Form::Rows) return view(t);
    TensorView v = view(t);
    if (!observed.reserve(v.bytes())) throw std::bad_alloc();
    kernels::from_blocks(v.data, {v.dtype, v.dims, observed.data()}, *pool);
    v.data = observed.data();
    return v;
  }
  void report(TensorId t, const RunHooks& hooks) {
    const Value& v = values[index_of(t)];
    const bool in_blocks = plan.forms[index_of(t)] == Form::Blocked;
    if (!hooks.observe && !hooks.amend) return;
    const TensorView value = rows(t);
    if (hooks.observe) hooks.observe(t, value);
    if (!hooks.amend) return;
    hooks.amend(t, MutableTensorView{v.dtype, v.dims, in_blocks ? observed.data() : v.data});
    if (in_blocks) kernels::to_blocks(value, v.data, *pool);
  }
  // After the last reader: memory whose size was only known at run time goes back.
  void release(TensorId t) {
    Value& v = values[index_of(t)];
    v.ready = false;
    if (plan.program->buffers[index_of(t)].place == Buffer::Place::None) v.owned = {};
  }
  // The operands of a step in the forms that its kernel wants, or all in rows.
  Status gather_inputs(const Plan::Step& step, bool all_in_rows = false);
  Status run_step(size_t index);
  Status run_kernel(Plan::Step& step);
  Status run_replaced(const Plan::Step& step, const OpDef& def);
};

namespace {
// Binds a reference kernel to planned memory.
template <class State>
class PlannedContext : public RunContext {
 public:
  PlannedContext(const Node& node, const OpDef& def, const OpSet& ops, ThreadPool& pool, State& state)
      : RunContext(node, def, ops, pool), state_(state) {}
  size_t input_count() const override { return node().inputs.size(); }
  bool has_input(size_t i) const override { return i < node().inputs.size() && node().inputs[i]; }
  TensorView input(size_t i) const override { return state_.input_views[i]; }
  size_t output_count() const override { return node().outputs.size(); }
  bool has_output(size_t i) const override { return i < node().outputs.size() && node().outputs[i]; }
  Result<MutableTensorView> output(size_t i, DType dtype, std::span<const int64_t> dims) override {
    ORKNN_ASSERT(i < node().outputs.size(), "a kernel only asks for outputs the node has");
    if (node().outputs[i]) return state_.bind(node().outputs[i], dtype, dims);
    ORKNN_TRY(checked_element_count(dims).status());
    TensorData& unread = unread_.emplace_front(TensorData::allocate(dtype, Dims(dims.begin(), dims.end())));
    return MutableTensorView{dtype, unread.dims(), unread.mutable_data()};
  }
  Status set_output(size_t i, const TensorData& value) override {
    ORKNN_TRY_ASSIGN(const MutableTensorView out, output(i, value.dtype(), value.dims()));
    if (out.bytes()) std::memcpy(out.data, value.data(), out.bytes());
    return {};
  }

 private:
  State& state_;
  std::forward_list<TensorData> unread_;  // results that the kernel computes and that are not read
};

class PlannedKernelContext final : public KernelContext {
 public:
  PlannedKernelContext(const Node& n, const OpDef& d, std::span<const TensorView> in, std::span<const MutableTensorView> out,
                       ThreadPool& thread_pool, AlignedBytes& bytes)
      : KernelContext(n, d, in, out, thread_pool), bytes_(bytes) {}
  std::byte* scratch(size_t bytes) override { return bytes_.reserve(std::max<size_t>(bytes, 1)) ? bytes_.data() : nullptr; }

 private:
  AlignedBytes& bytes_;
};
}  // namespace

Status Executor::State::gather_inputs(const Plan::Step& step, bool all_in_rows) {
  input_views.clear();
  for (size_t i = 0; i < step.node->inputs.size(); ++i) {
    const TensorId t = step.node->inputs[i];
    if (!t) {
      input_views.push_back({});
      continue;
    }
    TensorView v = view(t);
    const Form form = plan.forms[index_of(t)];
    if (form != (all_in_rows ? Form::Rows : step.input_form(i))) {
      const auto bytes = static_cast<size_t>(std::max<int64_t>(blocked_bytes(v.dtype, v.dims), 1));
      if (!converted_inputs[i].reserve(bytes)) return out_of_memory("an operand in another form", bytes);
      if (form == Form::Rows)
        kernels::to_blocks(v, converted_inputs[i].data(), *pool);
      else
        kernels::from_blocks(v.data, {v.dtype, v.dims, converted_inputs[i].data()}, *pool);
      v.data = converted_inputs[i].data();
    }
    input_views.push_back(v);
  }
  return {};
}

Status Executor::State::run_step(size_t index) {
  Plan::Step& step = const_cast<Plan&>(plan).steps[index];  // only its preparation changes, which is guarded
  if (const OpDef* other = replaced.empty() ? nullptr : replaced[index]) return run_replaced(step, *other);
  if (!step.def) return unsupported("operator is not known to the runtime");
  ORKNN_TRY(gather_inputs(step));
  if (step.kernel) return run_kernel(step);
  PlannedContext context(*step.node, *step.def, *plan.ops, *pool, *this);
  return ops::run_node(*step.node, *step.def, context, step.output_types, wide.get());
}

// An operator that knows rows only, in the place of one whose results lie in blocks.
Status Executor::State::run_replaced(const Plan::Step& step, const OpDef& def) {
  const Node& n = *step.node;
  ORKNN_TRY(gather_inputs(step, true));
  PlannedContext context(n, def, *plan.ops, *pool, *this);
  ORKNN_TRY(ops::run_node(n, def, context, step.output_types, wide.get()));
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (!n.outputs[i] || plan.forms[index_of(n.outputs[i])] == Form::Rows) continue;
    const TensorView rows = view(n.outputs[i]);
    if (!converted_outputs[i].reserve(rows.bytes())) return out_of_memory("a result in another form", rows.bytes());
    std::memcpy(converted_outputs[i].data(), rows.data, rows.bytes());
    const MutableTensorView blocks = bind_blocks(n.outputs[i], step.outputs[i]);
    kernels::to_blocks({rows.dtype, step.outputs[i].dims, converted_outputs[i].data()}, blocks.data, *pool);
  }
  return {};
}

Status Executor::State::run_kernel(Plan::Step& step) {
  const Node& n = *step.node;
  ORKNN_TRY(Plan::prepare(step, *pool));
  output_views.clear();
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    const OperandFacts& facts = step.outputs[i];
    if (!n.outputs[i]) {
      output_views.push_back({});
      continue;
    }
    if (facts.form == Form::Blocked && plan.forms[index_of(n.outputs[i])] == Form::Blocked) {
      output_views.push_back(bind_blocks(n.outputs[i], facts));
      continue;
    }
    ORKNN_TRY_ASSIGN(MutableTensorView out, bind(n.outputs[i], facts.dtype, facts.dims));
    if (facts.form == Form::Blocked) {
      const auto bytes = static_cast<size_t>(blocked_bytes(facts.dtype, facts.dims));
      if (!converted_outputs[i].reserve(bytes)) return out_of_memory("a result in another form", bytes);
      out.data = converted_outputs[i].data();
    }
    output_views.push_back(out);
  }
  PlannedKernelContext context(n, *step.def, input_views, output_views, *pool, scratch);
  ORKNN_TRY(step.kernel->run(context, step.state.get()));
  for (size_t i = 0; i < n.outputs.size(); ++i)
    if (n.outputs[i] && step.outputs[i].form != plan.forms[index_of(n.outputs[i])]) {
      const Value& v = values[index_of(n.outputs[i])];
      kernels::from_blocks(output_views[i].data, {v.dtype, v.dims, v.data}, *pool);
    }
  return {};
}

Executor::Executor() = default;
Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::create(const Program& program, const OpSet& ops, ThreadPool& pool) {
  ORKNN_TRY(format::verify(program));
  auto plan = std::make_shared<Plan>();
  plan->program = &program;
  plan->ops = &ops;
  const Graph& g = program.graph;
  for (size_t i = 0; i < g.tensor_count(); ++i) {
    const Tensor& tensor = g.tensor(TensorId{static_cast<int32_t>(i)});
    plan->dims.push_back(tensor.shape ? to_dims(*tensor.shape) : std::nullopt);
    plan->readers.push_back(0);
    plan->forms.push_back(Form::Rows);
  }
  plan->steps = std::vector<Plan::Step>(program.tasks.size());
  for (size_t i = 0; i < program.tasks.size(); ++i) {
    const Node& n = g.node(program.tasks[i].node);
    plan->steps[i].node = &n;
    plan->steps[i].def = ops.find(n.op);
    for (TensorId t : n.inputs)
      if (t) ++plan->readers[index_of(t)];
  }
  for (const format::Port& port : program.outputs) ++plan->readers[index_of(port.tensor)];
  ORKNN_TRY(plan->infer_and_choose());
  return from_plan(std::move(plan), pool);
}

Result<std::unique_ptr<Executor>> Executor::from_plan(std::shared_ptr<Plan> plan, ThreadPool& pool) {
  std::unique_ptr<Executor> executor(new Executor());
  executor->plan_ = std::move(plan);
  executor->state_ = std::make_unique<State>(*executor->plan_, pool);
  State& s = *executor->state_;
  const Program& program = *s.plan.program;
  if (program.arena_bytes && !s.arena.reserve(program.arena_bytes)) return out_of_memory("the activations", program.arena_bytes);
  if (program.arena_bytes) s.activations = s.arena.data();
  for (size_t i = 0; i < s.values.size(); ++i) {
    const TensorData* constant = program.graph.constant(TensorId{static_cast<int32_t>(i)});
    if (!constant) continue;
    // Kernels only ever read inputs, so the constant's bytes are never written through this pointer.
    s.values[i] = {constant->dtype(), constant->dims(), const_cast<void*>(constant->data()), true, {}};
  }
  return executor;
}

Result<std::unique_ptr<Executor>> Executor::duplicate(ThreadPool& pool) const { return from_plan(plan_, pool); }

void Executor::use_arena(std::byte* bytes) {
  state_->arena.clear();
  state_->activations = bytes;
}

void Executor::place_output(size_t i, void* to) {
  State& s = *state_;
  const TensorId t = s.plan.program->outputs[i].tensor;
  s.targets[i] = to;
  s.places[index_of(t)] = nullptr;
  // A tensor that is several outputs is computed into one of their places and copied to the others.
  if (s.plan.program->buffers[index_of(t)].place == Buffer::Place::External && s.plan.program->graph.producer(t))
    for (size_t k = 0; k < s.targets.size(); ++k)
      if (s.plan.program->outputs[k].tensor == t && s.targets[k]) s.places[index_of(t)] = s.targets[k];
}

void Executor::replace_operator(size_t task, const OpDef* def) {
  std::vector<const OpDef*>& replaced = state_->replaced;
  if (replaced.empty() && !def) return;
  if (replaced.empty()) replaced.resize(plan_->steps.size());
  replaced[task] = def;
}

Status Executor::prepare(bool reproducible, ThreadPool& pool) {
  std::vector<Plan::Step>& steps = plan_->steps;
  std::vector<Status> results(steps.size());
  try {
    pool.parallel_for(static_cast<int64_t>(steps.size()), 1, [&](int64_t begin, int64_t end) {
      const kernels::ReproducibleFloats floats(reproducible);
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
        if (steps[i].kernel && !is_replaced(i)) results[i] = Plan::prepare(steps[i], pool);
    });
  } catch (const std::bad_alloc&) {
    return Status::error(Code::OutOfMemory, "memory ran out while weights were packed");
  } catch (const std::exception& e) {
    return internal_error(std::string("a kernel failed: ") + e.what());
  }
  for (size_t i = 0; i < steps.size(); ++i)
    if (!results[i]) return std::move(results[i]).node(steps[i].node->name, steps[i].node->op);
  return {};
}

Status Executor::run(std::span<const TensorView> inputs, const RunHooks& hooks) {
  const kernels::ReproducibleFloats floats(hooks.reproducible);
  State& s = *state_;
  const Program& program = *plan_->program;
  const Graph& g = program.graph;
  s.results.clear();
  s.pool = hooks.pool ? hooks.pool : &s.own_pool;
  if (inputs.size() != program.inputs.size())
    return invalid_argument("wrong number of inputs")
        .expected(std::to_string(program.inputs.size()))
        .found(std::to_string(inputs.size()));
  try {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorId t = program.inputs[i].tensor;
      const Tensor& tensor = g.tensor(t);
      const std::optional<Dims>& stated = plan_->dims[index_of(t)];
      if (inputs[i].dtype != tensor.dtype ||
          (stated && !std::equal(stated->begin(), stated->end(), inputs[i].dims.begin(), inputs[i].dims.end())))
        return invalid_argument("input '" + tensor.name + "' does not fit")
            .expected(std::string(dtype_name(tensor.dtype)) + (tensor.shape ? to_string(*tensor.shape) : ""))
            .found(std::string(dtype_name(inputs[i].dtype)) + to_string(inputs[i].dims));
      State::Value& v = s.values[index_of(t)];
      v.dtype = inputs[i].dtype;
      v.dims.assign(inputs[i].dims.begin(), inputs[i].dims.end());
      v.data = inputs[i].data ? const_cast<void*>(inputs[i].data) : no_elements;
      v.ready = true;
      if (hooks.observe) hooks.observe(t, s.view(t));
    }
    s.left = plan_->readers;
    for (size_t i = 0; i < plan_->steps.size(); ++i) {
      const Node& n = *plan_->steps[i].node;
      const auto begin = std::chrono::steady_clock::now();
      if (hooks.deadline && begin > *hooks.deadline)
        return Status::error(Code::Fail, "the time limit of the run has passed").node(n.name, n.op);
      if (hooks.stop && hooks.stop()) return Status::error(Code::Fail, "the run was stopped").node(n.name, n.op);
      if (Status status = s.run_step(i); !status) return status.node(n.name, n.op);
      if (hooks.timing) hooks.timing(i, std::chrono::steady_clock::now() - begin);
      for (TensorId t : n.outputs) {
        if (!t) continue;
        if (!s.values[index_of(t)].ready)
          return internal_error("the kernel left out '" + g.tensor(t).name + "'").node(n.name, n.op);
        s.report(t, hooks);
      }
      for (TensorId t : n.inputs)
        if (t && --s.left[index_of(t)] == 0 && g.producer(t)) s.release(t);
      for (TensorId t : n.outputs)
        if (t && s.left[index_of(t)] == 0) s.release(t);
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const format::Port& port = program.outputs[i];
      TensorView v = s.view(port.tensor);
      if (s.targets[i]) {
        if (v.data != s.targets[i]) std::memcpy(s.targets[i], v.data, v.bytes());
        v.data = s.targets[i];
      } else if (!g.producer(port.tensor) && !g.is_constant(port.tensor)) {
        if (!s.kept[i].reserve(std::max<size_t>(v.bytes(), 1))) throw std::bad_alloc();
        std::memcpy(s.kept[i].data(), v.data, v.bytes());
        v.data = s.kept[i].data();
      }
      s.results.push_back(v);
    }
  } catch (const std::bad_alloc&) {
    s.results.clear();
    return Status::error(Code::OutOfMemory, "memory ran out while the model was running");
  } catch (const std::exception& e) {
    s.results.clear();
    return internal_error(std::string("a kernel failed: ") + e.what());
  }
  return {};
}

TensorView Executor::output(size_t i) const { return i < state_->results.size() ? state_->results[i] : TensorView{}; }

bool Executor::is_replaced(size_t task) const { return !state_->replaced.empty() && state_->replaced[task]; }

bool Executor::only_converts_input(size_t i) const {
  const TensorId t = plan_->program->inputs[i].tensor;
  if (std::ranges::any_of(plan_->program->outputs, [&](const format::Port& port) { return port.tensor == t; })) return false;
  for (size_t task = 0; task < plan_->steps.size(); ++task) {
    const Plan::Step& step = plan_->steps[task];
    for (size_t k = 0; k < step.node->inputs.size(); ++k)
      if (step.node->inputs[k] == t && (is_replaced(task) || step.input_form(k) == form(t))) return false;
  }
  return true;
}

bool Executor::only_converts_output(size_t i) const {
  const TensorId t = plan_->program->outputs[i].tensor;
  if (plan_->readers[index_of(t)] != 1) return false;  // the result itself
  for (size_t task = 0; task < plan_->steps.size(); ++task) {
    const Plan::Step& step = plan_->steps[task];
    for (size_t k = 0; k < step.outputs.size(); ++k)
      if (step.node->outputs[k] == t) return !is_replaced(task) && step.outputs[k].form != form(t);
  }
  return false;
}

std::string_view Executor::kernel_name(size_t task) const {
  const Kernel* kernel = plan_->steps[task].kernel;
  return kernel ? kernel->name : "reference";
}

Form Executor::form(TensorId tensor) const { return plan_->forms[index_of(tensor)]; }

std::vector<TensorId> Executor::conversions(size_t task) const {
  const Plan::Step& step = plan_->steps[task];
  std::vector<TensorId> found;
  for (size_t i = 0; i < step.node->inputs.size(); ++i)
    if (const TensorId t = step.node->inputs[i]; t && form(t) != step.input_form(i)) found.push_back(t);
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (const TensorId t = step.node->outputs[i]; t && form(t) != step.outputs[i].form) found.push_back(t);
  return found;
}

const Program& Executor::program() const { return *plan_->program; }

}  // namespace orknn::sim
