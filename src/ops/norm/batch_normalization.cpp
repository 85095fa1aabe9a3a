// BatchNormalization with given statistics, or with those of the batch (training_mode) and updated running ones.
#include <cmath>

#include "ops/support/floating.h"
#include "ops/support/moments.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr const char* kParameterNames[] = {"", "scale", "B", "mean", "var"};

Status infer(InferContext& c) {
  for (size_t i = 0; i < 5; ++i) ORKNN_TRY(require_float(c, i));
  if (c.shape(0) && c.shape(0)->empty())
    return shape_mismatch("input 0 has the wrong rank").expected("1 or more").found("a scalar");
  Dim channels = c.shape(0) ? (c.shape(0)->size() > 1 ? (*c.shape(0))[1] : Dim(1)) : Dim();
  for (size_t i = 1; i < 5; ++i) {
    ORKNN_TRY(require_rank(c, i, 1));
    if (!c.shape(i)) continue;
    const Dim& extent = c.shape(i)->front();
    if (channels.is_known() && extent.is_known() && channels.value() != extent.value())
      return shape_mismatch(std::string(kParameterNames[i]) + " has the wrong shape")
          .expected("[" + channels.to_string() + "]")
          .found(to_string(*c.shape(i)));
    if (!channels.is_known()) channels = extent;
  }
  c.set_output(0, c.dtype(0), c.input(0).shape);
  if (c.output_count() > 1 && c.get_int("training_mode") == 0) {
    for (size_t i = 1; i < c.output_count(); ++i)
      if (c.node().outputs[i])
        return invalid_model("running statistics are outputs of training_mode only")
            .expected("1 output")
            .found(std::to_string(c.output_count()));
  }
  c.set_output(1, c.dtype(3), Shape{channels});
  c.set_output(2, c.dtype(4), Shape{channels});
  return {};
}

// Mean and variance of each channel of [batch, channels, inner].
template <class T>
void batch_statistics(const T* x, int64_t batch, int64_t channels, int64_t inner, std::vector<double>& mean,
                      std::vector<double>& variance) {
  const double count = static_cast<double>(batch * inner);
  for (int64_t ch = 0; ch < channels; ++ch) {
    const auto total = [&](auto&& f) {
      double sum = 0;
      for (int64_t n = 0; n < batch; ++n)
        for (int64_t i = 0; i < inner; ++i) sum += f(static_cast<double>(x[(n * channels + ch) * inner + i]));
      return sum / count;
    };
    const double m = total([](double v) { return v; });
    mean[static_cast<size_t>(ch)] = m;
    variance[static_cast<size_t>(ch)] = total([m](double v) { return (v - m) * (v - m); });
  }
}

Status write_running(RunContext& c, size_t output, const TensorView& old, const std::vector<double>& batch, double momentum) {
  if (!c.has_output(output)) return {};
  ORKNN_TRY_ASSIGN(const MutableTensorView out, c.output(output, old.dtype, old.dims));
  return run_as_float(old.dtype, [&]<class T>(TypeTag<T>) {
    for (size_t i = 0; i < batch.size(); ++i)
      out.as<T>()[i] = static_cast<T>(static_cast<double>(old.as<T>()[i]) * momentum + batch[i] * (1 - momentum));
    return Status();
  });
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const int64_t batch = x.dims[0], channels = x.rank() > 1 ? x.dims[1] : 1,
                inner = x.rank() > 2 ? element_count(x.dims.subspan(2)) : 1;
  std::vector<double> parameters[5];
  for (size_t i = 1; i < 5; ++i) {
    ORKNN_TRY_ASSIGN(parameters[i], channel_values(c.input(i), channels, kParameterNames[i]));
  }
  const std::vector<double>&scale = parameters[1], &bias = parameters[2];
  std::vector<double>&mean = parameters[3], &variance = parameters[4];
  const double epsilon = c.get_float("epsilon");
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  ORKNN_TRY(run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    if (c.get_int("training_mode") != 0) batch_statistics(x.as<T>(), batch, channels, inner, mean, variance);
    c.pool.parallel_for(batch * channels, 8, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const auto ch = static_cast<size_t>(plane % channels);
        const double factor = scale[ch] / std::sqrt(variance[ch] + epsilon), offset = bias[ch] - mean[ch] * factor;
        const T* from = x.as<T>() + plane * inner;
        T* to = y.as<T>() + plane * inner;
        for (int64_t i = 0; i < inner; ++i) to[i] = static_cast<T>(static_cast<double>(from[i]) * factor + offset);
      }
    });
    return Status();
  }));
  ORKNN_TRY(write_running(c, 1, c.input(3), mean, c.get_float("momentum")));
  return write_running(c, 2, c.input(4), variance, c.get_float("momentum"));
}
}  // namespace

std::span<const OpDef> batch_normalization() {
  static const OpDef def{.name = "BatchNormalization",
                         .summary = "per-channel normalization by given or batch statistics",
                         .inputs = {5, 5},
                         .outputs = {1, 3},
                         .attributes = {attr_float("epsilon", 1e-5), attr_float("momentum", 0.9), attr_int("training_mode", 0)},
                         .infer = infer,
                         .run = run,
                         .engine = Engine::Norm,
                         .samples_apart = true,
                         .channels_apart = true,
                         .npu = {.form = NpuForm::Function, .takes_tail = true},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
