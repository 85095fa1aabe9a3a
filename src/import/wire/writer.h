// Protocol Buffers messages under construction. Contents that stand in other memory, such as weights in a mapped file, are
// referred to and must outlive the message; they are copied nowhere before write().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "import/wire/reader.h"

namespace orknn::importer::wire {

class Writer {
 public:
  Writer& number(uint32_t field, uint64_t value);
  Writer& text(uint32_t field, std::string_view value);  // copied
  Writer& message(uint32_t field, const Writer& value);
  // A field as it was read; its contents are referred to.
  Writer& field(const Field& field);

  uint64_t size() const { return size_; }
  Status write(FileWriter& out) const;
  Result<std::vector<std::byte>> to_bytes() const;

 private:
  struct Piece {
    std::string own;
    Bytes elsewhere;  // after `own`
  };
  void append(std::string_view bytes);
  void append_varint(uint64_t value);
  void append_word(uint64_t bits, size_t bytes);
  void refer(Bytes bytes);

  std::vector<Piece> pieces_;
  uint64_t size_ = 0;
};

}  // namespace orknn::importer::wire
