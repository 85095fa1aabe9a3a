// Linear interpolation of integers: each row of the data is stretched once, two of them are mixed per row of the result.
#include <algorithm>

#include "ops/support/requantize.h"
#include "sim/kernels/support/int_stage.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kGrain = 1 << 15;  // results per piece of work

struct State : KernelState {
  OutputPlan output;
  Int type = Int::Signed8;
  int64_t height = 0, width = 0, out_height = 0, out_width = 0, zero = 0;
  int32_t one = 0;
  const int32_t *rows = nullptr, *columns = nullptr;
};

std::optional<State> plan(const KernelQuery& q) {
  const std::optional<Int> type = q.node.op == "int:Resize" ? int_of(q.inputs[0].dtype) : std::nullopt;
  if (!type || !q.inputs[1].constant || !q.inputs[2].constant || q.inputs[0].dims.size() < 2 ||
      q.outputs[0].dims.size() != q.inputs[0].dims.size())
    return std::nullopt;
  const ir::Dims &x = q.inputs[0].dims, &y = q.outputs[0].dims;
  const int64_t one = int64_t{1} << ops::resize_bits(q.inputs[0].dtype);
  if (!ops::check_places(q.inputs[1].constant->view(), x[x.size() - 2], one) ||
      !ops::check_places(q.inputs[2].constant->view(), x.back(), one))
    return std::nullopt;
  auto output = OutputPlan::create(q, {kNoSlot, kNoSlot, 3}, {.max_factor = ops::kMaxResizeFactor});
  const auto zero = ops::read_zero_point(q.attributes(), "x_zero_point");
  if (!output || !zero || (*type != Int::Signed16 && !in_byte_range(q.inputs[0].dtype, *zero))) return std::nullopt;
  State s;
  s.output = std::move(*output);
  s.type = *type;
  s.height = x[x.size() - 2];
  s.width = x.back();
  s.out_height = y[y.size() - 2];
  s.out_width = y.back();
  s.zero = *zero;
  s.one = static_cast<int32_t>(one);
  s.rows = q.inputs[1].constant->as<int32_t>();
  s.columns = q.inputs[2].constant->as<int32_t>();
  if (*type != Int::Signed16) s.output.bias[0] = static_cast<int32_t>(-*zero * one * one);
  return s;
}

bool accepts(const KernelQuery& q) { return plan(q).has_value(); }
Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(std::make_unique<State>(*plan(q)));
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const IntForms& f = int_forms();
  const int64_t count = c.outputs[0].count();
  if (count == 0) return {};
  const int64_t planes = count / (s.out_height * s.out_width), pitch = divide_up(s.out_width, 16) * 16 + 16;
  // A piece is some rows of one plane.
  const int64_t rows_per_piece = std::clamp<int64_t>(kGrain / s.out_width, 1, s.out_height),
                pieces = divide_up(s.out_height, rows_per_piece);
  const int64_t worker_dwords = 4 * pitch;  // two stretched rows, and sums of 64 bits
  auto* scratch = reinterpret_cast<int32_t*>(c.scratch(static_cast<size_t>(worker_dwords * 4 * c.pool.threads())));
  if (!scratch) return out_of_scratch(worker_dwords * 4 * c.pool.threads());
  const auto* x = static_cast<const std::byte*>(c.inputs[0].data);
  auto* y = static_cast<std::byte*>(c.outputs[0].data);
  for_each_job(c.pool, planes * pieces, [&](int64_t job, int64_t worker) {
    int32_t* stretched[2] = {scratch + worker * worker_dwords, scratch + worker * worker_dwords + pitch};
    auto* sums = stretched[1] + pitch;
    int64_t held[2] = {-1, -1};
    const int64_t plane = job / pieces, first = job % pieces * rows_per_piece;
    // The stretched row, in the buffer that `other` is not in.
    const auto stretch = [&](int64_t row, const int32_t* other) {
      for (size_t i = 0; i < 2; ++i)
        if (held[i] == row) return stretched[i];
      const size_t i = stretched[0] == other ? 1 : 0;
      held[i] = row;
      f.resize_columns(x + (plane * s.height + row) * s.width * int_bytes(s.type), s.type, s.columns, s.one, s.out_width,
                       stretched[i]);
      return stretched[i];
    };
    for (int64_t row = first; row < std::min(first + rows_per_piece, s.out_height); ++row) {
      const int32_t position = s.rows[2 * row], share = s.rows[2 * row + 1];
      // What is held of the lower row must outlive the search for the upper one.
      const int32_t* kept = held[0] == position + 1 ? stretched[0] : held[1] == position + 1 ? stretched[1] : nullptr;
      const int32_t* upper = stretch(position, kept);
      const int32_t* lower = share == 0 ? upper : stretch(position + 1, upper);
      const IntConvert to =
          s.output.channel(0, nullptr, y + (plane * s.out_height + row) * s.out_width * int_bytes(s.output.type));
      if (s.type == Int::Signed16) {
        f.resize_rows_wide(upper, lower, s.one, share, s.zero, s.out_width, reinterpret_cast<int64_t*>(sums));
        f.convert_wide(to, reinterpret_cast<const int64_t*>(sums), s.out_width);
      } else {
        f.resize_rows(upper, lower, s.one, share, s.out_width, sums);
        convert(f, s.output, to, sums, s.out_width);
      }
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> int_resize() {
  static const Kernel kernels[] = {{"int_resize", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
