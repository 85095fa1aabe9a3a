// A program lowered to our graph.
#pragma once

#include "import/paddle/params.h"

namespace orknn::importer::paddle {

// `parameters` is null for a program without a parameter file: values are made up.
Result<Imported> import_program(const Program& program, const ParameterValues* parameters, const ImportOptions& options,
                                const ir::OpSet& ops);

}  // namespace orknn::importer::paddle
