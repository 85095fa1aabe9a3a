#include "import/tflite/flatbuffer.h"

namespace orknn::importer::tflite {

void FlatFile::fail(uint64_t at, std::string_view what) const {
  if (damage_.is_ok())
    damage_ = invalid_model("the file is damaged: " + std::string(what) + " at offset " + std::to_string(at) + " leaves it")
                  .found(std::to_string(bytes_.size()) + " bytes")
                  .hint("download or convert the model again");
}

bool FlatFile::check(uint64_t at, uint64_t size, std::string_view what) const {
  if (at <= bytes_.size() && size <= bytes_.size() - at) return true;
  fail(at, what);
  return false;
}

Table::Table(const FlatFile& file, uint64_t at) {
  if (!file.check(at, 4, "a table")) return;
  const int64_t vtable = static_cast<int64_t>(at) - file.load<int32_t>(at);
  if (vtable < 0 || !file.check(static_cast<uint64_t>(vtable), 4, "the field list of a table")) {
    file.fail(at, "the field list of the table");
    return;
  }
  const auto vtable_bytes = file.load<uint16_t>(static_cast<uint64_t>(vtable)),
             object_bytes = file.load<uint16_t>(static_cast<uint64_t>(vtable) + 2);
  if (vtable_bytes < 4 || !file.check(static_cast<uint64_t>(vtable), vtable_bytes, "the field list of a table") ||
      !file.check(at, object_bytes, "a table")) {
    file.fail(at, "the table");
    return;
  }
  file_ = &file;
  at_ = at;
  vtable_ = static_cast<uint64_t>(vtable);
  vtable_bytes_ = vtable_bytes;
  object_bytes_ = object_bytes;
}

uint64_t Table::field(unsigned id, uint64_t size) const {
  const uint64_t slot = 4 + 2 * uint64_t{id};
  if (!file_ || slot + 2 > vtable_bytes_) return 0;
  const auto offset = file_->load<uint16_t>(vtable_ + slot);
  if (offset == 0) return 0;
  if (offset < 4 || offset + size > object_bytes_) {
    file_->fail(at_ + offset, "a field");
    return 0;
  }
  return at_ + offset;
}

uint64_t Table::target(unsigned id) const {
  const uint64_t at = field(id, 4);
  return at ? at + file_->load<uint32_t>(at) : 0;
}

Table Table::table(unsigned id) const {
  const uint64_t at = target(id);
  return at ? Table(*file_, at) : Table();
}

size_t Table::vector(unsigned id, uint64_t element_bytes, uint64_t& first) const {
  const uint64_t at = target(id);
  if (!at || !file_->check(at, 4, "a vector")) return 0;
  const auto count = file_->load<uint32_t>(at);
  if (!file_->check(at + 4, count * element_bytes, "a vector")) return 0;
  first = at + 4;
  return count;
}

std::string_view Table::text(unsigned id) const {
  const Numbers<char> characters = numbers<char>(id);
  return {reinterpret_cast<const char*>(characters.bytes().data()), characters.size()};
}

Tables Table::tables(unsigned id) const {
  uint64_t first = 0;
  const size_t count = vector(id, 4, first);
  return count ? Tables(*file_, first, count) : Tables();
}

Table Tables::operator[](size_t i) const {
  ORKNN_ASSERT(i < count_, "index inside of the vector");
  const uint64_t at = first_ + 4 * uint64_t{i};
  return Table(*file_, at + file_->load<uint32_t>(at));
}

Table root_table(const FlatFile& file) { return file.check(0, 8, "the root") ? Table(file, file.load<uint32_t>(0)) : Table(); }

}  // namespace orknn::importer::tflite
