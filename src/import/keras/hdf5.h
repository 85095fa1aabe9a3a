// HDF5 files as Keras and h5py write them: groups by symbol table, attributes that hold texts, and datasets in one piece. Nothing
// is copied; every address and length is checked against the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/shape.h"

namespace orknn::importer::keras {

using Bytes = std::span<const std::byte>;

bool looks_like_hdf5(Bytes bytes);

struct Hdf5Dataset {
  DType dtype = DType::Undefined;
  ir::Dims dims;
  Bytes data;  // exactly the elements
};

class Hdf5 {
 public:
  using Object = uint64_t;  // address of its header
  static Result<Hdf5> open(Bytes bytes);

  Object root() const { return root_; }
  // Members of a group with their names, in the order of the file.
  Result<std::vector<std::pair<std::string, Object>>> members(Object group) const;
  // The object at `path` below a group ("a/b"); nothing when there is none.
  Result<std::optional<Object>> find(Object group, std::string_view path) const;
  // The texts of an attribute, one for a single text; nothing when there is no such attribute or it holds none.
  Result<std::optional<std::vector<std::string>>> texts(Object object, std::string_view attribute) const;
  Result<Hdf5Dataset> dataset(Object object) const;

 private:
  struct Message {
    uint16_t type = 0;
    Bytes data;
  };
  struct Type {
    enum class Kind { Other, Number, Text, LinkedText } kind = Kind::Other;
    DType dtype = DType::Undefined;
    uint64_t bytes = 0;  // of an element
  };
  explicit Hdf5(Bytes bytes) : bytes_(bytes) {}
  Result<Bytes> range(uint64_t address, uint64_t length, const char* what) const;
  Result<std::vector<Message>> messages(Object object) const;
  Status add_symbols(uint64_t node, uint64_t heap, int depth, size_t& visited,
                     std::vector<std::pair<std::string, Object>>& to) const;
  Result<std::string> heap_text(uint64_t heap, uint64_t offset) const;
  Result<Bytes> linked(uint64_t collection, uint32_t index) const;
  Result<std::vector<std::string>> attribute_texts(const Type& type, uint64_t count, Bytes data) const;
  static Result<Type> type_of(Bytes message);
  static Result<ir::Dims> dims_of(Bytes message);

  Bytes bytes_;
  Object root_ = 0;
};

}  // namespace orknn::importer::keras
