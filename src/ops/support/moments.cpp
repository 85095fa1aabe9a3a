#include "ops/support/moments.h"

#include "ops/support/floating.h"
#include "ops/support/window.h"

namespace orknn::ops {
using namespace ir;

Result<std::vector<double>> repeating_values(const TensorView& t, std::span<const int64_t> dims, size_t inner_rank) {
  Dims own(t.dims.begin(), t.dims.end());
  while (own.size() > inner_rank && own.front() == 1) own.erase(own.begin());
  bool fits = own.size() <= dims.size();
  for (size_t i = 0; fits && i < own.size(); ++i) {
    const int64_t want = dims[dims.size() - own.size() + i];
    fits = own[i] == 1 || own[i] == want;
  }
  if (!fits) return wrong_shape("a parameter", "something that broadcasts to " + to_string(dims), t.dims);
  const std::vector<double> values = to_doubles(t);
  const std::span<const int64_t> to = dims.last(std::max(own.size(), inner_rank));
  if (std::equal(own.begin(), own.end(), to.begin(), to.end())) return values;
  own.insert(own.begin(), to.size() - own.size(), 1);
  Dims strides = strides_of(own);
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i] == 1) strides[i] = 0;
  std::vector<double> out(static_cast<size_t>(element_count(to)));
  Dims at(to.size(), 0);
  for (size_t o = 0; o < out.size(); ++o, next_index(at, to)) {
    int64_t from = 0;
    for (size_t i = 0; i < at.size(); ++i) from += at[i] * strides[i];
    out[o] = values[static_cast<size_t>(from)];
  }
  return out;
}

Result<std::vector<double>> channel_values(const TensorView& t, int64_t channels, std::string_view what) {
  if (t.rank() != 1 || t.dims[0] != channels) return wrong_shape(what, "[" + std::to_string(channels) + "]", t.dims);
  return to_doubles(t);
}

}  // namespace orknn::ops
