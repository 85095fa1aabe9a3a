// Archives of PyTorch before version 1.3: model.json describes modules and tensors, attributes.pkl holds attributes, code/ the
// methods of each module in a file of its own.
#pragma once

#include "import/pytorch/model.h"

namespace orknn::importer::pytorch {

Status read_old_archive(const Source& source, const zip::Archive& archive, const std::string& root, Library& library, Heap& heap,
                        Model& model);

}  // namespace orknn::importer::pytorch
