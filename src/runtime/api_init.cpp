// Making, duplicating and destroying contexts. Checks are made in the order of docs/errors.md; a refused call changes nothing.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>

#include "format/model_facts.h"
#include "format/rknn_file.h"
#include "runtime/configuration.h"
#include "runtime/context_call.h"
#include "runtime/custom_op_plugins.h"
#include "runtime/remote_device.h"
#include "runtime/shared_weights.h"
#include "runtime/tensor_attr.h"

namespace orknn::runtime {
namespace {
using namespace ir;

// What a refused call returns when the code depends on more than the status.
struct Refusal {
  int code = RKNN_SUCC;
  std::string text;
};

// A model and the buffer it lies in.
struct Loaded {
  format::Model model;
  rknn_tensor_mem memory{};
  std::shared_ptr<const void> keeper;
};

// The part of a file or buffer that `extend` names. Samples of the vendor's guide leave the fields uninitialized when they
// share weights: what cannot be meant is then the whole.
struct Slice {
  uint64_t offset = 0, bytes = 0;  // 0 bytes = to the end
};
bool is_slice_of(const rknn_init_extend& e, uint64_t total) {
  return e.real_model_offset >= 0 && static_cast<uint64_t>(e.real_model_offset) < total &&
         e.real_model_size <= total - static_cast<uint64_t>(e.real_model_offset);
}
bool begins_a_model(std::span<const std::byte> bytes) { return bytes.size() >= 4 && std::memcmp(bytes.data(), "RKNN", 4) == 0; }

std::span<const std::byte> head_of(const std::string& path, int32_t offset, std::array<std::byte, 4>& head) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(offset);
  file.read(reinterpret_cast<char*>(head.data()), head.size());
  return std::span(head).first(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
}

Result<Loaded> load_path(const std::string& path, uint32_t flags, const rknn_init_extend* extend, ThreadPool& pool,
                         const format::OutsideWeights& outside) {
  Slice slice;
  if (extend) {
    std::array<std::byte, 4> head{};
    const bool may_be_garbage = flags & RKNN_FLAG_SHARE_WEIGHT_MEM;
    const bool plausible = extend->real_model_offset >= 0 && begins_a_model(head_of(path, extend->real_model_offset, head));
    if (extend->real_model_offset < 0 && !may_be_garbage) return invalid_argument("real_model_offset is negative");
    if (!may_be_garbage || plausible) slice = {static_cast<uint64_t>(extend->real_model_offset), extend->real_model_size};
  }
  auto model = format::read_rknn(path, slice.offset, slice.bytes, pool, outside);
  if (!model && extend && (flags & RKNN_FLAG_SHARE_WEIGHT_MEM) && (slice.offset || slice.bytes))
    model = format::read_rknn(path, 0, 0, pool, outside);
  if (!model) return std::move(model).status();
  Loaded loaded{.model = std::move(*model), .memory = {}, .keeper = nullptr};
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto total = static_cast<uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
  loaded.memory.fd = -1;
  loaded.memory.size = saturate(slice.bytes ? slice.bytes : total - std::min(total, slice.offset));
  loaded.memory.flags = RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN;
  return loaded;
}

// The caller's memory, used in place: whoever made it keeps it, or it is ours and is kept here.
Result<Loaded> load_in_place(std::span<const std::byte> bytes, const rknn_init_extend& extend, ThreadPool& pool,
                             const format::OutsideWeights& outside) {
  const std::span<const std::byte> whole = bytes;
  if (extend.real_model_offset != 0 || extend.real_model_size != 0) {
    if (!is_slice_of(extend, bytes.size()))
      return invalid_argument("real_model_offset and real_model_size name no part of the buffer")
          .expected("within " + std::to_string(bytes.size()) + " bytes")
          .found(std::to_string(extend.real_model_offset) + " + " + std::to_string(extend.real_model_size));
    bytes = bytes.subspan(static_cast<size_t>(extend.real_model_offset));
    if (extend.real_model_size) bytes = bytes.first(extend.real_model_size);
  }
  const std::shared_ptr<SharedBlock> block = find_block(bytes.data());
  std::shared_ptr<const void> keeper = block;
  if (!keeper) keeper = std::shared_ptr<const void>(bytes.data(), [](const void*) {});
  ORKNN_TRY_ASSIGN(format::Model model, format::read_rknn(bytes, keeper, pool, outside));
  Loaded loaded{.model = std::move(model), .memory = {}, .keeper = keeper};
  loaded.memory.virt_addr = const_cast<std::byte*>(whole.data());
  if (block) loaded.memory.phys_addr = block->bus_address() + static_cast<uint64_t>(whole.data() - block->data());
  loaded.memory.fd = extend.model_buffer_fd;
  loaded.memory.offset = extend.real_model_offset;
  loaded.memory.size = saturate(bytes.size());
  loaded.memory.flags = extend.model_buffer_flags;
  return loaded;
}

// A copy in memory with a descriptor of its own; in ordinary memory where there are no descriptors left.
Result<Loaded> load_copy(std::span<const std::byte> bytes, ThreadPool& pool, const format::OutsideWeights& outside) {
  Loaded loaded;
  loaded.memory.fd = -1;
  loaded.memory.flags = RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN;
  const std::shared_ptr<SharedBlock> block = SharedBlock::allocate(bytes.size());
  if (block) {
    std::memcpy(block->data(), bytes.data(), bytes.size());
    bytes = {block->data(), bytes.size()};
    loaded.keeper = block;
    loaded.memory.virt_addr = block->data();
    loaded.memory.phys_addr = block->bus_address();
    loaded.memory.fd = block->fd();
    loaded.memory.flags = RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE;
  }
  loaded.memory.size = saturate(bytes.size());
  ORKNN_TRY_ASSIGN(loaded.model, format::read_rknn(bytes, loaded.keeper, pool, outside));
  return loaded;
}

Result<Loaded> load(void* model, uint32_t size, uint32_t flags, const rknn_init_extend* extend, ThreadPool& pool,
                    const format::OutsideWeights& outside) {
  if (size == 0) return load_path(static_cast<const char*>(model), flags, extend, pool, outside);
  const std::span bytes(static_cast<const std::byte*>(model), size);
  const bool in_place = (flags & RKNN_FLAG_MODEL_BUFFER_ZERO_COPY) && extend && extend->model_buffer_fd >= 0;
  return in_place ? load_in_place(bytes, *extend, pool, outside) : load_copy(bytes, pool, outside);
}

// Whose weights the flags ask for; nothing when they do not.
struct Donor {
  std::shared_ptr<Context> context;
  std::shared_ptr<const format::Model> model;
};

Refusal find_donor(const rknn_init_extend* extend, Donor& donor) {
  if (!extend) return {RKNN_ERR_PARAM_INVALID, "RKNN_FLAG_SHARE_WEIGHT_MEM needs extend->ctx"};
  const Refusal invalid{RKNN_ERR_CTX_INVALID, "extend->ctx is not a valid context"};
  const std::shared_ptr<Context> context = find_context(extend->ctx);
  if (!context) return invalid;
  std::optional<CallLock> lock;
  if (!outer_call(*context)) lock.emplace(context->mutex);  // a callback of the donor's operators has it already
  if ((lock && !*lock) || context->destroyed) return invalid;
  donor = {context, context->session->shared_model()};
  return {};
}

Refusal check_flags(uint32_t flags, const rknn_init_extend* extend, Donor& donor) {
  if (flags & RKNN_FLAG_SHARE_WEIGHT_MEM)
    if (const Refusal r = find_donor(extend, donor); r.code) return r;
  if ((flags & RKNN_FLAG_MODEL_BUFFER_ZERO_COPY) && (!extend || extend->model_buffer_fd < 0))
    return {RKNN_ERR_PARAM_INVALID, "RKNN_FLAG_MODEL_BUFFER_ZERO_COPY needs extend->model_buffer_fd"};
  if ((flags & RKNN_FLAG_SHARE_SRAM) && !(flags & RKNN_FLAG_ENABLE_SRAM))
    return {RKNN_ERR_PARAM_INVALID, "RKNN_FLAG_SHARE_SRAM needs RKNN_FLAG_ENABLE_SRAM"};
  return {};
}

// The chip to simulate: the chosen one when the model fits it, else the model's.
Refusal choose_chip(Context& context, const format::Model& model) {
  const platform::Platform* made_for = platform::find(model.target_platform);
  context.chip = made_for ? made_for : &platform::default_platform();
  const platform::Platform* chosen = configured_chip();
  if (!library_offers("rknn_inputs_set") && context.chip->features.general_api)
    return {RKNN_ERR_TARGET_PLATFORM_UNMATCH,
            "the model was made for " + model.target_platform + ", this is the runtime of the small chips"};
  if (!chosen) return {};
  if (!platform::compatible(*context.chip, *chosen))
    return {RKNN_ERR_TARGET_PLATFORM_UNMATCH,
            "the model was made for " + model.target_platform + ", the simulated chip is " + std::string(chosen->name)};
  if (format::has_shape_sets(model) && !chosen->features.dynamic_shape)
    return {RKNN_ERR_TARGET_PLATFORM_UNMATCH, std::string(chosen->name) + " runs no models of several shape sets"};
  context.chip = chosen;
  context.is_chip_chosen = true;
  return {};
}

// Replaces the weights by those of the donor.
Refusal take_weights(Context& context, format::Model& model, const Donor& donor) {
  if (format::has_shape_sets(model) || format::has_shape_sets(*donor.model))
    return {RKNN_ERR_MODEL_INVALID, "models of several shape sets share no weights"};
  if (const Status s = share_weights(*donor.model, model); !s) return {RKNN_ERR_MODEL_INVALID, s.to_string()};
  context.donor = donor.context;
  return {};
}

int init(rknn_context* context, void* model, uint32_t size, uint32_t flags, rknn_init_extend* extend) {
  constexpr const char* kName = "rknn_init";
  if (!context || !model) return fail(RKNN_ERR_PARAM_INVALID, kName, !context ? "context is NULL" : "model is NULL");
  auto created = std::make_shared<Context>();
  created->flags = flags;
  created->pool = configured_pool();
  ThreadPool& pool = created->pool ? *created->pool : ThreadPool::shared();
  Donor donor;
  const Refusal wrong_flags = check_flags(flags, extend, donor);  // what is wrong with the model is said first
  bool lacks_donor = false;
  format::OutsideWeights outside;
  if (donor.model)
    outside = format::weights_of(donor.model);
  else if (flags & RKNN_FLAG_SHARE_WEIGHT_MEM)
    outside = [&](uint64_t, uint64_t) {
      lacks_donor = true;
      return Result<TensorData>(invalid_argument(wrong_flags.text));
    };
  auto loaded = load(model, size, flags, extend, pool, outside);
  if (lacks_donor) return fail(wrong_flags.code, kName, wrong_flags.text);
  if (!loaded) return fail(kName, loaded.status());
  if (const Refusal r = choose_chip(*created, loaded->model); r.code) return fail(r.code, kName, r.text);
  if (wrong_flags.code) return fail(wrong_flags.code, kName, wrong_flags.text);
  if (donor.model)
    if (const Refusal r = take_weights(*created, loaded->model, donor); r.code) return fail(r.code, kName, r.text);
  auto session = Session::open(std::make_shared<const format::Model>(std::move(loaded->model)), &pool);
  if (!session) return fail(kName, session.status());
  created->session = std::move(*session);
  load_plugins(*created->session);
  if (!created->is_dry())
    if (const Status s = use_device_of_environment(*created->session); !s)
      return s.code() == Code::Io ? fail(RKNN_ERR_DEVICE_UNAVAILABLE, kName, s.to_string()) : fail(kName, s);
  created->model_memory = loaded->memory;
  created->model_keeper = std::move(loaded->keeper);
  created->has_shapes = !format::has_shape_sets(created->session->model());
  created->forget_bindings();
  if (flags & RKNN_FLAG_ENABLE_SRAM) take_sram(*created, created->session->memory().internal_bytes, flags & RKNN_FLAG_SHARE_SRAM);
  report_loading(*created->session, report_of(*created));
  *context = publish_context(std::move(created));
  return RKNN_SUCC;
}

int duplicate(Context& from, rknn_context* to) {
  constexpr const char* kName = "rknn_dup_context";
  if (lacks(from, &platform::Features::dup_context)) return refuse_on_chip(kName, *from.chip);
  if (format::has_shape_sets(from.session->model()))
    return fail(RKNN_ERR_FAIL, kName, "a model of several shape sets cannot be duplicated, call rknn_init again");
  if (from.is_dry()) return fail(RKNN_ERR_FAIL, kName, "a context for model information cannot be duplicated");
  auto session = from.session->duplicate();
  if (!session) return fail(kName, session.status());
  auto created = std::make_shared<Context>();
  created->session = std::move(*session);
  created->pool = from.pool;
  created->flags = from.flags;
  created->chip = from.chip;
  created->is_chip_chosen = from.is_chip_chosen;
  created->core_mask = from.core_mask;
  created->cores = from.cores;
  created->batch_cores = from.batch_cores;
  created->model_memory = from.model_memory;
  created->model_keeper = from.model_keeper;
  created->donor = from.donor;
  created->forget_bindings();
  if (from.flags & RKNN_FLAG_ENABLE_SRAM)
    take_sram(*created, created->session->memory().internal_bytes, from.flags & RKNN_FLAG_SHARE_SRAM);
  *to = publish_context(std::move(created));
  return RKNN_SUCC;
}
}  // namespace
}  // namespace orknn::runtime

using namespace orknn::runtime;

int rknn_init(rknn_context* context, void* model, uint32_t size, uint32_t flag, rknn_init_extend* extend) {
  return c_call("rknn_init", [&] { return init(context, model, size, flag, extend); });
}

int rknn_dup_context(rknn_context* context_in, rknn_context* context_out) {
  constexpr const char* kName = "rknn_dup_context";
  if (!context_in || !context_out)
    return c_call(
        kName, [&] { return fail(RKNN_ERR_PARAM_INVALID, kName, !context_in ? "context_in is NULL" : "context_out is NULL"); });
  return with_context(kName, *context_in, [&](Context& c) { return duplicate(c, context_out); });
}

int rknn_destroy(rknn_context context) {
  constexpr const char* kName = "rknn_destroy";
  return c_call(kName, [&] {
    if (const std::shared_ptr<Context> found = find_context(context))
      if (const char* outer = outer_call(*found)) return refuse_callback(kName, outer);
    return destroy_context(context) ? RKNN_SUCC : invalid_context(kName);
  });
}
