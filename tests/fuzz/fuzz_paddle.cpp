// libFuzzer target: the length of a program in four bytes, the program (.pdmodel or .json), then its parameters; what imports
// gets its shapes inferred. Bytes whose length says more than there is are a program alone.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "import/paddle/model.h"
#include "ir/infer.h"
#include "ops/eval.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orknn;
  namespace paddle = importer::paddle;
  auto text = std::as_bytes(std::span(data, size));
  std::span<const std::byte> rest;
  uint32_t length = 0;
  if (size >= sizeof(length)) std::memcpy(&length, data, sizeof(length));
  if (size >= sizeof(length) && length <= size - sizeof(length)) {
    rest = text.subspan(sizeof(length) + length);
    text = text.subspan(sizeof(length), length);
  }
  const auto program = paddle::parse_program(text);
  if (!program) return 0;
  const auto parameters = paddle::read_parameters(rest, nullptr, *program);
  auto imported = paddle::import_program(*program, parameters ? &*parameters : nullptr, {}, ops::builtin_ops());
  if (imported) (void)infer_shapes(imported->graph, ops::builtin_ops()).is_ok();
  return 0;
}
