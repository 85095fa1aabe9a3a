// What operators say about themselves is compared with what they compute.
#include "ops/facts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "ops/eval.h"

namespace orknn::ops {
namespace {
using namespace ir;

const std::vector<float> kSamples = {-7.5f, -3.0f, -1.0f, -0.75f, -0.25f, 0.0f, 0.125f, 0.5f, 0.875f, 1.0f, 2.0f, 6.5f};

std::vector<float> run(std::string_view op, std::vector<float> x) {
  Node node;
  node.op = op;
  node.inputs = {TensorId{0}};
  node.outputs = {TensorId{1}};
  const auto count = static_cast<int64_t>(x.size());
  TensorData data = TensorData::allocate(DType::Float32, {count});
  std::copy(x.begin(), x.end(), static_cast<float*>(data.mutable_data()));
  const auto results = eval_node(node, builtin_ops(), {&data, 1});
  EXPECT_TRUE(results) << op << ": " << results.status().message();
  if (!results) return {};
  EXPECT_EQ((*results)[0].dtype(), DType::Float32) << op;
  return {(*results)[0].as<float>(), (*results)[0].as<float>() + count};
}

float attribute(const OpDef& def, std::string_view name) {
  for (const AttributeDef& a : def.attributes)
    if (a.name == name) return static_cast<float>(std::get<double>(*a.fallback));
  return 0;
}

// Float functions that take one input and need no attribute.
std::vector<const OpDef*> functions() {
  std::vector<const OpDef*> found;
  for (std::string_view name : ops_where([](const OpDef& d) {
         return d.pattern == Pattern::Pointwise && d.inputs.min == 1 && d.integer_form_of.empty() &&
                d.quant != QuantRule::Float && d.quant != QuantRule::Integer;
       }))
    found.push_back(&facts_of(name));
  return found;
}

TEST(Facts, ScalarFunctionsComputeWhatKernelsCompute) {
  size_t seen = 0;
  for (const OpDef* def : functions()) {
    if (!def->scalar.call) continue;
    ++seen;
    const float a = attribute(*def, def->scalar.a), b = attribute(*def, def->scalar.b);
    const std::vector<float> y = run(def->name, kSamples);
    for (size_t i = 0; i < y.size(); ++i) {
      const float direct = def->scalar.call(kSamples[i], a, b);
      EXPECT_TRUE(direct == y[i] || (std::isnan(direct) && std::isnan(y[i]))) << def->name << " of " << kSamples[i];
    }
  }
  EXPECT_GT(seen, 25u);
}

TEST(Facts, PoolingThatTakesTheLargestIgnoresWhatIsBelow) {
  const std::vector<std::string_view> pools =
      ops_where([](const OpDef& d) { return d.pattern == Pattern::Window || d.pattern == Pattern::GlobalWindow; });
  size_t seen = 0;
  for (std::string_view op : pools) {
    const OpDef& def = facts_of(op);
    if (def.inputs.min != 1 || def.quant == QuantRule::Integer) continue;
    Node node;
    node.op = op;
    node.inputs = {TensorId{0}};
    node.outputs = {TensorId{1}};
    if (def.pattern == Pattern::Window) node.attributes.set("kernel_shape", std::vector<int64_t>{2, 2});
    const auto of = [&](float lowest) {
      const TensorData data = TensorData::from<float>({1, 1, 2, 2}, std::vector<float>{lowest, 3, -2, lowest});
      const auto results = eval_node(node, builtin_ops(), {&data, 1});
      EXPECT_TRUE(results) << op << ": " << results.status().message();
      return results ? results->front().as<float>()[0] : 0;
    };
    EXPECT_EQ(of(-4) == 3 && of(-65504) == 3, def.takes_largest) << op;
    ++seen;
  }
  EXPECT_GE(seen, 4u);
}

TEST(Facts, RangesHold) {
  for (const OpDef* def : functions()) {
    const std::vector<float> y = run(def->name, kSamples);
    for (size_t i = 0; i < y.size(); ++i) {
      if (std::isnan(y[i])) continue;
      if (def->never_negative || def->quant == QuantRule::Fixed01) {
        EXPECT_GE(y[i], 0) << def->name;
      }
      if (def->quant == QuantRule::Fixed01 || def->quant == QuantRule::Fixed11) {
        EXPECT_LE(std::abs(y[i]), 1) << def->name;
      }
      if (def->keeps_range) {
        EXPECT_LE(std::abs(y[i]), std::abs(kSamples[i])) << def->name;
      }
    }
  }
}

TEST(Facts, ScoresAndSlopesAreThoseOfTheFunction) {
  for (const OpDef* def : functions()) {
    const std::vector<float> y = run(def->name, kSamples);
    const float slope = def->slope_attribute.empty() ? 0 : attribute(*def, def->slope_attribute);
    bool is_score = true, bends = true;
    for (size_t i = 0; i < y.size(); ++i) {
      const float x = kSamples[i];
      is_score &= std::abs(y[i] - 1 / (1 + std::exp(-x))) < 1e-6f;
      bends &= y[i] == (x < 0 ? slope * x : x);
    }
    EXPECT_EQ(is_score, def->is_score) << def->name;
    if (!def->slope_attribute.empty()) {
      EXPECT_TRUE(bends) << def->name;
    }
  }
}

TEST(Facts, TotalsAreThoseOfTheReduction) {
  const std::map<Total, float> expected{{Total::Sum, 2},          {Total::Mean, 0.5f},          {Total::Max, 4},
                                        {Total::Min, -4},         {Total::SumOfMagnitudes, 10}, {Total::SumOfSquares, 36},
                                        {Total::RootOfSquares, 6}};
  std::set<Total> seen;
  for (std::string_view op : ops_where([](const OpDef& d) { return d.total != Total::None; })) {
    Node node;
    node.op = op;
    node.inputs = {TensorId{0}};
    node.outputs = {TensorId{1}};
    const TensorData data = TensorData::from<float>({1, 1, 2, 2}, std::vector<float>{4, -4, 0, 2});
    const auto results = eval_node(node, builtin_ops(), {&data, 1});
    ASSERT_TRUE(results) << op << ": " << results.status().message();
    EXPECT_EQ(results->front().as<float>()[0], expected.at(facts_of(op).total)) << op;
    seen.insert(facts_of(op).total);
  }
  EXPECT_EQ(seen.size(), expected.size());
}

TEST(Facts, OpsThatComputeSayWhat) {
  for (std::string_view name : ops_where([](const OpDef& def) { return def.integer_form_of.empty(); })) {
    const OpDef& def = facts_of(name);
    EXPECT_EQ(def.quant == QuantRule::Compute, def.weights != Weights::None || def.arithmetic != Arithmetic::None) << name;
    EXPECT_FALSE(def.weights != Weights::None && def.arithmetic != Arithmetic::None) << name;
  }
}

TEST(Facts, FactorsGoThroughWhereTheOpSaysSo) {
  for (const OpDef* def : functions()) {
    std::vector<float> scaled = kSamples;
    for (float& v : scaled) v *= 4;
    const std::vector<float> y = run(def->name, kSamples), z = run(def->name, scaled);
    bool follows = true;
    for (size_t i = 0; i < y.size(); ++i) follows &= z[i] == 4 * y[i];
    // Unbounded Clip is a copy; its fact depends on the bounds.
    if (def->name != "Clip") {
      EXPECT_EQ(follows, def->scales_through) << def->name;
    }
  }
}

TEST(Facts, NpuFactsFitTogether) {
  size_t tables = 0;
  for (const auto& [name, def] : builtin_ops()) {
    if (def->npu.stage == OutputStage::Table) {
      ++tables;
      EXPECT_EQ(def->pattern, Pattern::Pointwise) << name;
    }
    if (def->npu.form != NpuForm::None && def->npu.stage == OutputStage::Table) {
      EXPECT_EQ(def->engine, Engine::Lut) << name;
    }
    if (!def->integer_form_of.empty()) {
      EXPECT_TRUE(builtin_ops().find(def->integer_form_of)) << name;
    }
    if (def->weights != Weights::None) {
      EXPECT_TRUE(def->npu.takes_tail) << name;
    }
  }
  EXPECT_GE(tables, 10u);
}

TEST(Facts, AnUnknownOperatorHasNone) {
  const OpDef& def = facts_of("my:Custom");
  EXPECT_EQ(def.pattern, Pattern::Other);
  EXPECT_EQ(def.npu.form, NpuForm::None);
  EXPECT_FALSE(def.run);
}

}  // namespace
}  // namespace orknn::ops
