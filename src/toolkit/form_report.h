// How the tensors of a model lie in memory while the simulator runs it: as rows, or in blocks of channels as on the chip, and
// where one becomes the other. It is what the simulator's own plan says.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "format/program.h"

namespace orknn::toolkit {

struct FormReport {
  struct Tensor {
    std::string name, shape;
    bool blocks = false;
  };
  struct Conversion {
    size_t layer = 0;
    std::string name, tensor;  // of the layer; what it reads or makes
    bool to_blocks = false;
  };
  std::vector<Tensor> tensors;  // that layers of the first program make, in their order
  std::vector<Conversion> conversions;
};
Result<FormReport> describe_forms(const format::Model& model);
nlohmann::ordered_json to_json(const FormReport& report);
std::string forms_text(const FormReport& report, size_t width = 0);

}  // namespace orknn::toolkit
