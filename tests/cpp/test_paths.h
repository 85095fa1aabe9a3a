// Where tests find their data and the programs they start.
#pragma once

namespace orknn::tests {
extern const char* const kSourceFolder;  // the root of the tree
extern const char* const kBuildFolder;
}  // namespace orknn::tests
