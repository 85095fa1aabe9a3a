#include "runtime/matmul_context.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checksum.h"
#include "runtime/checker.h"
#include "runtime/cores.h"
#include "runtime/trace.h"

namespace orknn::runtime {
namespace {
bool same_shape(const rknn_matmul_shape& a, const rknn_matmul_shape& b) { return a.M == b.M && a.K == b.K && a.N == b.N; }

bool same_attribute(const rknn_matmul_tensor_attr& a, const rknn_matmul_tensor_attr& b) {
  return std::strncmp(a.name, b.name, sizeof a.name) == 0 && a.n_dims == b.n_dims &&
         std::equal(a.dims, a.dims + a.n_dims, b.dims) && a.size == b.size && std::memcmp(&a.type, &b.type, sizeof a.type) == 0;
}

bool has_attribute(const rknn_matmul_io_attr& all, const rknn_matmul_tensor_attr& attr) {
  return same_attribute(all.A, attr) || same_attribute(all.B, attr) || same_attribute(all.C, attr);
}

std::string text(size_t n) { return std::to_string(n); }

// A product on its core, in the run trace.
class TracedWork {
 public:
  TracedWork(uint32_t cores, uint64_t context, const rknn_matmul_shape& shape)
      : cores_(cores), context_(context), shape_(shape) {}
  ~TracedWork() {
    if (!is_tracing_) return;
    const std::string name =
        "matmul " + std::to_string(shape_.M) + "x" + std::to_string(shape_.K) + "x" + std::to_string(shape_.N);
    trace_work(name, cores_, context_, begin_, std::chrono::steady_clock::now());
  }
  TracedWork(const TracedWork&) = delete;
  TracedWork& operator=(const TracedWork&) = delete;

 private:
  const bool is_tracing_ = is_tracing();
  const uint32_t cores_;
  const uint64_t context_;
  const rknn_matmul_shape shape_;
  const TraceTime begin_ = std::chrono::steady_clock::now();
};
}  // namespace

MatmulContext::MatmulContext(MatmulPlan plan, bool is_dynamic, std::shared_ptr<ThreadPool> pool)
    : plan_(std::move(plan)), is_dynamic_(is_dynamic), pool_(std::move(pool)) {
  if (!is_dynamic_) (void)set_shape(plan_.shapes()[0]);
}

bool MatmulContext::knows(const rknn_matmul_tensor_attr& attr) const {
  return std::any_of(plan_.shapes().begin(), plan_.shapes().end(),
                     [&](const rknn_matmul_shape& s) { return has_attribute(plan_.attributes(s), attr); });
}

bool MatmulContext::is_current(const rknn_matmul_tensor_attr& attr) const {
  return shape_ && has_attribute(plan_.attributes(*shape_), attr);
}

Status MatmulContext::set_shape(const rknn_matmul_shape& shape) {
  const auto known = std::find_if(plan_.shapes().begin(), plan_.shapes().end(),
                                  [&](const rknn_matmul_shape& s) { return same_shape(s, shape); });
  if (known == plan_.shapes().end())
    return invalid_argument("the context was not made with this shape")
        .found(std::to_string(shape.M) + ", " + std::to_string(shape.K) + ", " + std::to_string(shape.N))
        .hint("pass one of dynamic_shapes");
  if (shape_ && same_shape(*shape_, shape)) return {};
  const bool keeps_right = shape_ && shape_->K == shape.K && shape_->N == shape.N;
  sim::ProductScaling scaling = scaling_for(shape);
  if (!keeps_right) {
    product_ = std::make_unique<sim::MatrixProduct>(plan_.type().left, plan_.type().right, shape.K, shape.N, plan_.group(shape));
    bound_right_ = {};
    right_copy_ = {};
  }
  bound_left_ = bound_result_ = {};
  scaling_ = std::move(scaling);
  shape_ = shape;
  return {};
}

// --- memory

Status MatmulContext::bind(char name, const Payload& memory) {
  if (name == 'B') return bind_right(memory);
  if (name == 'A' && !left_is_native())
    if (Status s = product_->pack_left(memory.data, plan_.left(*shape_), sim::LeftData::Copied, pool()); !s) return s;
  if (name == 'A' && !left_is_native())
    bound_left_ = copied_binding(memory, plan_.attributes(*shape_).A.size);
  else
    (name == 'A' ? bound_left_ : bound_result_) = {memory.data, memory.keeper};
  return {};
}

MatmulContext::Binding MatmulContext::copied_binding(const Payload& memory, size_t bytes) {
  Binding binding{memory.data, memory.keeper};
  if (!is_checking() || !memory.keeper || !memory.keeper->block) return binding;  // others may free it once it is copied
  binding.copied = {memory.data, bytes};
  binding.checksum = checksum64(binding.copied);
  return binding;
}

// Mistakes that a run cannot notice by itself.
void MatmulContext::check_memory() const {
  constexpr const char* kName = "rknn_matmul_run";
  for (const auto& [name, binding] :
       {std::pair{'A', &bound_left_}, std::pair{'B', &bound_right_}, std::pair{'C', &bound_result_}}) {
    if (!binding->keeper) continue;
    const bool released = was_released(&binding->keeper->mem);
    if (released && binding->copied.empty()) check_not_destroyed(kName, &binding->keeper->mem);
    check_bounds(kName, *binding->keeper);
    if (!released && !binding->copied.empty() && checksum64(binding->copied) != binding->checksum)
      report_mistake(kName, std::string("the contents of ") + name + " have changed since it was bound, and are not seen",
                     "call rknn_matmul_set_io_mem after every change of a matrix that is not in the native layout");
  }
}

Status MatmulContext::bind_right(const Payload& memory) {
  const sim::RightLayout layout = plan_.right(*shape_);
  std::vector<std::byte> copy;
  if (product_->packs_scaling() && !right_is_native()) copy.assign(memory.data, memory.data + plan_.attributes(*shape_).B.size);
  if (Status s = product_->pack_right(memory.data, layout, scaling_, pool()); !s) return s;
  right_copy_ = std::move(copy);
  right_is_stale_ = false;
  bound_right_ =
      right_is_native() ? Binding{memory.data, memory.keeper} : copied_binding(memory, plan_.attributes(*shape_).B.size);
  if (right_is_native()) right_fingerprint_ = right_fingerprint(pool());
  return {};
}

// Parts are checked on all threads; the number of parts does not depend on theirs.
uint64_t MatmulContext::right_fingerprint(ThreadPool& pool) const {
  constexpr size_t kPart = 256 << 10;
  const size_t bytes = plan_.attributes(*shape_).B.size, parts = (bytes + kPart - 1) / kPart;
  std::vector<uint64_t> sums(parts);
  pool.parallel_for(static_cast<int64_t>(parts), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      sums[i] = sim::fingerprint({bound_right_.data + i * kPart, std::min(kPart, bytes - i * kPart)});
  });
  return sim::fingerprint(std::as_bytes(std::span(sums)));
}

