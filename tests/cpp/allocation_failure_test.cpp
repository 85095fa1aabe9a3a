// Memory runs out at one allocation of a call, for allocations spread over the whole call: the call returns an error or the right
// result, and the next one on the same object works.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <new>
#include <random>
#include <utility>

#include "base/log.h"
#include "data/npy.h"
#include "failing_allocation.h"
#include "mutation.h"
#include "onnx_writer.h"
#include "openrknn.h"
#include "rknn_api.h"
#include "runtime/session.h"
#include "temporary_folder.h"
#include "toolkit/builder.h"

namespace orknn::tests {
namespace {
using toolkit::Builder;

constexpr int kFloat = 1;  // TensorProto

std::vector<float> numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  return values;
}

struct Network {
  const char* name;
  std::string onnx;
  Ints input;
  bool quantized;
};

std::string convolutions() {
  return model(graph({{node("Conv", {"x", "w", "b"}, {"a"}, {attribute_ints("pads", {1, 1, 1, 1})}, "conv"),
                       node("Relu", {"a"}, {"r"}, {}, "relu"),
                       node("MaxPool", {"r"}, {"p"}, {attribute_ints("kernel_shape", {2, 2}), attribute_ints("strides", {2, 2})},
                            "pool"),
                       node("Conv", {"p", "d"}, {"e"}, {attribute_int("group", 4)}, "depthwise"),
                       node("GlobalAveragePool", {"e"}, {"y"}, {}, "mean")},
                      {float_tensor("w", {4, 3, 3, 3}, numbers(108, 1)), float_tensor("b", {4}, numbers(4, 2)),
                       float_tensor("d", {4, 1, 3, 3}, numbers(36, 3))},
                      {value_info("x", kFloat, {"1", "3", "8", "8"})},
                      {value_info("y", kFloat, {"1", "4", "1", "1"})}}),
               17)
      .bytes();
}

std::string attention() {
  return model(graph({{node("MatMul", {"x", "w"}, {"q"}, {}, "query"),
                       node("Transpose", {"x"}, {"t"}, {attribute_ints("perm", {0, 2, 1})}, "turned"),
                       node("MatMul", {"q", "t"}, {"s"}, {}, "scores"), node("Softmax", {"s"}, {"m"}, {}, "softmax"),
                       node("MatMul", {"m", "x"}, {"o"}, {}, "mixed"), node("Add", {"o", "x"}, {"y"}, {}, "residual")},
                      {float_tensor("w", {8, 8}, numbers(64, 4))},
                      {value_info("x", kFloat, {"1", "6", "8"})},
                      {value_info("y", kFloat, {"1", "6", "8"})}}),
               17)
      .bytes();
}

// Functions that become tables, and what is computed to fill them.
std::string functions() {
  return model(
             graph({{node("Conv", {"x", "w"}, {"a"}, {}, "conv"), node("Sigmoid", {"a"}, {"s"}, {}, "sigmoid"),
                     node("Mul", {"a", "s"}, {"g"}, {}, "gate"), node("Conv", {"g", "v"}, {"b"}, {}, "second"),
                     node("Tanh", {"b"}, {"t"}, {}, "tanh"), node("Add", {"t", "s"}, {"u"}, {}, "sum"),
                     node("Exp", {"u"}, {"e"}, {}, "exp"), node("Softmax", {"e"}, {"y"}, {attribute_int("axis", 1)}, "softmax")},
                    {float_tensor("w", {4, 3, 1, 1}, numbers(12, 6)), float_tensor("v", {4, 4, 1, 1}, numbers(16, 7))},
                    {value_info("x", kFloat, {"1", "3", "4", "4"})},
                    {value_info("y", kFloat, {"1", "4", "4", "4"})}}),
             17)
      .bytes();
}

std::vector<Network> networks() {
  return {{"convolutions", convolutions(), {1, 3, 8, 8}, false},
          {"convolutions in int8", convolutions(), {1, 3, 8, 8}, true},
          {"functions in int8", functions(), {1, 3, 4, 4}, true},
          {"attention", attention(), {1, 6, 8}, false}};
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A network with its files.
class Case {
 public:
  explicit Case(const Network& network) : network_(network) {
    std::ofstream(folder_.file("m.onnx"), std::ios::binary) << network.onnx;
    input_ = ir::TensorData::from<float>(network.input, numbers(static_cast<size_t>(ir::element_count(network.input)), 5));
    EXPECT_TRUE(data::write_npy(folder_.file("x.npy"), input_));
    std::ofstream(folder_.file("list.txt")) << folder_.file("x.npy") << "\n" << folder_.file("x.npy") << "\n";
  }
  std::string rknn() const { return folder_.file("m.rknn"); }

  Result<Builder> created() const {
    toolkit::BuildConfig config;
    config.target_platform = "rk3588";
    return Builder::create(config);
  }
  Status load(Builder& builder) const { return builder.load_model({folder_.file("m.onnx"), "onnx"}); }
  Status build(Builder& builder) const {
    return builder.build({.do_quantization = network_.quantized, .dataset = network_.quantized ? folder_.file("list.txt") : ""});
  }
  Status write(const Builder& builder) const { return builder.export_rknn(rknn()); }
  Builder loaded() const {
    Builder builder = std::move(*created());
    const Status s = load(builder);
    EXPECT_TRUE(s) << s.to_string();
    return builder;
  }
  Builder built() const {
    Builder builder = loaded();
    const Status s = build(builder);
    EXPECT_TRUE(s) << s.to_string();
    return builder;
  }
  // The file of a built model.
  Result<std::string> exported(const Builder& builder) const {
    std::filesystem::remove(rknn());
    ORKNN_TRY(write(builder));
    return content_of(rknn());
  }
  Result<std::string> run(runtime::Session& session) const {
    ORKNN_TRY(session.set_input(0, {.dtype = DType::Float32, .data = input_.data(), .bytes = input_.bytes()}));
    ORKNN_TRY(session.run());
    const ir::TensorData y = session.output(0);
    return std::string(static_cast<const char*>(y.data()), y.bytes());
  }
  size_t files() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(rknn()).parent_path()))
      ++count;
    return count;
  }
  const Network& network() const { return network_; }
  const ir::TensorData& input() const { return input_; }

 private:
  Network network_;
  TemporaryFolder folder_;
  ir::TensorData input_;
};

