// What If, Loop and Scan share: inference and execution of a body, with bounds against bodies made to exhaust the machine.
#pragma once

#include <span>
#include <vector>

#include "ir/op_def.h"

namespace orknn::ops {

// More scan outputs or carried values than this are refused.
constexpr size_t kMaxLoopBytes = size_t{1} << 30;
// What a value costs beside its bytes; many small ones add up.
constexpr size_t kPartOverhead = 256;

// Alive while a body is inferred or run. Nested bodies cost a multiple at each level, so their depth is bounded.
class BodyScope {
 public:
  BodyScope();
  ~BodyScope();
  BodyScope(const BodyScope&) = delete;
  BodyScope& operator=(const BodyScope&) = delete;
  Status status() const;
  // Whether any is alive: what is inferred or run then belongs to a body.
  static bool any();
  // Counts one iteration of a loop, together with those of all loops around it; an error when they are too many.
  static Status count_iteration();
};

// The body attribute `name` with as many inputs as the node feeds it and `outputs` outputs (or more when `at_least`).
Result<const ir::Graph*> body_of(const ir::NodeReader& node, std::string_view name, size_t inputs, size_t outputs,
                                 bool at_least = false);

// Facts about a body's outputs, given those about its inputs. Only type, shape and content are set.
Result<std::vector<ir::TensorFacts>> infer_body(const ir::Graph& body, const ir::OpSet& ops,
                                                std::span<const ir::TensorFacts> inputs);

// Facts about a body that is run again and again. Inputs `first` to `first + count` are carried: each takes the value of the
// output at the same distance from `first_output` in the next round. Where a carried shape changes, `inputs` is
// weakened until it holds for all rounds.
Result<std::vector<ir::TensorFacts>> infer_repeated_body(const ir::Graph& body, const ir::OpSet& ops,
                                                         std::vector<ir::TensorFacts>& inputs, size_t first, size_t count,
                                                         size_t first_output);

// What is true of both; the types must agree.
Result<ir::TensorFacts> join_facts(const ir::TensorFacts& a, const ir::TensorFacts& b);

// Input i as a value that lives as long as the run.
ir::TensorData borrowed_input(const ir::RunContext& c, size_t i);
// Every input from `first` on must be there.
Status require_inputs(const ir::InferContext& c, size_t first);
// Hands over an output of a body. It is copied where it is one of the node's inputs passed through.
Status deliver_output(ir::RunContext& c, size_t i, const ir::TensorData& value);

// What `iterations` of a body add to its scan outputs fits, as far as the shapes of the parts are known.
Status check_scan_bytes(std::span<const ir::TensorFacts> parts, int64_t iterations);
// The error of scan outputs that are too large after so many iterations.
Status too_many_bytes(int64_t iterations);
// The error of a scan output that does not keep its shape from one iteration to the next.
Status changing_part(std::span<const int64_t> before, std::span<const int64_t> after);

// Joins the values of all iterations along a new axis, which is at most the rank of the parts. `empty` tells type and shape when
// there were no iterations (unknown extents are 0).
Status deliver_scan(ir::RunContext& c, size_t i, std::span<const ir::TensorData> parts, int64_t axis, bool reverse,
                    const ir::TensorFacts& empty);

}  // namespace orknn::ops