// Packs the right operand again where what was packed is no longer what it holds.
Status MatmulContext::refresh_right(ThreadPool& pool) {
  const uint64_t fingerprint = right_is_native() ? right_fingerprint(pool) : 0;
  if (!right_is_stale_ && (!right_is_native() || fingerprint == right_fingerprint_)) return {};
  const std::byte* data = right_is_native() ? bound_right_.data : right_copy_.data();
  if (Status s = product_->pack_right(data, plan_.right(*shape_), scaling_, pool); !s) return s;
  right_is_stale_ = false;
  right_fingerprint_ = fingerprint;
  return {};
}

// --- quantization

DType MatmulContext::type_of(char name) const {
  return name == 'A' ? plan_.type().left : name == 'B' ? plan_.type().right : plan_.type().result;
}

size_t MatmulContext::parameters(char name) const {
  const int scheme = plan_.info().B_quant_type;
  if (name != 'B' || (!is_per_channel(scheme) && !is_per_group(scheme))) return 1;
  const auto columns = static_cast<size_t>(plan_.most_columns());
  return is_per_channel(scheme) ? columns : columns * static_cast<size_t>(plan_.most_depth() / plan_.info().group_size);
}

Status MatmulContext::check_zero_points(char name, std::span<const int32_t> zeros) const {
  const DType type = type_of(name);
  const int scheme = name == 'B' ? plan_.info().B_quant_type : plan_.info().AC_quant_type;
  const bool none = is_symmetric(scheme) || (type != DType::Int8 && type != DType::Int4);
  for (int32_t zero : zeros) {
    if (none && zero != 0)
      return invalid_argument(std::string("zero point of ") + name + " is not 0, but the matrix is " +
                              (is_symmetric(scheme) ? "quantized symmetrically" : std::string(dtype_name(type))))
          .found(std::to_string(zero))
          .hint(name == 'B' ? "choose an asymmetric B_quant_type" : "choose AC_quant_type RKNN_QUANT_TYPE_PER_LAYER_ASYM");
    if (!none && (zero < dtype_min(type) || zero > static_cast<int64_t>(dtype_max(type))))
      return invalid_argument(std::string("zero point of ") + name + " is outside " + std::string(dtype_name(type)))
          .found(std::to_string(zero));
  }
  return {};
}

