// Small models for tests of the C API, and what its programs do again and again.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "format/rknn_file.h"
#include "ir/text.h"
#include "openrknn.h"
#include "rknn_api.h"

namespace orknn::tests {

// A model of the graph `text`: 4-D ports are NCHW, every other tensor is placed in the arena.
inline format::Model capi_model(const std::string& text, const std::string& chip = "rk3588") {
  format::Program p;
  auto graph = ir::parse(text);
  EXPECT_TRUE(graph) << graph.status().to_string();
  p.graph = std::move(*graph);
  ir::Graph& g = p.graph;
  p.buffers.resize(g.tensor_count());
  for (ir::NodeId id : g.order()) {
    p.tasks.push_back({.node = id, .device = format::Device::Npu});
    for (ir::TensorId t : g.node(id).outputs) {
      format::Buffer& b = p.buffers[static_cast<size_t>(t.index)];
      b.bytes = static_cast<uint64_t>(ir::element_count(*ir::to_dims(*g.tensor(t).shape))) * dtype_bytes(g.tensor(t).dtype);
      b.place = g.is_output(t) ? format::Buffer::Place::External : format::Buffer::Place::Arena;
      if (g.is_output(t)) continue;
      b.offset = p.arena_bytes;
      p.arena_bytes += (b.bytes + 63) / 64 * 64;
    }
  }
  const auto port = [&](ir::TensorId t) {
    const bool picture = g.tensor(t).shape->size() == 4;
    return format::Port{.tensor = t, .layout = picture ? ir::Layout::NCHW : ir::Layout::Undefined};
  };
  for (ir::TensorId t : g.inputs()) p.inputs.push_back(port(t));
  for (ir::TensorId t : g.outputs()) p.outputs.push_back(port(t));
  format::Model model;
  model.name = "capi";
  model.target_platform = chip;
  model.source_framework = "ONNX";
  model.toolkit_version = "0.1.0";
  model.float_dtype = "float16";
  model.programs.push_back(std::move(p));
  return model;
}

inline std::vector<std::byte> bytes_of(const format::Model& model) { return *format::write_rknn_to_memory(model); }

// int8 in, int8 out: y = x twice along the channels, with scales of their own on both sides.
inline format::Model int8_model(int64_t channels, int64_t height, int64_t width, const std::string& chip = "rk3588") {
  const auto shape = [&](int64_t c) {
    return "int8[1," + std::to_string(c) + "," + std::to_string(height) + "," + std::to_string(width) + "]";
  };
  format::Model m = capi_model("graph \"g\" (%x: " + shape(channels) + ") -> (%y) {\n  %a: " + shape(channels) +
                                   " = Identity(%x)\n  %y: " + shape(2 * channels) + " = Concat(%a, %a) {axis = 1}\n}",
                               chip);
  ir::Graph& g = m.programs[0].graph;
  for (const char* name : {"x", "a", "y"}) g.tensor(g.find_tensor(name)).quant = ir::QuantParams{{0.5f}, {3}, -1, {}, {}};
  m.programs[0].inputs[0].mean.assign(static_cast<size_t>(channels), 10.f);
  m.programs[0].inputs[0].std.assign(static_cast<size_t>(channels), 2.f);
  return m;
}

// A chain of `steps` layers over `elements` floats.
inline format::Model chain_model(int steps, int64_t elements, const std::string& chip = "rk3588") {
  const std::string type = "float32[" + std::to_string(elements) + "]";
  std::string text = "graph \"chain\" (%t0: " + type + ") -> (%t" + std::to_string(steps) + ") {\n";
  for (int i = 1; i <= steps; ++i)
    text +=
        "  %t" + std::to_string(i) + ": " + type + " = " + (i % 2 ? "Sigmoid" : "Tanh") + "(%t" + std::to_string(i - 1) + ")\n";
  format::Model m = capi_model(text + "}", chip);
  // Neighbours in the chain take turns in two places.
  format::Program& p = m.programs[0];
  const auto bytes = static_cast<uint64_t>(elements) * 4;
  for (int i = 1; i < steps; ++i)
    p.buffers[static_cast<size_t>(p.graph.find_tensor("t" + std::to_string(i)).index)].offset =
        i % 2 ? 0 : (bytes + 63) / 64 * 64;
  p.arena_bytes = 2 * ((bytes + 63) / 64 * 64);
  m.float_dtype = "float32";
  return m;
}

// A context that is destroyed at the end.
class TestContext {
 public:
  explicit TestContext(const std::vector<std::byte>& model, uint32_t flags = 0, rknn_init_extend* extend = nullptr) {
    EXPECT_EQ(rknn_init(&handle_, const_cast<std::byte*>(model.data()), static_cast<uint32_t>(model.size()), flags, extend),
              RKNN_SUCC)
        << orknn_last_error();
  }
  TestContext(const TestContext&) = delete;
  TestContext& operator=(const TestContext&) = delete;
  ~TestContext() { rknn_destroy(handle_); }
  operator rknn_context() const { return handle_; }

  rknn_tensor_attr attr(rknn_query_cmd command, uint32_t index = 0) const {
    rknn_tensor_attr a;
    std::memset(&a, 0xee, sizeof a);
    a.index = index;
    EXPECT_EQ(rknn_query(handle_, command, &a, sizeof a), RKNN_SUCC) << orknn_last_error();
    return a;
  }
  template <class T>
  void set_input(std::vector<T> data, rknn_tensor_type type, rknn_tensor_format format) {
    rknn_input input{};
    input.buf = data.data();
    input.size = static_cast<uint32_t>(data.size() * sizeof(T));
    input.type = type;
    input.fmt = format;
    EXPECT_EQ(rknn_inputs_set(handle_, 1, &input), RKNN_SUCC) << orknn_last_error();
  }
  std::vector<uint8_t> output(bool as_float = false, uint64_t* frame = nullptr) {
    rknn_output out{};
    out.want_float = as_float;
    rknn_output_extend extend{};
    EXPECT_EQ(rknn_outputs_get(handle_, 1, &out, &extend), RKNN_SUCC) << orknn_last_error();
    if (frame) *frame = extend.frame_id;
    const auto* p = static_cast<const uint8_t*>(out.buf);
    std::vector<uint8_t> bytes(p, p + out.size);
    rknn_outputs_release(handle_, 1, &out);
    return bytes;
  }

 private:
  rknn_context handle_ = 0;
};

// Memory that is destroyed at the end.
class TestMemory {
 public:
  TestMemory(rknn_context context, size_t bytes) : mem_(rknn_create_mem(context, static_cast<uint32_t>(bytes))) {
    EXPECT_NE(mem_, nullptr) << orknn_last_error();
  }
  TestMemory(const TestMemory&) = delete;
  TestMemory& operator=(const TestMemory&) = delete;
  ~TestMemory() { rknn_destroy_mem(0, mem_); }
  operator rknn_tensor_mem*() const { return mem_; }
  rknn_tensor_mem* operator->() const { return mem_; }
  uint8_t* data() const { return static_cast<uint8_t*>(mem_->virt_addr); }
  template <class T>
  void fill(const std::vector<T>& values) {
    ASSERT_LE(values.size() * sizeof(T), mem_->size);
    std::memcpy(mem_->virt_addr, values.data(), values.size() * sizeof(T));
  }
  std::vector<uint8_t> bytes(size_t count) const { return {data(), data() + count}; }

 private:
  rknn_tensor_mem* mem_;
};

template <class T>
std::vector<T> ramp(size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(i * 7 % 120);
  return values;
}

}  // namespace orknn::tests
