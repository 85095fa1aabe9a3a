// Decision trees: each sample walks every tree from its root to a leaf, and the weights of the leaves are combined.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "ops/support/post_transform.h"
#include "ops/support/samples.h"

namespace orknn::ops {
namespace {
using namespace ir;

enum class Test { Leaf, Leq, Lt, Gte, Gt, Eq, Neq };

struct Branch {
  Test test = Test::Leaf;
  int64_t feature = 0;
  double value = 0;
  bool missing_is_true = false;
  size_t if_true = 0, if_false = 0;
  std::vector<std::pair<size_t, double>> weights;  // of a leaf: (target, weight)
};

struct Forest {
  std::vector<Branch> branches;
  std::vector<size_t> roots;
  size_t targets = 0;
  std::vector<double> base;
};

Result<Test> test_from(std::string_view mode) {
  static const std::map<std::string_view, Test> tests = {
      {"LEAF", Test::Leaf},    {"BRANCH_LEQ", Test::Leq}, {"BRANCH_LT", Test::Lt},  {"BRANCH_GTE", Test::Gte},
      {"BRANCH_GT", Test::Gt}, {"BRANCH_EQ", Test::Eq},   {"BRANCH_NEQ", Test::Neq}};
  const auto it = tests.find(mode);
  if (it == tests.end()) return unsupported("unknown node mode").found(std::string(mode));
  return it->second;
}

// Integer attribute `name` with `count` entries.
Result<std::vector<int64_t>> column(const NodeReader& c, std::string_view name, size_t count) {
  const auto* ints = c.find<std::vector<int64_t>>(name);
  if (!ints || ints->size() != count)
    return invalid_model("attribute '" + std::string(name) + "' has the wrong length")
        .expected(std::to_string(count))
        .found(std::to_string(ints ? ints->size() : 0));
  return *ints;
}

// `kind` is "target" or "class", the prefix of the attributes that tell the leaves' weights.
Result<Forest> make_forest(const NodeReader& c, const std::string& kind, size_t targets) {
  const auto* modes = c.find<std::vector<std::string>>("nodes_modes");
  const size_t count = modes ? modes->size() : 0;
  ORKNN_TRY_ASSIGN(const auto trees, column(c, "nodes_treeids", count));
  ORKNN_TRY_ASSIGN(const auto ids, column(c, "nodes_nodeids", count));
  ORKNN_TRY_ASSIGN(const auto features, column(c, "nodes_featureids", count));
  ORKNN_TRY_ASSIGN(const auto yes, column(c, "nodes_truenodeids", count));
  ORKNN_TRY_ASSIGN(const auto no, column(c, "nodes_falsenodeids", count));
  const std::vector<double> values = floats_of(c, "nodes_values");
  if (values.size() != count)
    return invalid_model("attribute 'nodes_values' has the wrong length")
        .expected(std::to_string(count))
        .found(std::to_string(values.size()));
  const auto* missing = c.find<std::vector<int64_t>>("nodes_missing_value_tracks_true");
  if (missing && !missing->empty() && missing->size() != count)
    return invalid_model("attribute 'nodes_missing_value_tracks_true' has the wrong length");

  Forest forest{.targets = targets};
  std::map<std::pair<int64_t, int64_t>, size_t> places;
  std::set<int64_t> seen;
  for (size_t i = 0; i < count; ++i) {
    if (!places.emplace(std::pair(trees[i], ids[i]), i).second)
      return invalid_model("a tree has two nodes of the same id").found(std::to_string(ids[i]));
    if (seen.insert(trees[i]).second) forest.roots.push_back(i);
  }
  for (size_t i = 0; i < count; ++i) {
    Branch b;
    ORKNN_TRY_ASSIGN(b.test, test_from((*modes)[i]));
    b.feature = features[i];
    b.value = values[i];
    b.missing_is_true = missing && !missing->empty() && (*missing)[i] != 0;
    if (b.test != Test::Leaf) {
      const auto on_true = places.find({trees[i], yes[i]}), on_false = places.find({trees[i], no[i]});
      if (on_true == places.end() || on_false == places.end())
        return invalid_model("a tree node leads nowhere")
            .found("node " + std::to_string(ids[i]) + " of tree " + std::to_string(trees[i]));
      b.if_true = on_true->second;
      b.if_false = on_false->second;
    }
    forest.branches.push_back(std::move(b));
  }
  const auto* target_ids = c.find<std::vector<int64_t>>(kind + "_ids");
  const size_t weights = target_ids ? target_ids->size() : 0;
  ORKNN_TRY_ASSIGN(const auto weight_trees, column(c, kind + "_treeids", weights));
  ORKNN_TRY_ASSIGN(const auto weight_nodes, column(c, kind + "_nodeids", weights));
  const std::vector<double> weight_values = floats_of(c, kind + "_weights");
  if (weight_values.size() != weights)
    return invalid_model("attribute '" + kind + "_weights' has the wrong length")
        .expected(std::to_string(weights))
        .found(std::to_string(weight_values.size()));
  for (size_t i = 0; i < weights; ++i) {
    const auto place = places.find({weight_trees[i], weight_nodes[i]});
    if (place == places.end())
      return invalid_model("a weight belongs to no tree node")
          .found("node " + std::to_string(weight_nodes[i]) + " of tree " + std::to_string(weight_trees[i]));
    const int64_t target = (*target_ids)[i];
    if (target < 0 || target >= static_cast<int64_t>(targets))
      return invalid_model("a weight belongs to no " + kind)
          .expected("0 to " + std::to_string(targets - 1))
          .found(std::to_string(target));
    forest.branches[place->second].weights.push_back({static_cast<size_t>(target), weight_values[i]});
  }
  forest.base = floats_of(c, "base_values");
  const bool one_for_all = kind == "class" && forest.base.size() == 1;
  if (!forest.base.empty() && forest.base.size() != targets && !one_for_all)
    return invalid_model("one base value per " + kind + " is needed")
        .expected(std::to_string(targets))
        .found(std::to_string(forest.base.size()));
  return forest;
}

bool passes(const Branch& b, double x) {
  if (x != x) return b.missing_is_true;
  switch (b.test) {
    case Test::Leq: return x <= b.value;
    case Test::Lt: return x < b.value;
    case Test::Gte: return x >= b.value;
    case Test::Gt: return x > b.value;
    case Test::Eq: return x == b.value;
    case Test::Neq: return x != b.value;
    case Test::Leaf: break;
  }
  return false;
}

// Whatever way is taken from a root, it ends in a leaf and tests features that samples have; any number of them while that is
// unknown. A way that no sample takes counts too.
Status check_walks(const Forest& forest, const Dim& features) {
  const int64_t end = features.is_known() ? features.value() : INT64_MAX;
  enum class Mark : uint8_t { New, Open, Done };
  std::vector<Mark> marks(forest.branches.size(), Mark::New);
  std::vector<size_t> path = forest.roots;
  while (!path.empty()) {
    const size_t at = path.back();
    const Branch& b = forest.branches[at];
    if (marks[at] != Mark::New || b.test == Test::Leaf) {
      marks[at] = Mark::Done;
      path.pop_back();
      continue;
    }
    if (b.feature < 0 || b.feature >= end)
      return shape_mismatch("a tree tests a feature that samples do not have")
          .expected(features.is_known() ? "0 to " + std::to_string(end - 1) : "at least 0")
          .found(std::to_string(b.feature));
    marks[at] = Mark::Open;
    for (const size_t next : {b.if_true, b.if_false}) {
      if (marks[next] == Mark::Open) return invalid_model("a tree has a cycle");
      if (marks[next] == Mark::New) path.push_back(next);
    }
  }
  return {};
}

// The leaf that a sample reaches in the tree of `root`, whose walks are checked.
const Branch& leaf_of(const Forest& forest, size_t root, const double* x) {
  const Branch* b = &forest.branches[root];
  while (b->test != Test::Leaf) b = &forest.branches[passes(*b, x[b->feature]) ? b->if_true : b->if_false];
  return *b;
}

// The number of features of a sample, unknown where the shape is.
Dim features_of(const InferContext& c) { return c.shape(0) ? c.shape(0)->back() : Dim(); }

Status infer_regressor(InferContext& c) {
  ORKNN_TRY_ASSIGN(const Dim samples, sample_count(c));
  const int64_t targets = c.get_int("n_targets");
  if (targets < 1 || targets > (1 << 24)) return invalid_model("illegal number of targets").found(std::to_string(targets));
  ORKNN_TRY(post_transform_from(c.get_string("post_transform")).status());
  const std::string& combine = c.get_string("aggregate_function");
  if (combine != "SUM" && combine != "AVERAGE" && combine != "MIN" && combine != "MAX")
    return unsupported("unknown aggregate_function").expected("SUM, AVERAGE, MIN or MAX").found(combine);
  ORKNN_TRY_ASSIGN(const Forest forest, make_forest(c, "target", static_cast<size_t>(targets)));
  ORKNN_TRY(check_walks(forest, features_of(c)));
  c.set_output(0, DType::Float32, Shape{c.shape(0) ? samples : Dim(), targets});
  return {};
}

Status run_regressor(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Samples x, read_samples(c));
  ORKNN_TRY_ASSIGN(const PostTransform transform, post_transform_from(c.get_string("post_transform")));
  const std::string& combine = c.get_string("aggregate_function");
  const auto targets = static_cast<size_t>(c.get_int("n_targets"));
  ORKNN_TRY_ASSIGN(const Forest forest, make_forest(c, "target", targets));
  ORKNN_TRY(check_walks(forest, x.features));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Float32, Dims{x.count, static_cast<int64_t>(targets)}));
  for (int64_t n = 0; n < x.count; ++n) {
    std::vector<double> sums(targets, 0.0);
    std::vector<bool> voted(targets, false);
    for (size_t root : forest.roots) {
      const Branch& leaf = leaf_of(forest, root, x.values.data() + n * x.features);
      for (const auto& [target, weight] : leaf.weights) {
        double& sum = sums[target];
        if (combine == "MIN")
          sum = voted[target] ? std::min(sum, weight) : weight;
        else if (combine == "MAX")
          sum = voted[target] ? std::max(sum, weight) : weight;
        else
          sum += weight;
        voted[target] = true;
      }
    }
    const std::span<float> row(y.as<float>() + n * static_cast<int64_t>(targets), targets);
    for (size_t k = 0; k < targets; ++k) {
      if (combine == "AVERAGE") sums[k] /= static_cast<double>(std::max<size_t>(1, forest.roots.size()));
      row[k] = static_cast<float>(sums[k] + (forest.base.empty() ? 0.0 : forest.base[k]));
    }
    apply_post_transform(transform, row);
  }
  return {};
}