Status MatmulContext::set_quantization(char name, const rknn_quant_params& params) {
  if (!is_integer(plan_.type().left) && !is_integer(plan_.type().right))
    return invalid_argument("matmul type " + std::to_string(plan_.type().value) + " has no integer operand to quantize");
  const size_t wanted = parameters(name);
  if (!params.scale) return invalid_argument("scale is NULL");
  if (params.scale_len < 0 || static_cast<size_t>(params.scale_len) != wanted)
    return invalid_argument(std::string("scale_len of ") + name).expected(text(wanted)).found(std::to_string(params.scale_len));
  if (params.zp_len != 0 && (params.zp_len < 0 || static_cast<size_t>(params.zp_len) != wanted))
    return invalid_argument(std::string("zp_len of ") + name)
        .expected("0 or " + text(wanted))
        .found(std::to_string(params.zp_len));
  if (params.zp_len != 0 && !params.zp) return invalid_argument("zp is NULL, but zp_len is not 0");
  const std::span scales(params.scale, wanted);
  const std::span zeros(params.zp, params.zp_len != 0 ? wanted : 0);
  const auto bad = std::find_if(scales.begin(), scales.end(), [](float s) { return !(s > 0) || !std::isfinite(s); });
  if (bad != scales.end())
    return invalid_argument(std::string("scale of ") + name).expected("a positive number").found(std::to_string(*bad));
  if (Status s = check_zero_points(name, zeros); !s) return s;
  Quantization fresh{{scales.begin(), scales.end()}, {zeros.begin(), zeros.end()}};
  if (std::all_of(fresh.zeros.begin(), fresh.zeros.end(), [](int32_t z) { return z == 0; })) fresh.zeros.clear();
  std::swap(quantization(name), fresh);
  if (!shape_) return {};
  try {
    scaling_ = scaling_for(*shape_);
  } catch (...) {  // no memory: as if it had not been called
    std::swap(quantization(name), fresh);
    throw;
  }
  right_is_stale_ |= name == 'B' && product_->packs_scaling();
  return {};
}

float MatmulContext::common_scale() const {
  return right_.scales.empty() ? 1 : *std::max_element(right_.scales.begin(), right_.scales.end());
}

// What a sum is multiplied with to become a result, per column; empty = nothing.
std::vector<double> MatmulContext::factors(const rknn_matmul_shape& shape) const {
  const auto columns = static_cast<size_t>(shape.N);
  const MatmulType& type = plan_.type();
  const double left = left_.scales.empty() ? 1 : left_.scales[0], result = result_.scales.empty() ? 1 : result_.scales[0];
  const auto right = [&](size_t n) -> double {
    if (right_.scales.empty() || is_per_group(plan_.info().B_quant_type)) return 1;
    return right_.scales[right_.scales.size() == 1 ? 0 : n];
  };
  std::vector<double> factors(columns);
  if (is_float(type.result))
    for (size_t n = 0; n < columns; ++n) factors[n] = static_cast<float>(left * right(n));
  else if (type.result == DType::Int8)
    for (size_t n = 0; n < columns; ++n) factors[n] = left * right(n) / result;
  else if (type.value == RKNN_INT8_MM_INT8_TO_INT32 && is_per_channel(plan_.info().B_quant_type))
    for (size_t n = 0; n < columns; ++n) factors[n] = right(n) / common_scale();
  else
    return {};
  if (type.result != DType::Int8 && std::all_of(factors.begin(), factors.end(), [](double f) { return f == 1; })) return {};
  return factors;
}

sim::ProductScaling MatmulContext::scaling_for(const rknn_matmul_shape& shape) const {
  const auto columns = static_cast<size_t>(shape.N), groups = static_cast<size_t>(shape.K / plan_.group(shape)),
             stride = static_cast<size_t>(plan_.most_columns());
  const auto spread = [&](const auto& values) {
    std::decay_t<decltype(values)> all;
    if (values.empty()) return all;
    all.reserve(groups * columns);
    for (size_t g = 0; g < groups; ++g)
      for (size_t n = 0; n < columns; ++n) all.push_back(values[values.size() == 1 ? 0 : g * stride + n]);
    return all;
  };
  sim::ProductScaling s;
  s.left_zero = left_.zeros.empty() ? 0 : left_.zeros[0];
  s.result_zero = result_.zeros.empty() ? 0 : result_.zeros[0];
  s.right_zero = spread(right_.zeros);
  if (is_per_group(plan_.info().B_quant_type)) s.right_scale = spread(right_.scales);
  s.factor = factors(shape);
  return s;
}

// --- run

Status MatmulContext::run(uint64_t handle) {
  for (const auto& [name, binding] :
       {std::pair{'A', &bound_left_}, std::pair{'B', &bound_right_}, std::pair{'C', &bound_result_}})
    if (!binding->data)
      return Status::error(Code::Fail, std::string("matrix ") + name + " is not bound")
          .hint(is_dynamic_ ? "call rknn_matmul_set_io_mem after rknn_matmul_set_dynamic_shape" : "call rknn_matmul_set_io_mem");
  if (is_checking()) check_memory();
  const std::optional<CoreLease> lease = CoreLease::take(plan_.chip(), {.mask = core_mask_});
  const TracedWork traced(lease->mask(), handle, *shape_);
  ThreadPool& pool = pool_ ? *pool_ : lease->pool();
  if (left_is_native())
    if (Status s = product_->pack_left(bound_left_.data, plan_.left(*shape_), sim::LeftData::Stays, pool); !s) return s;
  if (Status s = refresh_right(pool); !s) return s;
  return product_->run(scaling_, bound_result_.data, plan_.type().result, plan_.result(*shape_), pool);
}

void MatmulContext::release() {
  product_.reset();
  bound_left_ = bound_right_ = bound_result_ = {};
  right_copy_ = {};
  scaling_ = {};
}

}  // namespace orknn::runtime
