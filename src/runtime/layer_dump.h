// Files with the values of every layer: log levels 5 and 6 of the runtime (RKNN_DUMP_DIR, RKNN_DUMP_QUANT) and Toolkit1's
// NN_LAYER_DUMP. Names and contents: docs/library.md.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "format/program.h"
#include "ir/tensor_data.h"

namespace orknn::runtime {

struct DumpOptions {
  enum class Form {
    Runtime,   // 025_ConvClip_385_shape_1_384_14_14_float.npy
    Toolkit1,  // conv1_25_out0_nchw_1_384_14_14.tensor: a text, one number per line
  };
  Form form = Form::Runtime;
  std::string folder;         // has to exist
  bool stored_types = false;  // quantized and half values as they are in memory; otherwise as float32
  bool as_text = false;       // Runtime form: the same numbers beside the .npy as .txt, one per line
};

// What RKNN_DUMP_DIR and RKNN_DUMP_QUANT say at this log level; nothing below level 5.
std::optional<DumpOptions> runtime_dump(int log_level);
// Into the current directory when NN_LAYER_DUMP is set to a number other than 0.
std::optional<DumpOptions> toolkit1_dump();

// The files of one run. Files that cannot be written are E lines and nothing more: the run matters more than its dumps.
class LayerDump {
 public:
  // `program` must outlive the dump.
  LayerDump(const format::Program& program, DumpOptions options);
  // An input or a result, as RunHooks::observe gives it. `as_given`: an input whose numbers are those of the caller, which keep
  // their type.
  void write(ir::TensorId tensor, const ir::TensorView& value, bool as_given = false);

 private:
  struct Layer {
    size_t id = 0;  // position in the layer table, from 0: inputs, then layers
    size_t output = 0;
    std::string type, name;
  };
  std::string file_stem(const Layer& layer, const ir::Tensor& tensor, const ir::TensorData& value);

  const format::Program& program_;
  DumpOptions options_;
  std::map<int32_t, Layer> layers_;  // by the index of the tensor
  std::set<std::string> used_;       // stems of this run
};

}  // namespace orknn::runtime
