#include <algorithm>
#include <cctype>

#include "base/log.h"
#include "base/refusal.h"
#include "base/version.h"
#include "format/rknn_file.h"
#include "silicon/network.h"
#include "toolkit/batch.h"
#include "toolkit/model_ports.h"
#include "toolkit/shape_sets.h"
#include "toolkit/stages.h"

namespace orknn::toolkit {
namespace {

uint64_t constant_bytes(const ir::Graph& graph) {
  uint64_t sum = 0;
  for (size_t i = 0; i < graph.tensor_count(); ++i)
    if (const ir::TensorData* value = graph.constant(ir::TensorId{static_cast<int32_t>(i)})) sum += value->bytes();
  return sum;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// One set of shapes of the model.
Result<format::Program> compile_graph(ir::Graph graph, const BuildConfig& config, compile::CompileOptions compiling) {
  if (config.remove_reshape) remove_port_reshapes(graph, compiling.normalization);
  if (Status s = take_yuv_pictures(graph, compiling.normalization, config.inputs_yuv_fmt, config.quant_img_RGB2BGR); !s)
    return s.stage("build");
  if (config.rknn_batch_size > 1) {
    auto batched = with_batch(graph, *compiling.ops, config.rknn_batch_size);
    if (!batched) return Status(batched.status()).stage("build");
    graph = std::move(*batched);
  }
  auto program = compile::compile(std::move(graph), compiling);
  if (!program) return Status(program.status()).stage("compile");
  if (!config.dynamic_input.empty()) {
    std::vector<ir::Dims> shapes;
    for (const format::Port& port : program->inputs)
      shapes.push_back(ir::to_dims(*program->graph.tensor(port.tensor).shape).value_or(ir::Dims()));
    program->label = to_text(shapes);
  }
  return program;
}

// Outputs of a TFLite model in quantized uint8: scripts for such models expect these numbers, and scale them themselves.
std::vector<size_t> raw_outputs(const Quantized& quantized) {
  std::vector<size_t> indices;
  if (quantized.framework != "tflite") return indices;
  const ir::Graph& source = quantized.reference;
  for (size_t i = 0; i < source.outputs().size(); ++i) {
    const ir::Tensor& t = source.tensor(source.outputs()[i]);
    if (t.dtype == DType::UInt8 && t.quant) indices.push_back(i);
  }
  return indices;
}

// Whether the options ask for weights in fewer bytes, and the chip or the weights allow it.
bool stores_fewer_bytes(const BuildOptions& options, const format::Model& model) {
  if (options.config.compress_weight && options.chip->features.weight_compression) return true;
  return options.config.sparse_infer && std::ranges::any_of(model.programs, [](const format::Program& p) {
           return std::ranges::any_of(p.tasks, [](const format::Task& t) { return t.sparsity != format::Sparsity::None; });
         });
}

// Command streams of every program, for chips whose registers are known.
Status store_streams(const BuildOptions& options, const ir::OpSet& ops, format::Model& model) {
  if (options.config.remove_streams || !silicon::knows_registers_of(*options.chip)) return {};
  const bool asked_for = options.config.registers;
  std::vector<format::StoredStreams> streams;
  for (const format::Program& program : model.programs) {
    const auto image = silicon::make_image(program, ops);
    if (!image && (asked_for || !is_refusal(image.status()))) return Status(image.status()).model(model.name).stage("build");
    if (!image) {
      log(LogLevel::Info, "build", "The file holds no command streams: " + image.status().message());
      return {};
    }
    streams.push_back(
        silicon::encode_image(*image, program, asked_for ? silicon::ImageParts::AndWeights : silicon::ImageParts::Streams));
  }
  model.streams = std::move(streams);
  return {};
}
}  // namespace

compile::CompileOptions compile_options(const BuildOptions& options, std::vector<compile::Normalization> normalization) {
  const BuildConfig& config = options.config;
  compile::CompileOptions compiling;
  compiling.platform = options.chip;
  compiling.ops = &ops::op_set(options.custom_ops);
  compiling.float_dtype = dtype_from_name(config.float_dtype);
  compiling.op_target = config.op_target;
  compiling.normalization = std::move(normalization);
  compiling.single_core = config.single_core_mode;
  compiling.share_memory = config.share_memory;
  compiling.cost.weights.sparse = config.sparse_infer;
  compiling.cost.weights.compressed = config.compress_weight;
  compiling.warn = [](std::string_view text) { log(LogLevel::Warn, "build", text); };
  return compiling;
}

Result<Built> compile_model(const BuildOptions& options, Quantized quantized) {
  // Weights are what takes time: they are converted (half of the bar), then compared and placed (the other half).
  uint64_t weight_bytes = 0;
  for (const ir::Graph* g : quantized.network.all()) weight_bytes += constant_bytes(*g);
  ByteBar bar(options.progress, "Compiling", weight_bytes, 2);
  const auto worked_through = [&](uint64_t bytes) { bar.add(bytes); };
  compile::CompileOptions compiling = compile_options(options, quantized.normalization);
  compiling.converted = worked_through;

  auto model = std::make_shared<format::Model>();
  model->name = quantized.name;
  model->target_platform = options.chip->name;
  for (const std::string& name : options.config.other_platforms)
    if (const auto other = platform::get(name); other && (*other)->name != model->target_platform)
      model->other_platforms.emplace_back((*other)->name);
  model->source_framework = upper(quantized.framework);
  model->toolkit_version = version();
  model->custom_string = options.config.custom_string;
  model->float_dtype = options.config.float_dtype;
  const std::vector<size_t> raw = raw_outputs(quantized);
  const auto add_program = [&](ir::Graph graph) -> Status {
    auto program = compile_graph(std::move(graph), options.config, compiling);
    if (!program) return Status(program.status()).model(quantized.name);
    for (size_t i : raw) program->outputs[i].dtype = DType::UInt8;
    model->programs.push_back(std::move(*program));
    return {};
  };
  ORKNN_TRY(add_program(std::move(quantized.network.graph)));
  for (ir::Graph& other : quantized.network.other_shapes) ORKNN_TRY(add_program(std::move(other)));
  model->codes_weights = stores_fewer_bytes(options, *model);
  model->leaves_out_weights = options.config.remove_weight;
  uint64_t stored_bytes = 0;
  for (const format::Program& p : model->programs) stored_bytes += constant_bytes(p.graph);
  bar.next_pass(stored_bytes);
  format::place_weights(*model, worked_through);
  bar.finish();
  ORKNN_TRY(store_streams(options, *compiling.ops, *model));
  return Built{std::move(model),
               std::move(quantized.reference),
               std::move(quantized.normalization),
               std::move(quantized.calibration),
               std::move(quantized.hybrid_summary),
               std::move(quantized.step_gains),
               std::move(quantized.trace),
               std::move(quantized.custom_ops)};
}

}  // namespace orknn::toolkit
