// Operators of ProgramDesc in the words of Paddle 3.
#pragma once

#include "import/paddle/program.h"

namespace orknn::importer::paddle {

// An operator as ProgramDesc has it: inputs and outputs by the names of their places.
struct OldOperator {
  std::string type;
  std::map<std::string, std::vector<std::string>, std::less<>> inputs, outputs;
  std::map<std::string, Attribute, std::less<>> attributes;
};

Operator in_new_words(OldOperator old);

}  // namespace orknn::importer::paddle
