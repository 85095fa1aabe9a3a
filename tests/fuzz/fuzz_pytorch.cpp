// libFuzzer target: any bytes as a TorchScript archive; what imports gets its shapes inferred. Bytes that are no archive are
// taken as the code of a model, so that the fuzzer reaches the interpreter without first learning zip.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "import/importer.h"
#include "import/pytorch/source.h"
#include "import/zip/archive.h"
#include "ir/infer.h"
#include "ops/eval.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orknn;
  importer::Source source;
  source.bytes = std::as_bytes(std::span(data, size));
  if (!importer::zip::looks_like_archive(source.bytes)) {
    (void)importer::pytorch::parse_source(std::string_view(reinterpret_cast<const char*>(data), size)).is_ok();
    return 0;
  }
  auto imported = importer::load_bytes(source, {}, ops::builtin_ops(), "pytorch");
  if (imported) (void)infer_shapes(imported->graph, ops::builtin_ops()).is_ok();
  return 0;
}
