// Caffe networks: the description (text or bytes; layers of all three generations become alike) and the weights, found by the
// names of the layers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/caffe/message.h"
#include "ir/tensor_data.h"

namespace orknn::importer::caffe {

struct InputDescription {
  std::string name;
  std::optional<ir::Dims> shape;
};

struct LayerDescription {
  std::string name, type;  // the type as current Caffe spells it
  std::vector<std::string> bottoms, tops;
  std::vector<std::string> parameter_names;  // blobs of the same name are shared; "" = not named
  Message fields;
  bool is_oldest = false;  // a V0 layer: `fields` holds its parameters without a message around them

  // The message with the parameters of the layer, an empty one when absent.
  const Message& parameters(std::string_view name) const { return is_oldest ? fields : fields.message(name); }
};

// Layers that exist in the test phase, in the order of the file.
struct NetDescription {
  std::string name;
  std::vector<InputDescription> inputs;
  std::vector<LayerDescription> layers;
};

// Extents and values of one blob. Values of a mapped file are views of it where alignment allows.
struct Blob {
  ir::Dims dims;
  ir::TensorData values;  // one axis
};
using Weights = std::unordered_map<std::string, std::vector<Blob>>;

bool looks_like_text(wire::Bytes bytes);
bool looks_like_net(wire::Bytes bytes);

Result<NetDescription> parse_net(wire::Bytes bytes);
// `keeper` holds `bytes`.
Result<Weights> parse_weights(wire::Bytes bytes, std::shared_ptr<const void> keeper);

}  // namespace orknn::importer::caffe
