#include "import/mxnet/model.h"

#include <algorithm>

#include "import/lower/known_names.h"
#include "import/mxnet/roles.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {

std::vector<std::string> keys_of(const std::unordered_map<std::string_view, Entry>& entries) {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : entries) keys.emplace_back(key);
  return keys;
}
constexpr int kMaxBodyDepth = 8;

// Attributes of operators that are read, and those that only matter for training or for how MXNet computes.
constexpr std::string_view kAttributes[] = {
    "M", "N", "a", "a_max", "a_min", "act_type", "adj", "align_corners", "aligned", "alpha", "axes", "axis", "axis1", "axis2",
    "b", "background_id", "begin", "beta", "bidirectional", "block_size", "c", "cast_narrow", "center_crop", "clip", "condition",
    "constant_value", "coord_start", "count_include_pad", "ctx", "depth", "dilate", "dim", "dim1", "dim2", "dtype", "end",
    "endpoint", "eps", "epsilon", "exclude", "fallback", "feature_stride", "fix_gamma", "flatten", "force_suppress", "format",
    "global_pool", "group_size", "h_w", "heads", "height", "high", "id_index", "in_data_locs", "in_format", "in_state_locs",
    "indices", "infer_range", "input_dim", "iou_loss", "is_ascend", "is_multiply", "k", "keep_highest", "keepdims", "kernel",
    "kernel_size", "knorm", "layout", "lhs_axes", "loc", "low", "lower_bound", "lstm_state_clip_max", "lstm_state_clip_min",
    "lstm_state_clip_nan", "max_calib_range", "max_displacement", "max_iterations", "maximum", "min_calib_range", "minimum",
    "mode", "multi_input_mode", "multi_output", "newshape", "nms_threshold", "nms_topk", "no_bias", "nsize", "num", "num_args",
    "num_deformable_group", "num_filter", "num_group", "num_groups", "num_heads", "num_hidden", "num_layers", "num_out_data",
    "num_outputs", "num_weights", "off_value", "offset", "offsets", "on_value", "op_type", "ord", "out_format", "out_type",
    "output_dim", "output_mean_var", "output_score", "output_size", "overlap_thresh", "p", "p_value", "pad", "pad_size",
    "pad_width", "part_size", "pool_type", "pooled_size", "pooling_convention", "position_sensitive", "preserve_shape",
    "projection_size", "quantized", "ratios", "remain_locs", "repeat", "repeats", "reps", "ret_typ", "reverse", "rhs_axes",
    "rpn_min_size", "rpn_post_nms_top_n", "rpn_pre_nms_top_n", "sample_per_part", "sample_ratio", "sample_type", "scalar",
    "scale", "scale_height", "scale_width", "scales", "score_index", "sections", "shape", "shift", "size", "sizes", "slope",
    "sparse_grad", "spatial_scale", "squeeze_axis", "start", "state_outputs", "state_size", "std0", "std1", "std2", "std3",
    "step", "steps", "stop", "stride", "stride1", "stride2", "target_shape", "temperature", "threshold", "topk", "trans_std",
    "no_trans", "transform_type", "transpose", "transpose_a", "transpose_b", "upper_bound", "use_length", "use_sequence_length",
    "valid_thresh", "value", "variances", "width", "anchors",
    // training, and the ways MXNet computes
    "cudnn_off", "cudnn_tune", "cudnn_algo_bwd_data", "cudnn_algo_bwd_filter", "cudnn_algo_fwd", "cudnn_algo_verbose",
    "cudnn_tensor_core_only", "deterministic", "ctx_group", "force_mirroring", "grad_scale", "ignore_label", "key", "lazy_update",
    "margin", "max_data_length", "momentum", "ndev", "negative_mining_ratio", "negative_mining_thresh", "no_backward",
    "normalization", "out_grad", "penalty", "regularization_coefficient", "minimum_negative_samples", "smooth_alpha",
    "sparseness_target", "use_global_stats", "use_ignore", "use_linear", "use_lengths", "use_data_lengths", "use_label_lengths",
    "blank_label", "workspace", "info", "need_top_grad", "pointer", "blocking", "mirror_stage", "training", "aux_states",
    "num_samples", "with_relu", "with_sum", "with_bn", "with_act", "with_eltwise", "with_postsum_relu", "quantized_output_min",
    "enable_float_output", "channel_wise_quantize", "split_op_name", "min_calib_range_out", "max_calib_range_out",
    "weight_channelwise_scale", "name", "bn_size", "sym_name", "num_fwd_inputs", "num_fwd_outputs", "backward_mirror_policy",
    "data_indices", "param_indices", "inline_limit", "static_alloc", "static_shape", "forward_bulk_size", "backward_bulk_size",
    "flags", "is_dynamic"};