// Number labels of a classifier; a single one is the second of two classes.
Result<std::vector<int64_t>> labels_of(const NodeReader& c) {
  if (c.find<std::vector<std::string>>("classlabels_strings"))
    return unsupported("class names are not supported").hint("use number labels (classlabels_int64s)");
  const auto* labels = c.find<std::vector<int64_t>>("classlabels_int64s");
  if (!labels || labels->empty()) return invalid_model("class labels are missing");
  if (labels->size() == 1) return std::vector<int64_t>{0, labels->front()};
  return *labels;
}

Status infer_classifier(InferContext& c) {
  ORKNN_TRY_ASSIGN(const Dim samples, sample_count(c));
  ORKNN_TRY_ASSIGN(const auto labels, labels_of(c));
  ORKNN_TRY(post_transform_from(c.get_string("post_transform")).status());
  ORKNN_TRY_ASSIGN(const Forest forest, make_forest(c, "class", labels.size()));
  ORKNN_TRY(check_walks(forest, features_of(c)));
  c.set_output(0, DType::Int64, Shape{c.shape(0) ? samples : Dim()});
  c.set_output(1, DType::Float32, Shape{c.shape(0) ? samples : Dim(), static_cast<int64_t>(labels.size())});
  return {};
}

Status run_classifier(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Samples x, read_samples(c));
  ORKNN_TRY_ASSIGN(const PostTransform transform, post_transform_from(c.get_string("post_transform")));
  ORKNN_TRY_ASSIGN(const auto labels, labels_of(c));
  const size_t classes = labels.size();
  ORKNN_TRY_ASSIGN(const Forest forest, make_forest(c, "class", classes));
  ORKNN_TRY(check_walks(forest, x.features));
  // Trees that only ever vote for one of two classes give the score of the second; positive weights are probabilities,
  // others are distances from the decision.
  bool positive = true;
  std::set<size_t> voted;
  for (const Branch& b : forest.branches)
    for (const auto& [target, weight] : b.weights) {
      voted.insert(target);
      positive &= weight >= 0;
    }
  const bool binary = classes == 2 && voted.size() == 1;
  MutableTensorView y, z;
  if (c.has_output(0)) {
    ORKNN_TRY_ASSIGN(y, c.output(0, DType::Int64, Dims{x.count}));
  }
  if (c.has_output(1)) {
    ORKNN_TRY_ASSIGN(z, c.output(1, DType::Float32, Dims{x.count, static_cast<int64_t>(classes)}));
  }
  std::vector<float> unread(classes);
  for (int64_t n = 0; n < x.count; ++n) {
    std::vector<double> sums(classes, 0.0);
    if (forest.base.size() == classes) sums = forest.base;
    double single = forest.base.size() == 1 ? forest.base[0] : forest.base.size() == classes ? forest.base[classes - 1] : 0.0;
    for (size_t root : forest.roots) {
      const Branch& leaf = leaf_of(forest, root, x.values.data() + n * x.features);
      for (const auto& [target, weight] : leaf.weights) {
        sums[target] += weight;
        single += weight;
      }
    }
    const std::span<float> row(z.data ? z.as<float>() + n * static_cast<int64_t>(classes) : unread.data(), classes);
    size_t best;
    if (binary) {
      const auto score = static_cast<float>(single);
      best = score > (positive ? 0.5f : 0.0f) ? 1 : 0;
      row[1] = score;
      row[0] = positive && transform != PostTransform::Logistic ? 1.0f - score : -score;
      if (transform == PostTransform::Logistic) apply_post_transform(transform, row);
    } else {
      for (size_t k = 0; k < classes; ++k) row[k] = static_cast<float>(sums[k]);
      best = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
      apply_post_transform(transform, row);
    }
    if (y.data) y.as<int64_t>()[n] = labels[best];
  }
  return {};
}

