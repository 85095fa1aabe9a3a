// Sessions over files that change while they are in use.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "format/rknn_file.h"
#include "ir/text.h"
#include "temporary_folder.h"

namespace orknn::runtime {
namespace {

// y = relu(x) + w, with a w too large for the file to be copied when it is opened.
format::Model large_model() {
  constexpr int64_t kElements = static_cast<int64_t>(MappedFile::kCopiedBytes / sizeof(float)) + 1;
  format::Program p;
  ir::Graph& g = p.graph;
  const ir::TensorId x = g.add_tensor("x", DType::Float32, ir::Shape{1}), a = g.add_tensor("a", DType::Float32, ir::Shape{1}),
                     y = g.add_tensor("y", DType::Float32, ir::Shape{kElements});
  ir::TensorData ones = ir::TensorData::allocate(DType::Float32, {kElements});
  std::fill_n(static_cast<float*>(ones.mutable_data()), kElements, 1.0f);
  const ir::TensorId w = g.add_constant("w", std::move(ones));
  g.add_node({.op = "Relu", .name = "relu", .inputs = {x}, .outputs = {a}});
  g.add_node({.op = "Add", .name = "add", .inputs = {a, w}, .outputs = {y}});
  g.inputs() = {x};
  g.outputs() = {y};
  for (ir::NodeId id : g.order()) p.tasks.push_back({.node = id});
  p.buffers.resize(g.tensor_count());
  p.inputs.push_back({.tensor = x});
  p.outputs.push_back({.tensor = y});
  format::Model model;
  model.name = "large";
  model.target_platform = "rk3588";
  model.float_dtype = "float32";
  model.programs.push_back(std::move(p));
  return model;
}

// Quantized uint8 of the source, computed in int8 by the chip.
TEST(Session, QuantizedBytesOfTheSourceAreHandedOutAsTheyAre) {
  format::Program p;
  ir::Graph& g = p.graph;
  const ir::TensorId x = g.add_tensor("x", DType::Int8, ir::Shape{3}), y = g.add_tensor("y", DType::Int8, ir::Shape{3});
  for (ir::TensorId t : {x, y}) g.tensor(t).quant = ir::QuantParams{.scale = {0.5f}, .zero_point = {-128}};
  g.add_node({.op = "Identity", .name = "copy", .inputs = {x}, .outputs = {y}});
  g.inputs() = {x};
  g.outputs() = {y};
  for (ir::NodeId id : g.order()) p.tasks.push_back({.node = id});
  p.buffers.resize(g.tensor_count());
  p.inputs.push_back({.tensor = x});
  p.outputs.push_back({.tensor = y, .dtype = DType::UInt8});
  auto model = std::make_shared<format::Model>();
  model->target_platform = "rk3588";
  model->programs.push_back(std::move(p));
  auto session = Session::open(model);
  ASSERT_TRUE(session) << session.status().to_string();
  const std::vector<float> values{0, 1.5f, 127.5f};
  InputData data;
  data.dtype = DType::Float32;
  data.data = values.data();
  data.bytes = 3 * sizeof(float);
  ASSERT_TRUE((*session)->set_input(0, data));
  ASSERT_TRUE((*session)->run());
  const ir::TensorData out = (*session)->output(0);
  ASSERT_EQ(out.dtype(), DType::UInt8);
  EXPECT_EQ(std::vector<uint8_t>(out.values<uint8_t>().begin(), out.values<uint8_t>().end()), (std::vector<uint8_t>{0, 3, 255}));
}

TEST(Session, AFileThatIsShortenedDuringARunIsAnErrorOfThatRun) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("large.rknn");
  ASSERT_TRUE(format::write_rknn(large_model(), path));
  const auto size = std::filesystem::file_size(path);
  auto session = Session::open(path);
  ASSERT_TRUE(session) << session.status().to_string();
  ASSERT_TRUE((*session)->run());
  EXPECT_EQ((*session)->output(0).values<float>().back(), 1.0f);

  sim::RunHooks hooks;
  hooks.observe = [&](ir::TensorId tensor, const ir::TensorView&) {
    if ((*session)->program().graph.tensor(tensor).name == "a") std::filesystem::resize_file(path, 4096);
  };
  const Status s = (*session)->run(hooks);
  EXPECT_EQ(s.code(), Code::Io);
  EXPECT_NE(s.to_string().find("was shortened while it was read"), std::string::npos) << s.to_string();
  EXPECT_FALSE((*session)->has_run());
  std::filesystem::resize_file(path, size);  // zeros now
  EXPECT_FALSE((*session)->run()) << "its weights are lost";
  const auto damaged = Session::open(path);
  EXPECT_EQ(damaged.status().code(), Code::InvalidModel);
}

}  // namespace
}  // namespace orknn::runtime