// Notes on a node that are no attribute of its operator: "__lr_mult__", "weight_lr_mult".
bool is_annotation(std::string_view name) { return name.starts_with("__") || name.ends_with("_mult"); }
constexpr size_t kMaxListed = 5;
constexpr size_t kMaxBodyLayers = 1 << 17;  // layers of loops and subgraphs, unrolled

const RowTable<Layer>& table() {
  static const RowTable<Layer> rows{activation_rows(),    attention_rows(),   control_rows(),   convolution_rows(),
                                    detection_rows(),     elementwise_rows(), indexing_rows(),  matrix_rows(),
                                    normalization_rows(), pooling_rows(),     quantized_rows(), recurrent_rows(),
                                    reduction_rows(),     sampling_rows(),    shape_rows()};
  return rows;
}

bool is_called_like_a_parameter(std::string_view name) {
  static constexpr std::string_view kSuffixes[] = {"_weight", "_bias", "_gamma", "_beta", "_mean", "_var", "_parameters"};
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes), [&](std::string_view s) { return name.ends_with(s); });
}
}  // namespace

std::optional<Shape> stated_shape(const SymbolNode& variable) {
  const std::string* text = variable.find("__shape__");
  const auto parts = text ? split_tuple(*text) : std::nullopt;
  if (!parts || parts->empty()) return std::nullopt;
  Shape shape;
  for (const std::string& part : *parts) {
    const auto extent = parse_integer(part);
    if (!extent) return std::nullopt;
    shape.push_back(*extent > 0 ? Dim(*extent) : Dim());
  }
  return shape;
}

DType stated_dtype(const SymbolNode& variable) {
  const std::string* text = variable.find("__dtype__");
  const auto number = text ? parse_integer(*text) : std::nullopt;
  const DType dtype = number ? dtype_of_number(*number) : DType::Undefined;
  return dtype == DType::Undefined ? DType::Float32 : dtype;
}

namespace {
Fill fill_of_name(std::string_view name) {
  if (name.ends_with("gamma") || name.ends_with("_var")) return Fill::Ones;
  return name.ends_with("bias") || name.ends_with("beta") || name.ends_with("_mean") ? Fill::Zeros : Fill::Random;
}

std::string listed(const Symbol& symbol, std::span<const uint32_t> variables) {
  std::string text;
  for (size_t i = 0; i < variables.size() && i < kMaxListed; ++i)
    text += (i ? ", '" : "'") + symbol.nodes[variables[i]].name + "'";
  return variables.size() > kMaxListed ? text + " and " + std::to_string(variables.size() - kMaxListed) + " more" : text;
}
}  // namespace

// --- names

void Model::name_outputs() {
  std::unordered_set<std::string> taken;
  for (const SymbolNode& n : symbol_.nodes)
    if (n.is_variable()) taken.insert(n.name);
  std::vector<Entry> entries = symbol_.heads;
  for (const SymbolNode& n : symbol_.nodes) entries.insert(entries.end(), n.inputs.begin(), n.inputs.end());
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  for (const Entry& e : entries) {
    const SymbolNode& n = symbol_.nodes[e.node];
    std::string name = n.is_variable() ? n.name : n.name + "_" + output_suffix(n, e.output);
    if (!n.is_variable() && !taken.insert(name).second) {
      name += "@" + std::to_string(e.node);
      taken.insert(name);
    }
    entries_.emplace(names_.emplace(e, std::move(name)).first->second, e);
  }
}

std::string_view Model::name_of(const Entry& entry) const { return names_.at(entry); }

// Marks every node that compares with labels or depends on one that does.
std::vector<char> Model::labelled_nodes() const {
  std::vector<char> marked(symbol_.nodes.size(), 0);
  std::vector<uint32_t> pending;
  for (uint32_t n = 0; n < symbol_.nodes.size(); ++n)
    if (is_training_only(symbol_.nodes[n].op)) pending.push_back(n);
  if (pending.empty()) return marked;
  std::vector<std::vector<uint32_t>> readers(symbol_.nodes.size());
  for (uint32_t n = 0; n < symbol_.nodes.size(); ++n)
    for (size_t i = 0; i < symbol_.nodes[n].inputs.size(); ++i)
      if (role_of_input(symbol_.nodes[n], i) != Role::Label) readers[symbol_.nodes[n].inputs[i].node].push_back(n);
  while (!pending.empty()) {
    const uint32_t at = pending.back();
    pending.pop_back();
    if (marked[at]) continue;
    marked[at] = 1;
    pending.insert(pending.end(), readers[at].begin(), readers[at].end());
  }
  return marked;
}