// Attributes that both forms share, followed by those of the leaves' weights.
std::vector<AttributeDef> tree_attributes(std::initializer_list<AttributeDef> own) {
  std::vector<AttributeDef> all = {attr_floats("base_values"),
                                   attr_tensor("base_values_as_tensor"),
                                   attr_ints("nodes_falsenodeids"),
                                   attr_ints("nodes_featureids"),
                                   attr_floats("nodes_hitrates"),
                                   attr_tensor("nodes_hitrates_as_tensor"),
                                   attr_ints("nodes_missing_value_tracks_true"),
                                   attr_strings("nodes_modes"),
                                   attr_ints("nodes_nodeids"),
                                   attr_ints("nodes_treeids"),
                                   attr_ints("nodes_truenodeids"),
                                   attr_floats("nodes_values"),
                                   attr_tensor("nodes_values_as_tensor"),
                                   attr_string("post_transform", "NONE")};
  all.insert(all.end(), own);
  return all;
}
}  // namespace

std::span<const OpDef> tree_ensemble() {
  static const OpDef defs[] = {
      {.name = "ai.onnx.ml:TreeEnsembleRegressor",
       .summary = "regression by decision trees",
       .attributes = tree_attributes({attr_string("aggregate_function", "SUM"), attr_int("n_targets", 1), attr_ints("target_ids"),
                                      attr_ints("target_nodeids"), attr_ints("target_treeids"), attr_floats("target_weights"),
                                      attr_tensor("target_weights_as_tensor")}),
       .infer = infer_regressor,
       .run = run_regressor},
      {.name = "ai.onnx.ml:TreeEnsembleClassifier",
       .summary = "classification by decision trees",
       .outputs = {1, 2},
       .attributes = tree_attributes({attr_ints("class_ids"), attr_ints("class_nodeids"), attr_ints("class_treeids"),
                                      attr_floats("class_weights"), attr_tensor("class_weights_as_tensor"),
                                      attr_ints("classlabels_int64s"), attr_strings("classlabels_strings")}),
       .infer = infer_classifier,
       .run = run_classifier},
  };
  return defs;
}
}  // namespace orknn::ops
