#include "toolkit/samples.h"

#include <atomic>
#include <mutex>
#include <thread>

#include "ops/eval.h"

namespace orknn::toolkit {
namespace {

Result<std::vector<data::ModelInput>> inputs_of(const ir::Graph& graph, const std::vector<bool>& swap_red_blue) {
  std::vector<data::ModelInput> inputs;
  if (swap_red_blue.size() > 1 && swap_red_blue.size() != graph.inputs().size())
    return invalid_argument("The len of quant_img_RGB2BGR is wrong!")
        .expected(std::to_string(graph.inputs().size()) + " flags, one per input")
        .found(std::to_string(swap_red_blue.size()));
  for (ir::TensorId t : graph.inputs()) {
    const ir::Tensor& tensor = graph.tensor(t);
    const auto dims = tensor.shape ? ir::to_dims(*tensor.shape) : std::nullopt;
    if (!dims)
      return unsupported("input '" + tensor.name + "' has no fixed shape to calibrate with")
          .hint("give the input shapes with input_size_list");
    const bool swap = !swap_red_blue.empty() && swap_red_blue[swap_red_blue.size() == 1 ? 0 : inputs.size()];
    inputs.push_back({tensor.name, *dims, tensor.layout, swap});
  }
  return inputs;
}

// How graphs are computed to look at their values: nothing is said about placement.
compile::CompileOptions quiet(compile::CompileOptions options) {
  options.op_target.clear();
  options.warn = {};
  return options;
}

// Samples are computed side by side, and what one of them shows of a tensor is looked at after what the sample before showed.
class ObservationOrder {
 public:
  explicit ObservationOrder(size_t tensors) : next_(tensors) {}

  template <class Look>
  void take(ir::TensorId tensor, size_t sample, Look&& look) {
    std::atomic<size_t>& next = next_[static_cast<size_t>(tensor.index)];
    for (size_t now = next.load(); now != sample; now = next.load()) {
      if (given_up_) return;
      next.wait(now);
    }
    if (given_up_) return;
    look();
    next.store(sample + 1);
    next.notify_all();
  }
  // A sample failed: none waits for it, and no further values are observed.
  void give_up() {
    given_up_ = true;
    for (std::atomic<size_t>& next : next_) {
      next.store(SIZE_MAX);
      next.notify_all();
    }
  }

 private:
  std::vector<std::atomic<size_t>> next_;  // by tensor: the sample that is looked at next
  std::atomic<bool> given_up_{false};
};

constexpr bool kReproducible = true;  // calibration is the same on every machine

// Calls compute(session, i) for i from 0 on, in order, each of `workers` threads with a session of its own. Once it has failed or
// returned false no sample begins; of several that fail, the first is reported.
template <class Compute>
Status in_parallel(runtime::Session& session, size_t workers, size_t count, const Samples::Done& done, Compute&& compute) {
  // A thread that packs weights has the others wait for it.
  if (workers > 1) ORKNN_TRY(session.prepare(kReproducible));
  std::vector<std::unique_ptr<runtime::Session>> others;
  while (others.size() + 1 < workers) {
    ORKNN_TRY_ASSIGN(std::unique_ptr<runtime::Session> other, session.duplicate());
    others.push_back(std::move(other));
  }
  std::atomic<size_t> begun{0}, ended{0};
  std::mutex mutex;  // guards what follows
  size_t first_failure = count;
  Status status;
  const std::thread::id caller = std::this_thread::get_id();
  const auto work = [&](runtime::Session& own) {
    for (size_t i = begun++; i < count; i = begun++) {
      const Result<bool> goes_on = compute(own, i);
      if (!goes_on || !*goes_on) begun = count;
      if (!goes_on) {
        const std::lock_guard lock(mutex);
        if (i < first_failure) {
          first_failure = i;
          status = goes_on.status();
        }
        return;
      }
      ++ended;
      if (done && std::this_thread::get_id() == caller && ended < count) done(ended);
    }
  };
  if (others.empty())
    work(session);  // with all threads inside of layers
  else
    ThreadPool::shared().parallel_for(static_cast<int64_t>(workers), 1, [&](int64_t begin, int64_t) {
      work(begin == 0 ? session : *others[static_cast<size_t>(begin) - 1]);
    });
  if (done && status) done(count);
  return status;
}
}  // namespace

// Samples that were read, as long as they are few bytes: pictures take longer to decode than small networks to compute.
struct Samples::Decoded {
  explicit Decoded(size_t samples) : values(samples) {}

  std::optional<std::vector<ir::TensorData>> find(size_t number) {
    const std::lock_guard lock(mutex);
    return values[number];
  }
  void keep(size_t number, const std::vector<ir::TensorData>& decoded) {
    uint64_t bytes = 0;
    for (const ir::TensorData& v : decoded) bytes += v.bytes();
    const std::lock_guard lock(mutex);
    if (values[number] || bytes > left) return;
    left -= bytes;
    values[number] = decoded;
  }

