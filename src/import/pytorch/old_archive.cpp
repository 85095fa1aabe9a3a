#include "import/pytorch/old_archive.h"

#include "import/pytorch/json_value.h"
#include "import/pytorch/pickle.h"

namespace orknn::importer::pytorch {
namespace {
constexpr uint64_t kMaxTextBytes = uint64_t{1} << 28;
constexpr int kMaxJsonDepth = 64;

struct TensorType {
  std::string_view json, name;
};
constexpr TensorType kTensorTypes[] = {{"FLOAT", "float32"}, {"DOUBLE", "float64"},   {"FLOAT16", "float16"}, {"INT64", "int64"},
                                       {"INT32", "int32"},   {"INT16", "int16"},      {"INT8", "int8"},       {"UINT8", "uint8"},
                                       {"BOOL", "bool"},     {"BFLOAT16", "bfloat16"}};

class OldArchive {
 public:
  OldArchive(const Source& source, const zip::Archive& archive, const std::string& root, Library& library, Heap& heap,
             Model& model)
      : source_(source), archive_(archive), root_(root), library_(library), heap_(heap), model_(model) {}

  Status read() {
    ORKNN_TRY_ASSIGN(const std::string text, entry_text("model.json"));
    ORKNN_TRY_ASSIGN(const Value description, read_json(text, heap_));
    ORKNN_TRY(read_tensors(member(description, "tensors")));
    if (archive_.find(root_ + "attributes.pkl")) ORKNN_TRY(read_attributes());
    ORKNN_TRY_ASSIGN(model_.root, read_module(member(description, "mainModule"), "model", 0));
    model_.constants = tensors_;  // constants are numbered like all tensors
    return {};
  }

 private:
  Result<std::string> entry_text(const std::string& name) {
    const zip::Entry* entry = archive_.find(root_ + name);
    if (!entry) return invalid_model("the archive has no entry '" + root_ + name + "'");
    return archive_.text(*entry, kMaxTextBytes);
  }

  Result<std::vector<int64_t>> integers(const Value& list) {
    std::vector<int64_t> values;
    if (!list.is_sequence()) return values;  // absent: no axes
    for (const Value& item : list.sequence().items) {
      const auto number = integer_of(item);
      if (!number || values.size() >= 64) return invalid_model("model.json has an unexpected description of a tensor");
      values.push_back(*number);
    }
    return values;
  }

  Status read_tensors(const Value& list) {
    if (!list.is_sequence()) return {};
    StorageReader storages(source_, archive_, root_, heap_);
    for (const Value& item : list.sequence().items) {
      TensorValue* t = heap_.tensor();
      ORKNN_TRY_ASSIGN(t->dims, integers(member(item, "dims")));
      ORKNN_TRY_ASSIGN(t->strides, integers(member(item, "strides")));
      t->storage_offset = integer_of(member(item, "offset")).value_or(0);
      const std::string type_name = text_member(item, "dataType"), key = text_member(member(item, "data"), "key");
      const ScalarType* type = nullptr;
      for (const TensorType& name : kTensorTypes)
        if (name.json == type_name) type = scalar_type_of_name(name.name);
      if (!type) return unsupported("tensors of type " + type_name + " are not supported").node(key, "tensor");
      if (t->strides.size() != t->dims.size())
        return invalid_model("model.json has an unexpected description of a tensor").node(key, "tensor");
      const zip::Entry* entry = archive_.find(root_ + key);
      ORKNN_TRY_ASSIGN(t->storage, storages.find(*type, key, entry ? static_cast<int64_t>(entry->size / type->bytes) : 0));
      tensors_.push_back(Value(t));
    }
    return {};
  }

  Status read_attributes() {
    ORKNN_TRY_ASSIGN(const std::string bytes, entry_text("attributes.pkl"));
    PickleHost host;
    host.storage = [](std::string_view, std::string_view, int64_t) -> Result<const Storage*> {
      return invalid_model("attributes hold a storage");
    };
    host.tensor = [this](int64_t number) -> Result<Value> {
      if (number < 0 || static_cast<size_t>(number) >= tensors_.size())
        return invalid_model("there is no tensor " + std::to_string(number));
      return tensors_[static_cast<size_t>(number)];
    };
    auto value = read_pickle(std::as_bytes(std::span(bytes.data(), bytes.size())), heap_, host);
    if (!value) return Status(value.status()).node("attributes.pkl", "pickle");
    if (value->is_sequence()) attributes_ = value->sequence().items;
    return {};
  }

  Result<Value> read_module(const Value& description, const std::string& path, int depth) {
    if (description.kind() != Kind::Dict || depth > kMaxJsonDepth)
      return invalid_model("model.json has an unexpected description of a module").node(path, "module");
    ObjectValue* object = heap_.object("__torch__." + path);
    if (const Value list = member(description, "parameters"); list.is_sequence())
      for (const Value& p : list.sequence().items) {
        const auto number = integer_of(member(p, "tensorId"));
        if (!number || *number < 0 || static_cast<size_t>(*number) >= tensors_.size())
          return invalid_model("a parameter has no tensor").node(path, "module");
        object->attributes[text_member(p, "name")] = tensors_[static_cast<size_t>(*number)];
      }
    if (const Value list = member(description, "attributes"); list.is_sequence())
      for (const Value& a : list.sequence().items) {
        const auto number = integer_of(member(a, "id"));
        if (!number || *number < 0 || static_cast<size_t>(*number) >= attributes_.size())
          return invalid_model("an attribute has no value").node(path, "module");
        object->attributes[text_member(a, "name")] = attributes_[static_cast<size_t>(*number)];
      }
    if (const Value list = member(description, "submodules"); list.is_sequence())
      for (const Value& m : list.sequence().items) {
        const std::string name = text_member(m, "name");
        ORKNN_TRY_ASSIGN(const Value child, read_module(m, path + "." + name, depth + 1));
        object->attributes[name] = child;
      }
    Class type;
    type.name = path;
    if (const std::string key = text_member(member(description, "torchscriptArena"), "key"); !key.empty()) {
      ORKNN_TRY_ASSIGN(const SourceFile* file, library_.file(key));
      if (!file) return invalid_model("the archive has no entry '" + root_ + key + "'");
      type.methods = file->functions;
    }
    library_.add_class(object->class_name, std::move(type));
    return Value(object);
  }

  const Source& source_;
  const zip::Archive& archive_;
  const std::string& root_;
  Library& library_;
  Heap& heap_;
  Model& model_;
  std::vector<Value> tensors_, attributes_;
};
}  // namespace

Status read_old_archive(const Source& source, const zip::Archive& archive, const std::string& root, Library& library, Heap& heap,
                        Model& model) {
  return OldArchive(source, archive, root, library, heap, model).read();
}

}  // namespace orknn::importer::pytorch