// An exception is an error of a C++ call too: the C functions, Python and the command line translate it.
template <class Call, class Subject>
Result<std::string> attempt(Call& call, Subject& subject) {
  try {
    return call(subject);
  } catch (const std::bad_alloc&) {
    return Status::error(Code::OutOfMemory, "memory ran out");
  }
}

constexpr int kFew = 60;

// Tries `call` on a new subject with failing allocations spread evenly over it, each followed by an undisturbed call on the same
// subject. `call` returns what was computed, and `outcome` what became of the subject.
template <class Make, class Call, class Outcome>
void fail_allocations(const std::string& name, int tries, Make make, Call call, Outcome outcome) {
  std::string expected, whole;
  int64_t total = 0;
  {
    auto subject = make();
    const FailingAllocation none(FailingAllocation::kNone);
    auto result = attempt(call, subject);
    ASSERT_TRUE(result) << name << ": " << result.status().to_string();
    total = none.counted();
    expected = *result;
    whole = outcome(subject);
  }
  ASSERT_GT(total, 0) << name;
  const int64_t wanted = std::min<int64_t>(total, mutation_count(tries));
  int64_t tried = 0, errors = 0;
  std::mt19937 random(11);
  for (; tried < wanted; ++tried) {
    const int64_t begin = total * tried / wanted, end = total * (tried + 1) / wanted;
    const int64_t number = begin + static_cast<int64_t>(random() % static_cast<uint64_t>(std::max<int64_t>(end - begin, 1)));
    SCOPED_TRACE(name + ", allocation " + std::to_string(number) + " of " + std::to_string(total));
    auto subject = make();
    Result<std::string> first = Status::error(Code::Fail, "not tried");
    {
      const FailingAllocation failure(number);
      first = attempt(call, subject);
    }
    errors += !first;
    if (first) {
      EXPECT_TRUE(*first == expected) << "a wrong result instead of an error";
      EXPECT_TRUE(outcome(subject) == whole) << "a call without error leaves something else";
    }
    const Result<std::string> next = attempt(call, subject);
    ASSERT_TRUE(next) << "the next call: " << next.status().to_string();
    EXPECT_TRUE(*next == expected) << "the next call gives another result";
    EXPECT_TRUE(outcome(subject) == whole) << "the next call leaves something else";
  }
  std::printf("%-44s %6ld allocations, %3ld made to fail, %3ld errors\n", name.c_str(), static_cast<long>(total),
              static_cast<long>(tried), static_cast<long>(errors));
  EXPECT_GT(errors, 0) << name;
}