Result<std::vector<std::string>> Model::pick_outputs(const ImportOptions& options) {
  std::vector<std::string> outputs;
  if (options.outputs.empty()) {
    std::vector<std::string> dropped;
    const std::vector<char> labelled = labelled_nodes();
    for (const Entry& head : symbol_.heads) (labelled[head.node] ? dropped : outputs).emplace_back(name_of(head));
    if (outputs.empty())
      return unsupported("every output of the model is there to train it")
          .found(quoted_list(dropped))
          .hint("save the symbol of the deployed network");
    if (!dropped.empty()) warn("outputs that only train the network are left out: " + quoted_list(dropped));
    return outputs;
  }
  for (const std::string& wanted : options.outputs) {
    if (entries_.contains(wanted)) {
      outputs.push_back(wanted);
      continue;
    }
    const auto is_it = [&](const auto& entry) {
      return entry.first.output == 0 && symbol_.nodes[entry.first.node].name == wanted;
    };  // a layer stands for its output
    const auto it = std::find_if(names_.begin(), names_.end(), is_it);
    if (it == names_.end()) return no_such_tensor(wanted, "outputs", options.outputs, keys_of(entries_));
    outputs.push_back(it->second);
  }
  return outputs;
}

// --- variables

Model::Variables Model::sort_variables(const LayerPlan& plan) const {
  std::unordered_map<std::string_view, std::pair<bool, bool>> other_use;  // read by something else than a parameter, a state slot
  std::vector<char> needed(symbol_.nodes.size(), 0);
  for (size_t i : plan.layers) needed[i] = 1;
  for (size_t n = 0; n < symbol_.nodes.size(); ++n) {
    if (!needed[n]) continue;
    const SymbolNode& node = symbol_.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const SymbolNode& source = symbol_.nodes[node.inputs[i].node];
      if (!source.is_variable()) continue;
      const Role role = role_of_input(node, i);
      auto& [not_parameter, not_state] = other_use[source.name];
      not_parameter |= role != Role::Parameter && role != Role::Label;
      not_state |= role != Role::State;
    }
  }
  Variables result;
  std::unordered_set<std::string_view> seen;
  for (uint32_t n = 0; n < symbol_.nodes.size(); ++n) {
    const SymbolNode& node = symbol_.nodes[n];
    if (!node.is_variable() || !plan.read.contains(node.name) || !seen.insert(node.name).second) continue;
    if (params_ && params_->contains(node.name)) continue;
    const auto use = other_use.find(node.name);
    const bool is_parameter =
        use != other_use.end() && (!use->second.first || (is_called_like_a_parameter(node.name) && stated_shape(node)));
    const bool is_state = use != other_use.end() && !use->second.second;
    (is_parameter ? result.parameters : is_state ? result.states : result.inputs).push_back(n);
  }
  return result;
}

// A picture network is fed [N,C,H,W]; scripts of the first toolkit give [C,H,W]. Which of them is meant follows from the first
// layer that knows its rank.
std::optional<int64_t> Model::rank_needed_by_readers(uint32_t variable) const {
  std::vector<char> carries(symbol_.nodes.size(), 0);
  carries[variable] = 1;
  for (size_t n = variable + 1; n < symbol_.nodes.size(); ++n) {
    const SymbolNode& node = symbol_.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!carries[node.inputs[i].node] || role_of_input(node, i) != Role::Data) continue;
      if (node.op == "Convolution" || node.op == "Deconvolution" || node.op == "Pooling" || node.op == "Convolution_v1" ||
          node.op == "Pooling_v1") {
        const std::string* kernel = node.find("kernel");
        const auto parts = kernel ? split_tuple(*kernel) : std::nullopt;
        if (parts && !parts->empty()) return static_cast<int64_t>(parts->size()) + 2;
      }
      if (node.op == "UpSampling" || node.op == "LRN") return 4;
      if (node.op == "FullyConnected" && !node.find("flatten")) return std::nullopt;
      if (keeps_rank(node.op)) carries[n] = 1;
    }
  }
  return std::nullopt;
}

