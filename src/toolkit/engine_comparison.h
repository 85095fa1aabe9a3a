// Whether command streams give what the simulator gives, layer by layer.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "format/program.h"
#include "ir/op_set.h"
#include "runtime/session.h"

namespace orknn::toolkit {

struct LayerComparison {
  std::string type, name;
  bool as_stream = false;
  int64_t elements = 0;
  int64_t unequal = 0;       // bits differ
  int64_t beyond = 0;        // differ by more than the order of float32 additions explains; of integers: differ
  double largest_units = 0;  // largest difference, in units of the float16 numbers (of integers: in steps)
};
struct EngineComparison {
  size_t tensors = 0, different = 0;    // different: with elements beyond
  size_t rounded = 0;                   // tensors of floats that are not equal bit for bit and not different
  std::string first_different;          // name of the tensor
  std::vector<LayerComparison> layers;  // one per task of the program
  std::string unit;                     // that executed the streams, Session::unit_name()
};
// Counts how elements of two tensors of one type and shape differ; floats may differ by `allowed`, per element or none, besides
// one unit.
void compare_elements(const ir::TensorView& a, const ir::TensorView& b, const std::vector<double>& allowed,
                      LayerComparison& layer);

// Whether no two values are further apart after a step of a tail than before it. Of functions of one number, sampled values show
// it.
Result<bool> keeps_distances(const ir::TailStep& step, const ir::OpSet& ops, ThreadPool& pool);

// Runs the model on both engines, which `feed` gives the same inputs. Every layer is judged alone: where a float layer's results
// are not those of the simulator, later layers of the streams continue with the simulator's.
//
// Integers must be equal. The array adds float16 products in float32 in another order than the simulator, so a float may differ
// by one unit of a float16 number, and by what n float32 additions in any order may lose: 2 n 2^-24 times the sum of the
// products' magnitudes. Weights of a mean are float16 numbers on the unit; their rounding is allowed for too.
//
// Streams run where a session runs them by itself, on the board's NPU above all; on the chip model where it has no unit.
Result<EngineComparison> compare_engines(const std::shared_ptr<const format::Model>& model, ThreadPool& pool,
                                         const std::function<Status(runtime::Session&)>& feed);
// The same with two sessions of one model.
Result<EngineComparison> compare_engines(runtime::Session& simulator, runtime::Session& streams, ThreadPool& pool,
                                         const std::function<Status(runtime::Session&)>& feed);
// Adds what another sample gave.
void merge(EngineComparison& total, const EngineComparison& sample);

nlohmann::ordered_json to_json(const EngineComparison& comparison);
// `layers`: with a row for each.
std::string engine_comparison_text(const EngineComparison& comparison, bool layers, size_t width = 0);
// An error that names the first tensor that differs.
Status status_of(const EngineComparison& comparison);

}  // namespace orknn::toolkit