template <class Make, class Call>
void fail_allocations(const std::string& name, Make make, Call call) {
  fail_allocations(name, kFew, make, call, [](const auto&) { return std::string(); });
}

class AllocationFailure : public testing::TestWithParam<Network> {
 protected:
  void SetUp() override {
    orknn_set_thread_count(0);  // the first C call chooses where log lines go
    set_log_sink([](LogLevel, std::string_view, std::string_view) {});
  }
  void TearDown() override { set_log_sink({}); }
  std::string name(const char* stage) const { return std::string(GetParam().name) + ": " + stage; }
};

TEST_P(AllocationFailure, LoadBuildAndExport) {
  const Case c(GetParam());
  const std::string file = *c.exported(c.built());
  fail_allocations(
      name("load"), [&] { return std::move(*c.created()); },
      [&](Builder& builder) -> Result<std::string> {
        ORKNN_TRY(c.load(builder));
        return std::to_string(builder.imported()->network.graph.node_count());
      });
  // Quantizing takes most decisions: none of them may depend on memory.
  fail_allocations(
      name("build"), GetParam().quantized ? 10 * kFew : kFew, [&] { return c.loaded(); },
      [&](Builder& builder) -> Result<std::string> {
        ORKNN_TRY(c.build(builder));
        return std::string();
      },
      [&](const Builder& builder) { return c.exported(builder).value(); });
  fail_allocations(
      name("export"), [&] { return c.built(); }, [&](Builder& builder) { return c.exported(builder); });
  // After all that, the same file, and no other beside it.
  EXPECT_TRUE(c.exported(c.built()).value() == file);
  EXPECT_EQ(c.files(), 4u);
}

TEST_P(AllocationFailure, OpenAndRun) {
  const Case c(GetParam());
  ASSERT_TRUE(c.exported(c.built()));
  fail_allocations(
      name("open a session and run"), [] { return 0; },
      [&](int) -> Result<std::string> {
        ORKNN_TRY_ASSIGN(const auto session, runtime::Session::open(c.rknn()));
        return c.run(*session);
      });
  // Kernels prepare themselves in the first run: one that fails there must not stay unprepared.
  fail_allocations(
      name("first run of a session"), [&] { return std::move(*runtime::Session::open(c.rknn())); },
      [&](std::unique_ptr<runtime::Session>& session) { return c.run(*session); });
}

// No exception leaves a C function, and its error code is negative.
TEST_P(AllocationFailure, CFunctions) {
  const Case c(GetParam());
  ASSERT_TRUE(c.exported(c.built()));
  struct Context {
    rknn_context handle = 0;
    Context() = default;
    Context(Context&& other) noexcept : handle(std::exchange(other.handle, 0)) {}
    ~Context() {
      if (handle) rknn_destroy(handle);
    }
  };
  const auto status_of = [](auto function) {
    int code = RKNN_ERR_FAIL;
    try {
      code = function();
    } catch (...) {
      ADD_FAILURE() << "an exception left a C function";
    }
    EXPECT_LE(code, RKNN_SUCC);
    return code == RKNN_SUCC ? Status() : Status::error(Code::Fail, std::to_string(code));
  };
  rknn_input input{};
  input.buf = const_cast<void*>(c.input().data());
  input.size = static_cast<uint32_t>(c.input().bytes());
  input.type = RKNN_TENSOR_FLOAT32;
  input.fmt = GetParam().input.size() == 4 ? RKNN_TENSOR_NCHW : RKNN_TENSOR_UNDEFINED;
  std::string path = c.rknn();
  fail_allocations(
      name("rknn_init to rknn_outputs_get"), [] { return Context(); },
      [&](Context& context) -> Result<std::string> {
        if (!context.handle) ORKNN_TRY(status_of([&] { return rknn_init(&context.handle, path.data(), 0, 0, nullptr); }));
        ORKNN_TRY(status_of([&] { return rknn_inputs_set(context.handle, 1, &input); }));
        ORKNN_TRY(status_of([&] { return rknn_run(context.handle, nullptr); }));
        rknn_output output{};
        output.want_float = 1;
        ORKNN_TRY(status_of([&] { return rknn_outputs_get(context.handle, 1, &output, nullptr); }));
        std::string values(static_cast<const char*>(output.buf), output.size);
        ORKNN_TRY(status_of([&] { return rknn_outputs_release(context.handle, 1, &output); }));
        return values;
      });
}

INSTANTIATE_TEST_SUITE_P(Networks, AllocationFailure, testing::ValuesIn(networks()), [](const auto& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

}  // namespace
}  // namespace orknn::tests
