// libFuzzer target: any bytes as the table of a saved model's variables (variables.index), which names places in a small data
// file.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "import/tensorflow/variables.h"

namespace {
// A folder with the data file in it; removed when the program ends.
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("fuzz_variables_" + std::to_string(::getpid()));
  Folder() {
    std::filesystem::create_directories(path);
    std::ofstream(path / "variables.data-00000-of-00001", std::ios::binary) << std::string(256, 'v');
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  constexpr std::string_view kMagic("\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);  // the end of every table
  {
    std::ofstream index(folder.path / "variables.index", std::ios::binary);
    index.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size)) << kMagic;
  }
  const auto bundle = orknn::importer::tensorflow::VariableBundle::open((folder.path / "variables").string());
  if (bundle) (void)bundle->find("kernel");
  return 0;
}
