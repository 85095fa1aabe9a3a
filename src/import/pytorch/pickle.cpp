#include "import/pytorch/pickle.h"

#include <bit>
#include <cstring>

namespace orknn::importer::pytorch {
namespace {

// Globals are kept as functions named "module name" until they are called.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, Heap& heap, const PickleHost& host) : bytes_(bytes), heap_(heap), host_(host) {}

  Result<Value> run() {
    while (true) {
      start_ = position_;
      ORKNN_TRY_ASSIGN(const uint8_t opcode, number<uint8_t>());
      if (opcode == '.') {
        ORKNN_TRY_ASSIGN(const Value result, pop());
        return result;
      }
      ORKNN_TRY(step(opcode));
      if (heap_.is_exhausted()) return damaged("it is too large");
    }
  }

 private:
  Status damaged(const std::string& what) const {
    return invalid_model("the pickle is damaged at offset " + std::to_string(start_) + ": " + what);
  }

  template <class T>
  Result<T> number() {
    if (bytes_.size() - position_ < sizeof(T)) return damaged("it ends too early");
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof value);
    position_ += sizeof value;
    return value;
  }
  Result<std::string_view> text(uint64_t length) {
    if (bytes_.size() - position_ < length) return damaged("a text is longer than the file");
    const std::string_view result(reinterpret_cast<const char*>(bytes_.data() + position_), length);
    position_ += length;
    return result;
  }
  Result<std::string_view> line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data() + position_), bytes_.size() - position_);
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return damaged("a name has no end");
    position_ += end + 1;
    return rest.substr(0, end);
  }

  Status push(Value v) {
    stack_.push_back(v);
    return {};
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Result<Value> pop() {
    if (stack_.size() <= floor()) return damaged("the stack is empty");
    const Value v = stack_.back();
    stack_.pop_back();
    return v;
  }
  Result<Value> top() {
    if (stack_.size() <= floor()) return damaged("the stack is empty");
    return stack_.back();
  }
  Result<std::vector<Value>> pop_to_mark() {
    if (marks_.empty()) return damaged("there is no mark");
    const auto from = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<Value> items(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }
  Status push_tuple(size_t count) {
    if (stack_.size() - floor() < count) return damaged("the stack is too short");
    std::vector<Value> items(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return push(Value::tuple(heap_.list(std::move(items))));
  }
  Status append(std::span<const Value> items) {
    ORKNN_TRY_ASSIGN(const Value list, top());
    if (list.kind() != Kind::List) return damaged("appending to " + describe(list));
    heap_.charge(items.size());
    list.sequence().items.insert(list.sequence().items.end(), items.begin(), items.end());
    return {};
  }
  Status set_items(std::span<const Value> items) {
    ORKNN_TRY_ASSIGN(const Value dict, top());
    if (dict.kind() != Kind::Dict || items.size() % 2 != 0) return damaged("setting items of " + describe(dict));
    heap_.charge(items.size());
    for (size_t i = 0; i < items.size(); i += 2)
      if (!dict.dict().set(items[i], items[i + 1])) return damaged("a key is a " + describe(items[i]));
    return {};
  }
  Status remember(uint64_t index) {
    ORKNN_TRY_ASSIGN(const Value v, top());
    // Memo numbers run upwards one by one; a gap would let a short file ask for much memory.
    if (index > memo_.size()) return damaged("memo " + std::to_string(index) + " is out of order");
    if (index == memo_.size())
      memo_.push_back(v);
    else
      memo_[index] = v;
    return {};
  }
  Status recall(uint64_t index) {
    if (index >= memo_.size()) return damaged("there is no memo " + std::to_string(index));
    return push(memo_[index]);
  }
  // Little-endian two's complement of up to eight bytes.
  Status push_long(uint64_t length) {
    ORKNN_TRY_ASSIGN(const std::string_view digits, text(length));
    if (length > 8) return damaged("an integer has more than 64 bits");
    uint64_t value = length > 0 && (digits.back() & 0x80) ? ~uint64_t{0} : 0;
    for (size_t i = length; i-- > 0;) value = value << 8 | static_cast<uint8_t>(digits[i]);
    return push(static_cast<int64_t>(value));
  }

  Status step(uint8_t opcode) {
    switch (opcode) {
      case 0x80: {
        ORKNN_TRY_ASSIGN(const uint8_t protocol, number<uint8_t>());
        return protocol <= 5 ? Status() : damaged("protocol " + std::to_string(protocol) + " is not known");
      }
      case 0x95: return number<uint64_t>().status();  // a frame: only a hint for buffering
      case '(': marks_.push_back(stack_.size()); return {};
      case 't': {
        ORKNN_TRY_ASSIGN(auto items, pop_to_mark());
        return push(Value::tuple(heap_.list(std::move(items))));
      }
      case ')': return push_tuple(0);
      case 0x85: return push_tuple(1);
      case 0x86: return push_tuple(2);
      case 0x87: return push_tuple(3);
      case ']': return push(Value::list(heap_.list()));
      case 'a': {
        ORKNN_TRY_ASSIGN(const Value item, pop());
        return append({&item, 1});
      }
      case 'e': {
        ORKNN_TRY_ASSIGN(const auto items, pop_to_mark());
        return append(items);
      }
      case '}': return push(heap_.dict());
      case 's': {
        ORKNN_TRY_ASSIGN(const Value value, pop());
        ORKNN_TRY_ASSIGN(const Value key, pop());
        const Value pair[] = {key, value};
        return set_items(pair);
      }
      case 'u': {
        ORKNN_TRY_ASSIGN(const auto items, pop_to_mark());
        return set_items(items);
      }
      case 'N': return push(Value());
      case 0x88: return push(true);
      case 0x89: return push(false);
      case 'K': return push_number<uint8_t>();
      case 'M': return push_number<uint16_t>();
      case 'J': return push_number<int32_t>();
      case 0x8a: return with<uint8_t>(&Reader::push_long);
      case 0x8b: return with<uint32_t>(&Reader::push_long);
      case 'G': {
        ORKNN_TRY_ASSIGN(const uint64_t bits, number<uint64_t>());  // the one big-endian number of the format
        return push(std::bit_cast<double>(__builtin_bswap64(bits)));
      }
      case 'X':
      case 'T': return with<uint32_t>(&Reader::push_text);
      case 'U':
      case 0x8c: return with<uint8_t>(&Reader::push_text);
      case 0x8d: return with<uint64_t>(&Reader::push_text);
      case 'q': return with<uint8_t>(&Reader::remember);
      case 'r': return with<uint32_t>(&Reader::remember);
      case 0x94: return remember(memo_.size());
      case 'h': return with<uint8_t>(&Reader::recall);
      case 'j': return with<uint32_t>(&Reader::recall);
      default: return step_of_object(opcode);
    }
  }
  // Globals, objects and storages.
  Status step_of_object(uint8_t opcode) {
    switch (opcode) {
      case 'c': {
        ORKNN_TRY_ASSIGN(const std::string_view module, line());
        ORKNN_TRY_ASSIGN(const std::string_view name, line());
        return push_global(module, name);
      }
      case 0x93: {
        ORKNN_TRY_ASSIGN(const Value name, pop());
        ORKNN_TRY_ASSIGN(const Value module, pop());
        if (name.kind() != Kind::String || module.kind() != Kind::String) return damaged("a global without names");
        return push_global(module.text(), name.text());
      }
      case 0x81: {
        ORKNN_TRY_ASSIGN(const Value arguments, pop());
        ORKNN_TRY_ASSIGN(const Value type, pop());
        if (type.kind() != Kind::Function || !is_class(type.text()) || arguments.kind() != Kind::Tuple)
          return damaged("a new object of " + describe(type));
        return push(heap_.object(class_name(type.text())));
      }
      case 'R': {
        ORKNN_TRY_ASSIGN(const Value arguments, pop());
        ORKNN_TRY_ASSIGN(const Value function, pop());
        if (function.kind() != Kind::Function || arguments.kind() != Kind::Tuple) return damaged("calling " + describe(function));
        return call(function.text(), arguments.sequence().items);
      }
      case 'b': {
        ORKNN_TRY_ASSIGN(const Value state, pop());
        ORKNN_TRY_ASSIGN(const Value object, top());
        return build(object, state);
      }
      case 'Q': {
        ORKNN_TRY_ASSIGN(const Value id, pop());
        return push_storage(id);
      }
      default: break;
    }
    char text[8];
    std::snprintf(text, sizeof text, "0x%02x", opcode);
    return damaged(std::string("opcode ") + text + " is not one that TorchScript archives hold")
        .hint("nothing in the file is executed; save the model with torch.jit.save");
  }

  // Reads the number that an opcode is about and hands it on.
  template <class T>
  Status with(Status (Reader::*use)(uint64_t)) {
    ORKNN_TRY_ASSIGN(const T value, number<T>());
    return (this->*use)(value);
  }
  template <class T>
  Status push_number() {
    ORKNN_TRY_ASSIGN(const T value, number<T>());
    return push(static_cast<int64_t>(value));
  }
  Status push_text(uint64_t length) {
    ORKNN_TRY_ASSIGN(const std::string_view value, text(length));
    return push(heap_.string(std::string(value)));
  }

  static bool is_class(std::string_view global) { return global.starts_with("__torch__"); }
  // "__torch__.a.b C" is class __torch__.a.b.C.
  static std::string class_name(std::string global) {
    global[global.find(' ')] = '.';
    return global;
  }

  Status push_global(std::string_view module, std::string_view name) {
    const std::string global = std::string(module) + " " + std::string(name);
    static constexpr std::string_view kKnown[] = {"collections OrderedDict",
                                                  "torch._utils _rebuild_tensor_v2",
                                                  "torch._utils _rebuild_tensor_v3",
                                                  "torch._utils _rebuild_tensor",
                                                  "torch._utils _rebuild_qtensor",
                                                  "torch._utils _rebuild_parameter",
                                                  "torch.jit._pickle build_intlist",
                                                  "torch.jit._pickle build_doublelist",
                                                  "torch.jit._pickle build_boollist",
                                                  "torch.jit._pickle build_tensorlist",
                                                  "torch.jit._pickle restore_type_tag",
                                                  "torch.jit._pickle build_tensor_from_id",
                                                  "torch per_tensor_affine",
                                                  "torch per_channel_affine",
                                                  "torch per_channel_affine_float_qparams",
                                                  "torch device",
                                                  "torch Size"};
    bool known = is_class(module) || (module == "torch" && (name.ends_with("Storage") || scalar_type_of_name(name)));
    for (std::string_view k : kKnown) known |= k == global;
    if (!known)
      return damaged("'" + std::string(module) + "." + std::string(name) + "' is not a name that TorchScript archives hold")
          .hint("nothing in the file is executed; save the model with torch.jit.save");
    return push(heap_.text(Kind::Function, global));
  }

  Status push_storage(const Value& id) {
    if (id.kind() != Kind::Tuple || id.sequence().items.size() < 5) return damaged("a storage without description");
    const auto& parts = id.sequence().items;
    if (parts[0].kind() != Kind::String || parts[0].text() != "storage" || parts[1].kind() != Kind::Function ||
        parts[2].kind() != Kind::String || parts[4].kind() != Kind::Int)
      return damaged("a storage has an unexpected description");
    const std::string_view type = parts[1].text();
    ORKNN_TRY_ASSIGN(const Storage* storage, host_.storage(type.substr(type.find(' ') + 1), parts[2].text(), parts[4].integer()));
    TensorValue* whole = heap_.tensor();
    whole->storage = storage;
    whole->dims = {storage->count};
    whole->strides = {1};
    return push(whole);
  }

  static bool read_ints(const Value& v, std::vector<int64_t>& out) {
    if (!v.is_sequence() || v.sequence().items.size() > 64) return false;
    for (const Value& item : v.sequence().items) {
      if (item.kind() != Kind::Int) return false;
      out.push_back(item.integer());
    }
    return true;
  }

  // (storage, offset, size, stride, ...)
  Result<TensorValue*> rebuild_tensor(std::span<const Value> arguments) {
    if (arguments.size() < 4 || !arguments[0].is_tensor() || !arguments[0].tensor().storage || arguments[1].kind() != Kind::Int)
      return damaged("a tensor without storage");
    TensorValue* t = heap_.tensor();
    t->storage = arguments[0].tensor().storage;
    t->storage_offset = arguments[1].integer();
    t->is_complex = t->storage->type_name == "complex64";
    if (!read_ints(arguments[2], t->dims) || !read_ints(arguments[3], t->strides) || t->dims.size() != t->strides.size())
      return damaged("a tensor has an impossible shape");
    return t;
  }

  Result<std::vector<double>> numbers_of(const Value& v) {
    std::vector<double> numbers;
    if (!v.is_tensor() || !v.tensor().storage) return damaged("quantization parameters are not a tensor");
    const TensorValue& t = v.tensor();
    const Storage& s = *t.storage;
    if (t.dims.size() != 1 || t.strides[0] != 1 || t.dims[0] < 0 || t.storage_offset < 0 || t.dims[0] > s.count ||
        t.storage_offset > s.count - t.dims[0] || s.dtype == DType::Undefined)
      return damaged("quantization parameters are outside their storage");
    std::vector<std::byte> copy(
        s.bytes.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(t.storage_offset) * dtype_bytes(s.dtype)),
        s.bytes.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(t.storage_offset + t.dims[0]) * dtype_bytes(s.dtype)));
    return ir::to_doubles(ir::TensorView{s.dtype, t.dims, copy.data()});
  }

  // The quantization of a tensor: (scheme, scale, zero point) or (scheme, scales, zero points, axis).
  Status read_quantization(const Value& v, TensorValue& t) {
    if (!v.is_sequence() || v.sequence().items.size() < 3 || v.sequence().items[0].kind() != Kind::Function)
      return damaged("a quantized tensor without parameters");
    const auto& parts = v.sequence().items;
    Quantization q;
    q.dtype = t.storage->dtype;
    if (parts[0].text() == "torch per_tensor_affine") {
      if (!parts[1].is_number() || parts[2].kind() != Kind::Int) return damaged("a quantized tensor without scale");
      q.scales = {parts[1].number()};
      q.zero_points = {parts[2].integer()};
    } else {
      if (parts.size() < 4 || parts[3].kind() != Kind::Int) return damaged("a quantized tensor without axis");
      ORKNN_TRY_ASSIGN(q.scales, numbers_of(parts[1]));
      ORKNN_TRY_ASSIGN(const auto zeros, numbers_of(parts[2]));
      for (double z : zeros) q.zero_points.push_back(Value(z).integer());
      q.axis = parts[3].integer();
      if (q.axis < 0 || q.axis >= static_cast<int64_t>(t.dims.size()) || q.zero_points.size() != q.scales.size() ||
          static_cast<int64_t>(q.scales.size()) != t.dims[static_cast<size_t>(q.axis)])
        return damaged("the scales of a quantized tensor do not fit its shape");
    }
    t.quantization = std::move(q);
    return {};
  }

  Status call(std::string_view function, const std::vector<Value>& arguments) {
    const std::string_view name = function.substr(function.find(' ') + 1);
    if (is_class(function)) {  // an enumeration: class and value
      ObjectValue* object = heap_.object(class_name(std::string(function)));
      if (!arguments.empty()) object->attributes["value"] = arguments[0];
      return push(object);
    }
    if (name == "OrderedDict") return push(heap_.dict());
    if (name == "_rebuild_tensor_v2" || name == "_rebuild_tensor_v3" || name == "_rebuild_tensor") {
      ORKNN_TRY_ASSIGN(TensorValue* const t, rebuild_tensor(arguments));
      return push(t);
    }
    if (name == "_rebuild_qtensor") {
      ORKNN_TRY_ASSIGN(TensorValue* const t, rebuild_tensor(arguments));
      if (arguments.size() < 5) return damaged("a quantized tensor without parameters");
      ORKNN_TRY(read_quantization(arguments[4], *t));
      return push(t);
    }
    if (arguments.empty()) return damaged("'" + std::string(name) + "' is called without arguments");
    if (name == "build_tensor_from_id") {
      if (!host_.tensor || arguments[0].kind() != Kind::Int) return damaged("a tensor without number");
      ORKNN_TRY_ASSIGN(const Value t, host_.tensor(arguments[0].integer()));
      return push(t);
    }
    if (name == "device")
      return push(arguments[0].kind() == Kind::String ? Value::text(Kind::Device, &arguments[0].text()) : Value());
    // The rest wraps a container or tensor that stays what it is.
    return push(arguments[0]);
  }

  Status build(const Value& object, const Value& state) {
    if (object.kind() != Kind::Object)
      return object.kind() == Kind::Dict ? Status() : damaged("setting the state of " + describe(object));
    ObjectValue& o = object.object();
    o.state = state;
    if (state.kind() != Kind::Dict) return {};
    heap_.charge(state.dict().items.size());
    for (const auto& [key, value] : state.dict().items) {
      if (key.kind() != Kind::String) return damaged("an attribute without name");
      o.attributes[key.text()] = value;
    }
    return {};
  }

  std::span<const std::byte> bytes_;
  Heap& heap_;
  const PickleHost& host_;
  size_t position_ = 0, start_ = 0;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::vector<Value> memo_;
};
}  // namespace

Result<Value> read_pickle(std::span<const std::byte> bytes, Heap& heap, const PickleHost& host) {
  return Reader(bytes, heap, host).run();
}

}  // namespace orknn::importer::pytorch
