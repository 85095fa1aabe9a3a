#include "import/keras/hdf5.h"

#include <algorithm>
#include <cstring>

namespace orknn::importer::keras {
namespace {

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
constexpr int kMaxTreeDepth = 32;
constexpr size_t kMaxMessages = 1 << 16;
enum MessageType : uint16_t {
  kDataspace = 1,
  kDatatype = 3,
  kLayout = 8,
  kFilters = 11,
  kAttribute = 12,
  kContinuation = 16,
  kSymbolTable = 17
};

Status damaged(const std::string& what) { return invalid_model("the HDF5 file is damaged: " + what); }
Status not_of_keras(const std::string& what) {
  return unsupported("the HDF5 file holds " + what + ", which Keras does not write")
      .hint("save the model again with model.save()");
}

bool begins(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// Takes little-endian numbers off the front; what is not there reads as 0 and is remembered.
class Cursor {
 public:
  explicit Cursor(Bytes bytes) : rest_(bytes) {}
  template <class T>
  T take() {
    T value{};
    const Bytes bytes = this->bytes(sizeof(T));
    if (bytes.size() == sizeof(T)) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  Bytes bytes(uint64_t count) {
    if (count > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const Bytes taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  void skip(uint64_t count) { (void)bytes(count); }
  Bytes rest() const { return rest_; }
  bool failed() const { return failed_; }

 private:
  Bytes rest_;
  bool failed_ = false;
};

uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

std::string text_until_zero(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::string(text.substr(0, text.find('\0')));
}
}  // namespace

bool looks_like_hdf5(Bytes bytes) { return begins(bytes, kSignature); }

Result<Bytes> Hdf5::range(uint64_t address, uint64_t length, const char* what) const {
  if (address > bytes_.size() || length > bytes_.size() - address) return damaged(std::string(what) + " is outside it");
  return bytes_.subspan(address, length);
}

Result<Hdf5> Hdf5::open(Bytes bytes) {
  if (!looks_like_hdf5(bytes)) return invalid_model("this is not an HDF5 file");
  Cursor in(bytes.subspan(kSignature.size()));
  const auto version = in.take<uint8_t>();
  if (version > 1) return not_of_keras("the newer form of groups (version " + std::to_string(version) + ")");
  in.skip(4);
  const auto offset_bytes = in.take<uint8_t>(), length_bytes = in.take<uint8_t>();
  in.skip(1 + 4 + 4 + (version == 1 ? 4 : 0));
  const auto base = in.take<uint64_t>();
  in.skip(3 * 8 + 8);  // free space, end, driver; offset of the root's name
  Hdf5 file(bytes);
  file.root_ = in.take<uint64_t>();
  if (in.failed()) return damaged("it is cut off");
  if (offset_bytes != 8 || length_bytes != 8 || base != 0) return not_of_keras("addresses of another size");
  return file;
}

Result<std::vector<Hdf5::Message>> Hdf5::messages(Object object) const {
  ORKNN_TRY_ASSIGN(const Bytes prefix, range(object, 16, "an object"));
  Cursor head(prefix);
  if (head.take<uint8_t>() != 1)
    return begins(prefix, "OHDR") ? not_of_keras("the newer form of objects") : damaged("an object has no header");
  head.skip(1);
  const auto count = head.take<uint16_t>();
  head.skip(4);
  ORKNN_TRY_ASSIGN(const Bytes first, range(object + 16, head.take<uint32_t>(), "the header of an object"));
  std::vector<Message> all;
  std::vector<Bytes> blocks{first};
  for (size_t block = 0; block < blocks.size(); ++block) {
    Cursor in(blocks[block]);
    while (in.rest().size() >= 8 && all.size() < count) {
      Message message{in.take<uint16_t>(), {}};
      const auto length = in.take<uint16_t>();
      const auto flags = in.take<uint8_t>();
      in.skip(3);
      message.data = in.bytes(length);
      if (in.failed()) return damaged("a message is longer than its header");
      constexpr uint8_t kShared = 2;
      if ((flags & kShared) != 0 && message.type != 0) return not_of_keras("shared messages");
      if (message.type == kContinuation) {
        Cursor where(message.data);
        const auto address = where.take<uint64_t>(), bytes = where.take<uint64_t>();
        if (blocks.size() > kMaxMessages) return damaged("a header never ends");
        ORKNN_TRY_ASSIGN(const Bytes next, range(address, bytes, "the header of an object"));
        blocks.push_back(next);
      }
      all.push_back(message);
    }
  }
  return all;
}

Result<std::string> Hdf5::heap_text(uint64_t heap, uint64_t offset) const {
  ORKNN_TRY_ASSIGN(const Bytes head, range(heap, 32, "a heap"));
  if (!begins(head, "HEAP")) return damaged("a heap has no signature");
  Cursor in(head.subspan(8));
  const auto size = in.take<uint64_t>();
  in.skip(8);
  ORKNN_TRY_ASSIGN(const Bytes data, range(in.take<uint64_t>(), size, "a heap"));
  if (offset > data.size()) return damaged("a name is outside its heap");
  return text_until_zero(data.subspan(offset));
}

Status Hdf5::add_symbols(uint64_t node, uint64_t heap, int depth, size_t& visited,
                         std::vector<std::pair<std::string, Object>>& to) const {
  // A node takes at least as many bytes: more of them than fit into the file are a circle.
  constexpr size_t kLeastNodeBytes = 24;
  if (depth > kMaxTreeDepth || ++visited > bytes_.size() / kLeastNodeBytes)
    return damaged("the members of a group go in circles");
  ORKNN_TRY_ASSIGN(const Bytes head, range(node, 24, "a node of a group"));
  Cursor in(head);
  in.skip(4);
  if (begins(head, "SNOD")) {
    in.skip(2);
    const auto count = in.take<uint16_t>();
    constexpr uint64_t kEntryBytes = 40;
    ORKNN_TRY_ASSIGN(const Bytes entries, range(node + 8, count * kEntryBytes, "a list of members"));
    for (size_t i = 0; i < count; ++i) {
      Cursor entry(entries.subspan(i * kEntryBytes, kEntryBytes));
      const auto name = entry.take<uint64_t>(), object = entry.take<uint64_t>();
      ORKNN_TRY_ASSIGN(std::string text, heap_text(heap, name));
      to.emplace_back(std::move(text), object);
    }
    return {};
  }
  if (!begins(head, "TREE")) return damaged("a group has no members where it says so");
  in.skip(2);
  const auto count = in.take<uint16_t>();
  ORKNN_TRY_ASSIGN(const Bytes children, range(node + 24, count * uint64_t{16}, "a node of a group"));
  for (size_t i = 0; i < count; ++i) {
    Cursor child(children.subspan(i * 16 + 8, 8));  // after its key
    ORKNN_TRY(add_symbols(child.take<uint64_t>(), heap, depth + 1, visited, to));
  }
  return {};
}

Result<std::vector<std::pair<std::string, Hdf5::Object>>> Hdf5::members(Object group) const {
  ORKNN_TRY_ASSIGN(const std::vector<Message> all, messages(group));
  std::vector<std::pair<std::string, Object>> list;
  for (const Message& message : all) {
    if (message.type != kSymbolTable) continue;
    Cursor in(message.data);
    const auto tree = in.take<uint64_t>(), heap = in.take<uint64_t>();
    if (in.failed()) return damaged("a group is cut off");
    size_t visited = 0;
    ORKNN_TRY(add_symbols(tree, heap, 0, visited, list));
  }
  return list;
}

Result<std::optional<Hdf5::Object>> Hdf5::find(Object group, std::string_view path) const {
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    at = end + 1;
    if (name.empty()) continue;
    ORKNN_TRY_ASSIGN(const auto list, members(group));
    const auto found = std::find_if(list.begin(), list.end(), [&](const auto& member) { return member.first == name; });
    if (found == list.end()) return std::optional<Object>();
    group = found->second;
  }
  return std::optional<Object>(group);
}

Result<Hdf5::Type> Hdf5::type_of(Bytes message) {
  Cursor in(message);
  const auto class_and_version = in.take<uint8_t>(), bits = in.take<uint8_t>();
  in.skip(2);
  Type type;
  type.bytes = in.take<uint32_t>();
  if (in.failed() || type.bytes == 0) return damaged("a type is cut off");
  enum Class { kInteger = 0, kFloat = 1, kString = 3, kEnum = 8, kVariable = 9 };
  constexpr uint8_t kBigEndian = 1, kSigned = 8;
  switch (class_and_version & 15) {
    case kInteger: {
      constexpr DType kUnsignedTypes[] = {DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64},
                      kSignedTypes[] = {DType::Int8, DType::Int16, DType::Int32, DType::Int64};
      const int log2 = type.bytes == 1 ? 0 : type.bytes == 2 ? 1 : type.bytes == 4 ? 2 : type.bytes == 8 ? 3 : -1;
      if (log2 < 0 || (bits & kBigEndian) != 0) return type;
      type.kind = Type::Kind::Number;
      type.dtype = (bits & kSigned) != 0 ? kSignedTypes[log2] : kUnsignedTypes[log2];
      return type;
    }
    case kFloat:
      if ((bits & kBigEndian) != 0 || (type.bytes != 2 && type.bytes != 4 && type.bytes != 8)) return type;
      type.kind = Type::Kind::Number;
      type.dtype = type.bytes == 2 ? DType::Float16 : type.bytes == 4 ? DType::Float32 : DType::Float64;
      return type;
    case kEnum:  // h5py's truth values
      if (type.bytes == 1) type.kind = Type::Kind::Number, type.dtype = DType::Bool;
      return type;
    case kString: type.kind = Type::Kind::Text; return type;
    case kVariable:
      if ((bits & 15) == 1 && type.bytes == 16) type.kind = Type::Kind::LinkedText;
      return type;
    default: return type;
  }
}

Result<ir::Dims> Hdf5::dims_of(Bytes message) {
  Cursor in(message);
  const auto version = in.take<uint8_t>(), rank = in.take<uint8_t>();
  in.skip(version == 1 ? 6 : 2);
  ir::Dims dims;
  for (int i = 0; i < rank; ++i) dims.push_back(static_cast<int64_t>(in.take<uint64_t>()));
  if (in.failed() || version < 1 || version > 2 || !ir::checked_element_count(dims)) return damaged("a shape makes no sense");
  return dims;
}

Result<Bytes> Hdf5::linked(uint64_t collection, uint32_t index) const {
  ORKNN_TRY_ASSIGN(const Bytes head, range(collection, 16, "a text"));
  if (!begins(head, "GCOL")) return damaged("a collection of texts has no signature");
  Cursor size(head.subspan(8));
  ORKNN_TRY_ASSIGN(const Bytes whole, range(collection, size.take<uint64_t>(), "a collection of texts"));
  Cursor in(whole);
  in.skip(16);
  while (in.rest().size() >= 16) {
    const auto found = in.take<uint16_t>();
    in.skip(6);
    const auto bytes = in.take<uint64_t>();
    if (found == 0) break;  // the free rest
    const Bytes data = in.bytes(bytes);
    if (in.failed()) break;
    if (found == index) return data;
    in.skip(std::min<uint64_t>(padded(bytes) - bytes, in.rest().size()));
  }
  return damaged("a text is missing");
}

Result<std::vector<std::string>> Hdf5::attribute_texts(const Type& type, uint64_t count, Bytes data) const {
  std::vector<std::string> texts;
  if (count > data.size() / type.bytes) return damaged("an attribute is cut off");
  for (uint64_t i = 0; i < count; ++i) {
    const Bytes element = data.subspan(i * type.bytes, type.bytes);
    if (type.kind == Type::Kind::Text) {
      texts.push_back(text_until_zero(element));
      continue;
    }
    Cursor in(element);
    const auto length = in.take<uint32_t>();
    const auto collection = in.take<uint64_t>();
    const auto index = in.take<uint32_t>();
    if (length == 0) {
      texts.emplace_back();
      continue;
    }
    ORKNN_TRY_ASSIGN(const Bytes text, linked(collection, index));
    if (length > text.size()) return damaged("a text is cut off");
    texts.push_back(text_until_zero(text.first(length)));
  }
  return texts;
}

Result<std::optional<std::vector<std::string>>> Hdf5::texts(Object object, std::string_view attribute) const {
  ORKNN_TRY_ASSIGN(const std::vector<Message> all, messages(object));
  for (const Message& message : all) {
    if (message.type != kAttribute) continue;
    Cursor in(message.data);
    const auto version = in.take<uint8_t>();
    in.skip(1);
    const auto name_bytes = in.take<uint16_t>(), type_bytes = in.take<uint16_t>(), space_bytes = in.take<uint16_t>();
    if (version == 3) in.skip(1);
    const auto part = [&](uint64_t bytes) {
      const Bytes taken = in.bytes(bytes);
      if (version == 1) in.skip(std::min<uint64_t>(padded(bytes) - bytes, in.rest().size()));
      return taken;
    };
    const Bytes name = part(name_bytes), type_message = part(type_bytes), space = part(space_bytes);
    if (in.failed() || version < 1 || version > 3) return damaged("an attribute is cut off");
    if (text_until_zero(name) != attribute) continue;
    ORKNN_TRY_ASSIGN(const Type type, type_of(type_message));
    if (type.kind != Type::Kind::Text && type.kind != Type::Kind::LinkedText) return std::optional<std::vector<std::string>>();
    ORKNN_TRY_ASSIGN(const ir::Dims dims, dims_of(space));
    ORKNN_TRY_ASSIGN(std::vector<std::string> texts,
                     attribute_texts(type, static_cast<uint64_t>(ir::element_count(dims)), in.rest()));
    return std::optional(std::move(texts));
  }
  return std::optional<std::vector<std::string>>();
}

Result<Hdf5Dataset> Hdf5::dataset(Object object) const {
  ORKNN_TRY_ASSIGN(const std::vector<Message> all, messages(object));
  Hdf5Dataset result;
  Bytes layout;
  bool has_shape = false;
  for (const Message& message : all) {
    if (message.type == kDatatype) {
      ORKNN_TRY_ASSIGN(const Type type, type_of(message.data));
      result.dtype = type.dtype;
    } else if (message.type == kDataspace) {
      ORKNN_TRY_ASSIGN(result.dims, dims_of(message.data));
      has_shape = true;
    } else if (message.type == kLayout) {
      layout = message.data;
    } else if (message.type == kFilters) {
      return not_of_keras("compressed weights");
    }
  }
  if (!has_shape || layout.empty()) return damaged("a dataset has no shape or place");
  if (result.dtype == DType::Undefined) return not_of_keras("weights that are not numbers");
  const uint64_t bytes = static_cast<uint64_t>(ir::element_count(result.dims)) * dtype_bytes(result.dtype);
  Cursor in(layout);
  const auto version = in.take<uint8_t>(), kind = in.take<uint8_t>();
  enum Kind { kCompact = 0, kContiguous = 1 };
  if (version != 3 || kind > kContiguous) return not_of_keras("weights in several pieces");
  if (kind == kCompact) {
    const auto stored = in.take<uint16_t>();
    result.data = in.bytes(stored);
    if (in.failed() || result.data.size() != bytes) return damaged("a dataset has another size than its shape");
    return result;
  }
  const auto address = in.take<uint64_t>(), stored = in.take<uint64_t>();
  if (in.failed() || (bytes > 0 && stored < bytes)) return damaged("a dataset is shorter than its shape says");
  if (bytes == 0) return result;
  ORKNN_TRY_ASSIGN(result.data, range(address, bytes, "a dataset"));
  return result;
}

}  // namespace orknn::importer::keras
