// Every invariant of a program, broken one at a time: the verifier names it, and reader, writer and executor all refuse.
#include "format/verify.h"

#include <gtest/gtest.h>

#include "format/program_code.h"
#include "format/rknn_file.h"
#include "format_sample.h"
#include "ir/verify.h"
#include "ops/eval.h"
#include "sim/executor.h"

namespace orknn::format {
namespace {
Buffer& buffer(Program& p, const char* tensor) { return p.buffers[static_cast<size_t>(p.graph.find_tensor(tensor).index)]; }

// Changes the node that computes `tensor`.
template <class Change>
void edit(Program& p, const char* tensor, Change change) {
  const ir::NodeId id = p.graph.producer(p.graph.find_tensor(tensor));
  ir::Node n = p.graph.node(id);
  change(n);
  p.graph.replace_node(id, std::move(n));
}

struct Damage {
  const char* message;
  void (*apply)(Program& p);
};
const Damage kDamages[] = {
    {"the number of tasks differs", [](Program& p) { p.tasks.pop_back(); }},
    {"the number of buffers differs", [](Program& p) { p.buffers.pop_back(); }},
    {"a task names no node", [](Program& p) { p.tasks[0].node = {99}; }},
    {"a task names no node", [](Program& p) { p.tasks[0].node = {-1}; }},
    {"a task is of no known kind", [](Program& p) { p.tasks[1].device = static_cast<Device>(9); }},
    {"a task is of no known kind", [](Program& p) { p.tasks[1].engine = static_cast<ir::Engine>(99); }},
    {"two tasks run the same node", [](Program& p) { p.tasks[1].node = p.tasks[0].node; }},
    {"is read before it is computed", [](Program& p) { std::swap(p.tasks[0], p.tasks[1]); }},
    {"a buffer has an unknown place", [](Program& p) { buffer(p, "x").place = static_cast<Buffer::Place>(4); }},
    {"is not inside the arena", [](Program& p) { buffer(p, "a").offset = p.arena_bytes; }},
    {"is not inside the arena", [](Program& p) { buffer(p, "a").offset = ~uint64_t{63}; }},
    {"is not inside the arena", [](Program& p) { buffer(p, "b").offset += 1; }},
    {"is not inside the arena", [](Program& p) { buffer(p, "a").bytes = 1; }},
    {"is not inside the arena", [](Program& p) { p.arena_bytes = 64; }},
    {"memory that is in use", [](Program& p) { buffer(p, "b").offset = buffer(p, "a").offset; }},
    {"has planned memory but no known size", [](Program& p) { p.graph.tensor(p.graph.find_tensor("a")).shape.reset(); }},
    {"has an impossible shape",
     [](Program& p) {
       p.graph.tensor(p.graph.find_tensor("a")).shape = ir::Shape{1 << 30, 1 << 30, 1 << 30};
     }},
    {"has a negative extent",
     [](Program& p) {
       p.graph.tensor(p.graph.find_tensor("a")).shape = ir::Shape{1, -3, 2, 2};
     }},
    {"has no type", [](Program& p) { p.graph.tensor(p.graph.find_tensor("a")).dtype = DType::Undefined; }},
    {"has an unknown element type", [](Program& p) { p.graph.tensor(p.graph.find_tensor("a")).dtype = static_cast<DType>(8); }},
    {"has an unknown layout", [](Program& p) { p.graph.tensor(p.graph.find_tensor("a")).layout = static_cast<ir::Layout>(3); }},
    {"has another type or shape than its value",
     [](Program& p) {
       p.graph.tensor(p.graph.find_tensor("w")).shape = ir::Shape{1, 3, 1, 2};
     }},
    {"an input port names no tensor", [](Program& p) { p.inputs[0].tensor = {1000}; }},
    {"an output port names no tensor", [](Program& p) { p.outputs[1].tensor = {}; }},
    {"has an unknown type or layout", [](Program& p) { p.outputs[0].dtype = DType::Undefined; }},
    {"is a constant or given twice", [](Program& p) { p.inputs.push_back(p.inputs[0]); }},
    {"is read before it is computed", [](Program& p) { p.inputs.clear(); }},
    {"a graph input is not a tensor", [](Program& p) { p.graph.inputs().push_back({1000}); }},
    {"is listed twice or has a second source", [](Program& p) { p.graph.inputs().push_back(p.graph.inputs()[0]); }},
    {"is listed twice or has a second source", [](Program& p) { p.graph.inputs().push_back(p.graph.find_tensor("b")); }},
    {"a graph output is not a tensor", [](Program& p) { p.graph.outputs().push_back({}); }},
    {"graph output 'free' has no source", [](Program& p) { p.graph.outputs().push_back(p.graph.add_tensor("free")); }},
    {"input 'x' has no source", [](Program& p) { p.graph.inputs().clear(); }},
    {"is computed but also a constant",
     [](Program& p) { p.graph.tensor(p.graph.find_tensor("b")) = p.graph.tensor(p.graph.find_tensor("other")); }},
    {"the graph has a cycle", [](Program& p) { edit(p, "a", [&](ir::Node& n) { n.inputs[0] = p.graph.find_tensor("b"); }); }},
    {"a fused step names no operand", [](Program& p) { edit(p, "a", [](ir::Node& n) { n.tail[0].operand = 0; }); }},
    {"a fused step names no operand", [](Program& p) { edit(p, "a", [](ir::Node& n) { n.tail[0].operand = 7; }); }},
    {"fewer inputs than its fused steps need",
     [](Program& p) { edit(p, "a", [](ir::Node& n) { n.tail.insert(n.tail.end(), 4, n.tail[0]); }); }},
    {"graph output 'q' has no source",
     [](Program& p) {
       edit(p, "unused", [](ir::Node& n) {
         auto body = std::make_shared<ir::Graph>(**n.attributes.get<std::shared_ptr<const ir::Graph>>("then_branch"));
         body->remove_node(body->order()[0]);
         n.attributes.set("then_branch", std::shared_ptr<const ir::Graph>(std::move(body)));
       });
     }},
    {"tensor 'b' has too many axes",
     [](Program& p) { p.graph.tensor(p.graph.find_tensor("b")).shape = ir::Shape(ir::kMostAxes + 1, ir::Dim(1)); }},
    {"graphs are nested too deeply",
     [](Program& p) {
       edit(p, "unused", [](ir::Node& n) {
         auto body = *n.attributes.get<std::shared_ptr<const ir::Graph>>("then_branch");
         for (int depth = 0; depth < ir::kMostNestedGraphs; ++depth) {
           auto around = std::make_shared<ir::Graph>(*body);
           ir::Node holder = around->node(around->order()[0]);
           holder.attributes.set("body", body);
           around->replace_node(around->order()[0], std::move(holder));
           body = std::move(around);
         }
         n.attributes.set("then_branch", body);
       });
     }},
};

// As a reader sees the program, which the writer would have refused.
Result<Program> read_back(const Program& program) {
  WeightCollector weights;
  ByteWriter out;
  encode_program(program, weights, out);
  std::vector<std::byte> section(weights.section_bytes());
  for (const WeightCollector::Piece& piece : weights.pieces())
    std::copy(piece.bytes.begin(), piece.bytes.end(), section.begin() + static_cast<ptrdiff_t>(piece.offset));
  ByteReader in(out.bytes());
  return decode_program(in, {section, nullptr});
}

TEST(VerifyProgram, TheSampleIsSound) {
  const Program program = std::move(sample_model(true).programs[0]);
  const Status s = verify(program);
  EXPECT_TRUE(s) << s.to_string();
  EXPECT_TRUE(read_back(program));
}

TEST(VerifyProgram, NamesEachBrokenInvariant) {
  for (const Damage& damage : kDamages) {
    Model model = sample_model(true);
    damage.apply(model.programs[0]);
    const Status s = verify(model.programs[0]);
    EXPECT_NE(s.to_string().find(damage.message), std::string::npos) << damage.message << " expected, found " << s.to_string();
    const auto bytes = write_rknn_to_memory(model);
    EXPECT_EQ(bytes.status().message(), s.message()) << "the writer";
    const auto executor = sim::Executor::create(model.programs[0], ops::builtin_ops());
    EXPECT_EQ(executor.status().message(), s.message()) << "the executor";
    EXPECT_FALSE(read_back(model.programs[0])) << "the reader: " << damage.message;
  }
}

}  // namespace
}  // namespace orknn::format
