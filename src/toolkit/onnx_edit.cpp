#include "toolkit/onnx_edit.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "toolkit/edited_samples.h"

namespace orknn::toolkit {

Result<std::vector<std::string>> edit_onnx(const OnnxEdit& edit) {
  ORKNN_TRY_ASSIGN(importer::onnx::Edited edited,
                   importer::onnx::edit_model(edit.model, edit.export_path, edit.inputs, edit.outputs));
  if (edit.dataset.empty()) return std::move(edited.log);
  ORKNN_TRY_ASSIGN(const std::string list, write_edited_samples(edit.dataset, edited.inputs, edit.export_path));
  edited.log.push_back(fmt::format("The calibration list of the edited model is {}", to_utf8(list)));
  return std::move(edited.log);
}

}  // namespace orknn::toolkit