  std::mutex mutex;
  uint64_t left = 64 << 20;
  std::vector<std::optional<std::vector<ir::TensorData>>> values;
};

Result<Samples> Samples::open(const std::string& dataset, const ir::Graph& graph, const SampleRules& rules,
                              compile::CompileOptions options) {
  ORKNN_TRY_ASSIGN(std::vector<data::ModelInput> inputs, inputs_of(graph, rules.swap_red_blue));
  ORKNN_TRY_ASSIGN(data::Dataset samples, data::Dataset::open(dataset, std::move(inputs), rules.dataset));
  return Samples(std::move(samples), quiet(std::move(options)));
}

Result<Samples> Samples::of_files(const std::vector<std::string>& files, const ir::Graph& graph, const SampleRules& rules,
                                  compile::CompileOptions options) {
  ORKNN_TRY_ASSIGN(std::vector<data::ModelInput> inputs, inputs_of(graph, rules.swap_red_blue));
  ORKNN_TRY_ASSIGN(data::Dataset samples, data::Dataset::of_files(files, std::move(inputs), rules.dataset));
  return Samples(std::move(samples), quiet(std::move(options)));
}

Samples::Samples(data::Dataset dataset, compile::CompileOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)), decoded_(std::make_shared<Decoded>(dataset_.size())) {}

Result<std::vector<ir::TensorData>> Samples::values(size_t i) const {
  if (std::optional<std::vector<ir::TensorData>> known = decoded_->find(number(i))) return std::move(*known);
  ORKNN_TRY_ASSIGN(std::vector<ir::TensorData> values, dataset_.sample(number(i)));
  decoded_->keep(number(i), values);
  return values;
}

Result<std::unique_ptr<runtime::Session>> Samples::open_session(const ir::Graph& graph) const {
  compile::CompileOptions options = options_;
  options.float_dtype = DType::Float32;
  ORKNN_TRY_ASSIGN(format::Program program, compile::compile(graph, options));
  auto model = std::make_shared<format::Model>();
  model->programs.push_back(std::move(program));
  // The session does not outlive the graph's operators.
  return runtime::Session::open(std::move(model), nullptr,
                                std::shared_ptr<const ir::OpSet>(std::shared_ptr<void>(), options.ops));
}

Status Samples::feed(runtime::Session& session, size_t i) const {
  ORKNN_TRY_ASSIGN(const std::vector<ir::TensorData> values, this->values(i));
  for (size_t k = 0; k < values.size(); ++k) {
    runtime::InputData data;
    data.dtype = values[k].dtype();
    data.data = values[k].data();
    data.bytes = values[k].bytes();
    data.layout = session.inputs()[k].layout;
    if (Status s = session.set_input(k, data); !s) return s.model(describe(i));
  }
  return {};
}

// Each has activations of its own. Operators of the user's own are called from one thread.
size_t Samples::workers(const runtime::Session& session, size_t count) const {
  if (options_.ops && options_.ops != &ops::builtin_ops()) return 1;
  constexpr uint64_t kMostExtraBytes = 128 << 20;
  const uint64_t extra = kMostExtraBytes / std::max<uint64_t>(session.memory().internal_bytes, 1);
  return std::min({static_cast<size_t>(ThreadPool::shared().threads()), count, static_cast<size_t>(extra) + 1});
}

Status Samples::run(const ir::Graph& graph, size_t count, const Observe& observe, const Done& done) const {
  count = std::min(count, size());
  ORKNN_TRY_ASSIGN(const std::unique_ptr<runtime::Session> session, open_session(graph));
  const ir::Graph& computed = session->program().graph;
  ObservationOrder order(computed.tensor_count());
  return in_parallel(*session, workers(*session, count), count, done, [&](runtime::Session& own, size_t i) -> Result<bool> {
    const auto run = [&]() -> Result<bool> {
      ORKNN_TRY(feed(own, i));
      sim::RunHooks hooks;
      hooks.reproducible = kReproducible;
      hooks.observe = [&](ir::TensorId t, const ir::TensorView& value) {
        order.take(t, i, [&] { observe(i, computed.tensor(t).name, value); });
      };
      if (Status s = own.run(hooks); !s) return s.model(describe(i));
      return true;
    };
    try {
      Result<bool> ran = run();
      if (!ran) order.give_up();
      return ran;
    } catch (...) {
      order.give_up();
      throw;
    }
  });
}

Status Samples::run_for_outputs(const ir::Graph& graph, size_t count, const SeeOutputs& see) const {
  count = std::min(count, size());
  ORKNN_TRY_ASSIGN(const std::unique_ptr<runtime::Session> session, open_session(graph));
  return in_parallel(*session, workers(*session, count), count, {}, [&](runtime::Session& own, size_t i) -> Result<bool> {
    ORKNN_TRY(feed(own, i));
    sim::RunHooks hooks;
    hooks.reproducible = kReproducible;
    if (Status s = own.run(hooks); !s) return s.model(describe(i));
    std::vector<ir::TensorView> outputs;
    for (size_t k = 0; k < own.outputs().size(); ++k) outputs.push_back(own.output_value(k));
    return see(i, outputs);
  });
}

Status Samples::run(runtime::Session& session, size_t count, const sim::RunHooks& hooks) const {
  for (size_t i = 0; i < std::min(count, size()); ++i) {
    ORKNN_TRY(feed(session, i));
    if (Status s = session.run(hooks); !s) return s.model(describe(i));
  }
  return {};
}

}  // namespace orknn::toolkit
