#include "compile/tile.h"

#include "compile/saturate.h"

namespace orknn::compile {
namespace {
using format::Tiling;

// Feature rows and kernels start at these multiples inside the buffer.
constexpr uint64_t kEntryBytes = 64;

// A layer in the units of the buffer.
struct Layer {
  uint64_t banks = 0, bank_bytes = 0;
  uint64_t row_bytes = 0;  // one row of all input channels
  uint64_t in_rows = 0, out_rows = 0, out_columns = 0;
  uint64_t kernel_rows = 0;  // rows under one output row
  uint64_t row_stride = 1;
  uint64_t features = 0, weights = 0, group = 0;  // bytes; group = the kernels that compute side by side

  uint64_t banks_of(uint64_t bytes) const { return std::max<uint64_t>(ceil_div(bytes, bank_bytes), 1); }
};

// Bands of rows when `data_banks` hold features, and the rows that neighbours share.
struct Bands {
  uint64_t count = 1, shared_rows = 0;
};
Bands bands(const Layer& l, uint64_t data_banks) {
  const uint64_t rows = mul({data_banks, l.bank_bytes}) / std::max<uint64_t>(l.row_bytes, 1);
  if (rows >= l.in_rows) return {};
  const uint64_t per_band = rows <= l.kernel_rows ? 1 : (rows - l.kernel_rows) / l.row_stride + 1;
  const uint64_t count = std::max<uint64_t>(ceil_div(l.out_rows, per_band), 1);
  const uint64_t overlap = l.kernel_rows > l.row_stride ? l.kernel_rows - l.row_stride : 0;
  return {count, mul({overlap, count - 1})};
}

uint32_t small(uint64_t v) { return static_cast<uint32_t>(std::min<uint64_t>(v, UINT32_MAX)); }

// The cheapest way to cut rows and kernels, when at least one output row and one group of kernels fit.
TilePlan cut(const Layer& l) {
  TilePlan plan;
  Tiling& t = plan.tiling;
  const uint64_t feature_banks = l.banks_of(l.features), weight_banks = l.banks_of(l.weights);
  if (feature_banks + weight_banks <= l.banks) {
    t.data_banks = small(feature_banks);
    t.weight_banks = small(weight_banks);
    return plan;
  }
  const uint64_t group_banks = std::min(l.banks_of(l.group), l.banks - 1),
                 row_banks = std::min(l.banks_of(mul({l.kernel_rows, l.row_bytes})), l.banks - 1);
  // Bands of features, all kernels passing by each.
  const Bands by_features = bands(l, l.banks - group_banks);
  const uint64_t kernels_again = mul({by_features.count - 1, l.weights}), overlap = mul({by_features.shared_rows, l.row_bytes});
  // Groups of kernels, all rows passing by each.
  const uint64_t room = mul({l.banks - row_banks, l.bank_bytes});
  const uint64_t groups =
      weight_banks + row_banks <= l.banks
          ? 1
          : std::max<uint64_t>(ceil_div(l.weights, std::max(room / std::max<uint64_t>(l.group, 1), uint64_t{1}) * l.group), 1);
  const uint64_t held = std::min(groups == 1 ? weight_banks : l.banks - row_banks, l.banks - 1);
  const Bands by_weights = bands(l, l.banks - held);
  const uint64_t rows_again = add(mul({groups - 1, l.features}), mul({by_weights.shared_rows, l.row_bytes, groups}));
  if (add(kernels_again, overlap) <= rows_again) {
    t.resident = Tiling::Resident::Features;
    t.rows = small(by_features.count);
    t.weight_banks = small(group_banks);
    plan.features_again = overlap;
    plan.weights_again = kernels_again;
  } else {
    t.resident = Tiling::Resident::Weights;
    t.rows = small(by_weights.count);
    t.kernels = small(groups);
    t.weight_banks = small(held);
    plan.features_again = rows_again;
  }
  t.data_banks = small(l.banks - t.weight_banks);
  return plan;
}
}  // namespace

uint32_t TilePlan::tasks() const { return small(mul({tiling.rows, tiling.columns, tiling.kernels, tiling.channels})); }

TilePlan tile(const platform::Platform& platform, const Window& w, DType type, uint64_t weight_bytes) {
  const uint64_t element = std::max<uint64_t>(dtype_bytes(type), 1), lanes = u(platform.c2(type));
  const platform::ChannelAlignment& align = platform.alignment(type);
  uint64_t channels = pad(u(w.in_channels), lanes), out = u(w.out_channels);
  Layer l;
  l.banks = u(platform.cbuf_banks);
  l.bank_bytes = u(platform.cbuf_bank_bytes);
  l.in_rows = u(w.in.h);
  l.out_rows = u(w.out.h);
  l.out_columns = u(w.out.w);
  l.kernel_rows = u(w.transposed ? w.kernel[0] : w.dilated(0));
  l.row_stride = w.transposed ? 1 : std::max<uint64_t>(u(w.stride[0]), 1);
  l.weights = weight_bytes;
  if (l.banks < 2 || l.bank_bytes == 0 || channels == 0 || out == 0 || l.in_rows == 0 || l.out_rows == 0 || u(w.in.w) == 0)
    return {};

  TilePlan plan;
  uint64_t pieces = 1;  // groups of channels of a depthwise convolution: each has its own features and kernels
  const uint64_t lanes_at_once = u(std::max(align.depthwise, 1)), kernels_at_once = u(std::max(align.conv_out, 1));
  const auto measure = [&](uint64_t columns, uint64_t segments, uint64_t parts) {
    const uint64_t per_column = ceil_div(l.out_columns, columns);
    const uint64_t reach = w.transposed ? ceil_div(per_column, std::max<uint64_t>(u(w.stride[1]), 1)) + u(w.kernel[1])
                                        : add(mul({per_column > 0 ? per_column - 1 : 0, u(w.stride[1])}), u(w.dilated(1)));
    const uint64_t width = columns == 1 ? u(w.in.w) : std::min(u(w.in.w), reach);
    l.row_bytes = pad(mul({width, ceil_div(ceil_div(channels, parts), segments), element}), kEntryBytes);
    l.features = mul({l.row_bytes, l.in_rows});
    l.weights = ceil_div(weight_bytes, mul({parts, segments}));
    l.group = w.depthwise
                  ? ceil_div(l.weights, std::max<uint64_t>(ceil_div(ceil_div(out, parts), lanes_at_once), 1))
                  : ceil_div(l.weights,
                             std::max<uint64_t>(ceil_div(ceil_div(out, std::max<uint64_t>(u(w.group), 1)), kernels_at_once), 1));
    return width;
  };
  const auto fits = [&] { return l.banks_of(l.group) + l.banks_of(mul({l.kernel_rows, l.row_bytes})) <= l.banks; };

  uint64_t columns = 1, segments = 1;
  uint64_t width = measure(columns, segments, pieces);
  if (w.depthwise)
    while (!fits() && pieces < ceil_div(out, lanes_at_once))
      width = measure(columns, segments, pieces = std::min(pieces * 2, ceil_div(out, lanes_at_once)));
  // One group of kernels must leave a bank for features.
  if (const uint64_t most = mul({l.banks - 1, l.bank_bytes}); !w.depthwise && l.group > most)
    width = measure(columns, segments = std::clamp<uint64_t>(ceil_div(l.group, most), 1, std::max<uint64_t>(channels / lanes, 1)),
                    pieces);
  while (!fits() && columns < l.out_columns) width = measure(columns = std::min(columns * 2, l.out_columns), segments, pieces);
  plan = cut(l);
  plan.tiling.columns = small(columns);
  plan.tiling.channels = small(segments);
  if (w.depthwise) plan.tiling.kernels = small(mul({plan.tiling.kernels, pieces}));
  // Every band of columns has its own rows and kernels, and shares columns with its neighbour.
  const uint64_t shared_columns = columns > 1 && mul({width, columns}) > u(w.in.w) ? mul({width, columns}) - u(w.in.w) : 0;
  const uint64_t copies = mul({columns, segments, pieces});
  plan.features_again = add(mul({plan.features_again, copies}), mul({shared_columns, l.in_rows, channels, element}));
  const bool kernels_pass = plan.tiling.resident == Tiling::Resident::Features;
  plan.weights_again = add(mul({plan.weights_again, copies}), kernels_pass ? mul({columns - 1, weight_bytes}) : 0);
  // Sums of a segment are 32 bits wide, written and read again.
  if (segments > 1) plan.features_again = add(plan.features_again, mul({segments - 1, u(w.out.h), u(w.out.w), out, 8}));
  // One image after the other; kernels that are resident stay.
  if (w.in.n > 1) {
    plan.tiling.rows = small(mul({plan.tiling.rows, u(w.in.n)}));
    plan.features_again = mul({plan.features_again, u(w.in.n)});
    plan.weights_again = add(mul({plan.weights_again, u(w.in.n)}), kernels_pass ? mul({u(w.in.n) - 1, weight_bytes}) : 0);
  }
  return plan;
}

}  // namespace orknn::compile