Result<std::vector<Port>> Model::ports(const LayerPlan& plan, const ImportOptions& options) {
  Variables free = sort_variables(plan);
  const size_t sizes = options.input_size_list.size();
  std::vector<std::string> names = options.inputs;
  std::vector<uint32_t> variables = free.inputs;
  if (names.empty()) {
    const auto take = [&](const std::vector<uint32_t>& more) { variables.insert(variables.end(), more.begin(), more.end()); };
    const size_t all = free.inputs.size() + free.states.size() + free.parameters.size();
    if (sizes == all && params_) {  // the user sizes every variable without value: all of them are inputs
      take(free.parameters);
      free.parameters.clear();
    }
    if (sizes == variables.size() + free.states.size()) {
      take(free.states);
      free.states.clear();
    }
    std::sort(variables.begin(), variables.end());
    for (uint32_t v : variables) names.push_back(symbol_.nodes[v].name);
  }
  if (!free.states.empty()) warn("recurrent states start at zero: " + listed(symbol_, free.states));
  if (!free.parameters.empty()) {
    if (params_)
      return invalid_model("the params file has no value for " + listed(symbol_, free.parameters))
          .hint("give the params file that was saved with this symbol");
    warn(std::string(kRandomWeights));
  }

  std::vector<Port> list;
  for (size_t i = 0; i < names.size(); ++i) {
    Port port;
    port.name = names[i];
    const auto it = entries_.find(names[i]);
    if (it == entries_.end()) return no_such_tensor(names[i], "inputs", options.inputs, keys_of(entries_));
    if (const SymbolNode& node = symbol_.nodes[it->second.node]; node.is_variable()) {
      port.dtype = stated_dtype(node);
      port.shape = stated_shape(node);
    }
    if (!port.shape && i < sizes)
      if (const auto rank = rank_needed_by_readers(it->second.node);
          rank && static_cast<int64_t>(options.input_size_list[i].size()) == *rank - 1)
        port.shape = Shape(static_cast<size_t>(*rank));
    list.push_back(std::move(port));
  }
  ORKNN_TRY(apply_sizes(list, options).status());
  return list;
}

Status Model::add_constants(const LayerPlan& plan) {
  for (const SymbolNode& node : symbol_.nodes) {
    if (!node.is_variable() || !plan.read.contains(node.name) || network_.find(node.name)) continue;
    if (!params_ || !params_->contains(node.name)) {
      if (params_ || !is_called_like_a_parameter(node.name)) continue;
      const auto shape = stated_shape(node);
      const auto dims = shape ? to_dims(*shape) : std::nullopt;
      if (!dims) continue;  // made up by the layer that knows its shape
      ORKNN_TRY(parameter(node.name, dims, fill_of_name(node.name),
                          checked_element_count(*dims) ? element_count(*dims) / (*dims)[0] : 1)
                    .status());
      continue;
    }
    if (auto value = params_->value(node.name); value)
      bind_parameter(node.name, *std::move(value));
    else
      network_.report(value.status());
  }
  return {};
}

TensorId Model::bind_parameter(const std::string& name, TensorData value) {
  const TensorId id = network_.graph.add_constant(name, std::move(value));
  network_.bind(name, id, name);
  return id;
}

Result<TensorId> Model::parameter(const std::string& name, const std::optional<Dims>& dims, Fill fill, int64_t fan_in) {
  if (const TensorId known = network_.find(name)) return known;
  if (params_) {
    ORKNN_TRY_ASSIGN(TensorData value, params_->value(name));
    return bind_parameter(name, std::move(value));
  }
  if (!dims)
    return unsupported("the shape of parameter '" + name + "' must be known to make it up")
        .hint("give the input shapes with input_size_list");
  ORKNN_TRY(invented_.add(name, *dims));
  return bind_parameter(name, filled(name, *dims, fill, fan_in));
}

// --- layers

Result<std::vector<TensorId>> Model::run_row(Layer& layer) {
  const OperatorRow<Layer>* row = table().find(layer.op());
  if (!row) return unsupported("this operator is not supported");
  for (const auto& attribute : layer.node().attributes)
    if (!is_annotation(attribute.first))
      if (const auto warning = unknown_name("attribute", attribute.first, kAttributes))
        warn("layer '" + layer.layer() + "': " + *warning);
  auto outputs = (*row)(layer);
  if (!layer.problem().is_ok()) return layer.problem();
  return outputs;
}

Status Model::lower(const SymbolNode& node, uint32_t index) {
  std::vector<TensorId> inputs;
  for (const Entry& e : node.inputs) inputs.push_back(network_.find(name_of(e)));
  Layer layer(network_.graph, network_.ops, symbol_, node, node.name, std::move(inputs), *this);
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> outputs, run_row(layer));
  for (auto it = names_.lower_bound(Entry{index, 0}); it != names_.end() && it->first.node == index; ++it) {
    const uint32_t output = it->first.output;
    if (output >= outputs.size() || !outputs[output])
      return unsupported("output " + std::to_string(output) + " of this operator is not supported")
          .expected("output 0" + std::string(outputs.size() > 1 ? " to " + std::to_string(outputs.size() - 1) : ""));
    network_.bind(it->second, outputs[output], node.name);
  }
  return {};
}

Result<std::vector<TensorId>> Model::lower_body(const Symbol& body, std::span<const TensorId> inputs, const std::string& prefix) {
  if (body_depth_ >= kMaxBodyDepth)
    return unsupported("subgraphs are nested too deeply").expected("at most " + std::to_string(kMaxBodyDepth) + " levels");
  ++body_depth_;
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } leave{body_depth_};

  std::vector<std::vector<TensorId>> values(body.nodes.size());
  size_t next_input = 0;
  const auto value_of = [&](const Entry& e, size_t before) -> Result<TensorId> {
    if (e.node >= before) return invalid_model("the nodes of the subgraph are not in order");
    if (e.output >= values[e.node].size() || !values[e.node][e.output])
      return unsupported("output " + std::to_string(e.output) + " of '" + body.nodes[e.node].name + "' is not supported");
    return values[e.node][e.output];
  };
  for (size_t n = 0; n < body.nodes.size(); ++n) {
    const SymbolNode& node = body.nodes[n];
    if (node.is_variable()) {
      if (next_input >= inputs.size())
        return invalid_model("the subgraph has more variables than inputs")
            .expected(std::to_string(inputs.size()))
            .found("'" + node.name + "'");
      values[n] = {inputs[next_input++]};
      continue;
    }
    if (++body_layers_ > kMaxBodyLayers)
      return unsupported("loops unroll to too many layers").expected("at most " + std::to_string(kMaxBodyLayers));
    std::vector<TensorId> arguments;
    for (const Entry& e : node.inputs) {
      ORKNN_TRY_ASSIGN(const TensorId id, value_of(e, n));
      arguments.push_back(id);
    }
    Layer layer(network_.graph, network_.ops, body, node, prefix + "/" + node.name, std::move(arguments), *this);
    auto outputs = run_row(layer);
    if (!outputs) return Status(outputs.status()).node(prefix + "/" + node.name, node.op);
    values[n] = *std::move(outputs);
  }
  std::vector<TensorId> results;
  for (const Entry& head : body.heads) {
    ORKNN_TRY_ASSIGN(const TensorId id, value_of(head, body.nodes.size()));
    results.push_back(id);
  }
  return results;
}

Result<Graph> Model::build(const ImportOptions& options) {
  name_outputs();
  ORKNN_TRY_ASSIGN(const std::vector<std::string> outputs, pick_outputs(options));
  std::vector<LayerNames> layers;
  for (uint32_t n = 0; n < symbol_.nodes.size(); ++n) {
    const SymbolNode& node = symbol_.nodes[n];
    LayerNames& names = layers.emplace_back();
    if (node.is_variable()) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (role_of_input(node, i) != Role::Label) names.reads.push_back(name_of(node.inputs[i]));
    for (auto it = names_.lower_bound(Entry{n, 0}); it != names_.end() && it->first.node == n; ++it)
      names.writes.push_back(it->second);
  }
  const std::vector<std::string_view> ends(outputs.begin(), outputs.end());
  ORKNN_TRY_ASSIGN(const LayerPlan plan, plan_layers(layers, ends, {options.inputs.begin(), options.inputs.end()}));

  ORKNN_TRY_ASSIGN(const std::vector<Port> inputs, ports(plan, options));
  for (const Port& port : inputs) network_.add_input(port);
  ORKNN_TRY(add_constants(plan));
  network_.lower_all(layers, plan, [&](size_t n, bool is_reachable) -> Status {
    const SymbolNode& node = symbol_.nodes[n];
    if (!is_reachable && table().find(node.op)) return {};
    return lower(node, static_cast<uint32_t>(n)).node(node.name, node.op);
  });
  return network_.finish(outputs);
}

}  // namespace orknn::importer::mxnet
