// Counts the n-grams of a pool in integer sequences.
#include <algorithm>
#include <map>

#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr int64_t kMaxOutputs = 1 << 24;
constexpr int64_t kMaxGramLength = 64;

struct Vectorizer {
  int64_t min_length = 1, max_length = 1, max_skip = 0, outputs = 0;
  enum class Mode { Tf, Idf, TfIdf } mode = Mode::Tf;
  std::map<std::vector<int64_t>, size_t> grams;  // to their place in the pool
  std::vector<int64_t> indexes;                  // output of each gram of the pool
  std::vector<double> weights;                   // of each gram
};

Result<int64_t> output_count(const NodeReader& c) {
  int64_t count = 0;
  for (int64_t i : c.get_ints("ngram_indexes")) {
    if (i < 0 || i >= kMaxOutputs) return invalid_model("illegal entry in ngram_indexes").found(std::to_string(i));
    count = std::max(count, i + 1);
  }
  return count;
}

Result<Vectorizer> make_vectorizer(const NodeReader& c) {
  Vectorizer v;
  v.min_length = c.get_int("min_gram_length");
  v.max_length = c.get_int("max_gram_length");
  v.max_skip = c.get_int("max_skip_count");
  if (v.min_length < 1 || v.max_length < v.min_length || v.max_length > kMaxGramLength || v.max_skip < 0)
    return invalid_model("illegal n-gram lengths or skip count");
  const std::string& mode = c.get_string("mode");
  if (mode == "TF")
    v.mode = Vectorizer::Mode::Tf;
  else if (mode == "IDF")
    v.mode = Vectorizer::Mode::Idf;
  else if (mode == "TFIDF")
    v.mode = Vectorizer::Mode::TfIdf;
  else
    return unsupported("unknown mode").expected("TF, IDF or TFIDF").found(mode);
  ORKNN_TRY_ASSIGN(v.outputs, output_count(c));
  v.indexes = c.get_ints("ngram_indexes");
  const auto* pool = c.find<std::vector<int64_t>>("pool_int64s");
  if (!pool) return unsupported("only pools of integers are supported").hint("turn the tokens into numbers before the model");
  // ngram_counts[n] is where the grams of length n + 1 begin.
  const std::vector<int64_t>& starts = c.get_ints("ngram_counts");
  const auto size = static_cast<int64_t>(pool->size());
  for (size_t n = 0; n < starts.size(); ++n) {
    const auto length = static_cast<int64_t>(n) + 1;
    const int64_t begin = starts[n], end = n + 1 < starts.size() ? starts[n + 1] : size;
    if (begin < 0 || end < begin || end > size || (end - begin) % length != 0)
      return invalid_model("ngram_counts do not fit the pool").found(to_string(starts));
    for (int64_t at = begin; at < end; at += length)
      v.grams.emplace(std::vector<int64_t>(pool->begin() + at, pool->begin() + at + length), v.grams.size());
  }
  if (v.grams.size() != v.indexes.size())
    return invalid_model("one index per n-gram of the pool is needed")
        .expected(std::to_string(v.grams.size()))
        .found(std::to_string(v.indexes.size()));
  if (const auto* weights = c.find<std::vector<double>>("weights")) v.weights = *weights;
  if (!v.weights.empty() && v.weights.size() != v.indexes.size())
    return invalid_model("one weight per n-gram of the pool is needed")
        .expected(std::to_string(v.indexes.size()))
        .found(std::to_string(v.weights.size()));
  return v;
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_integer(c, 0, "tokens"));
  ORKNN_TRY_ASSIGN(const Vectorizer v, make_vectorizer(c));
  const Shape* x = c.shape(0);
  if (!x) {
    c.set_output(0, DType::Float32, std::nullopt);
    return {};
  }
  if (x->empty() || x->size() > 2) return shape_mismatch("tokens must be one sequence or a batch of them").found(to_string(*x));
  c.set_output(0, DType::Float32, x->size() == 1 ? Shape{v.outputs} : Shape{(*x)[0], v.outputs});
  return {};
}

void count_grams(const Vectorizer& v, std::span<const int64_t> tokens, std::span<float> out) {
  const auto size = static_cast<int64_t>(tokens.size());
  std::vector<int64_t> gram;
  for (int64_t length = v.min_length; length <= v.max_length; ++length) {
    // Single tokens have no gaps to vary.
    for (int64_t skip = 0; skip <= (length == 1 ? 0 : std::min(v.max_skip, size)); ++skip) {
      const int64_t reach = (length - 1) * (skip + 1);
      for (int64_t start = 0; start + reach < size; ++start) {
        gram.clear();
        for (int64_t k = 0; k < length; ++k) gram.push_back(tokens[static_cast<size_t>(start + k * (skip + 1))]);
        const auto found = v.grams.find(gram);
        if (found == v.grams.end()) continue;
        float& value = out[static_cast<size_t>(v.indexes[found->second])];
        const auto weight = v.weights.empty() ? 1.0f : static_cast<float>(v.weights[found->second]);
        switch (v.mode) {
          case Vectorizer::Mode::Tf: value += 1; break;
          case Vectorizer::Mode::Idf: value = weight; break;
          case Vectorizer::Mode::TfIdf: value += weight; break;
        }
      }
    }
  }
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const Vectorizer v, make_vectorizer(c));
  if (x.dims.empty() || x.dims.size() > 2)
    return shape_mismatch("tokens must be one sequence or a batch of them").found(to_string(x.dims));
  const int64_t rows = x.dims.size() == 2 ? x.dims[0] : 1, length = x.dims.back();
  ORKNN_TRY_ASSIGN(const MutableTensorView y,
                   c.output(0, DType::Float32, x.dims.size() == 2 ? Dims{rows, v.outputs} : Dims{v.outputs}));
  const std::vector<int64_t> tokens = to_ints(x);
  std::fill(y.as<float>(), y.as<float>() + y.count(), 0.0f);
  for (int64_t row = 0; row < rows; ++row)
    count_grams(v, std::span(tokens).subspan(static_cast<size_t>(row * length), static_cast<size_t>(length)),
                std::span(y.as<float>() + row * v.outputs, static_cast<size_t>(v.outputs)));
  return {};
}
}  // namespace

std::span<const OpDef> tf_idf_vectorizer() {
  static const OpDef def{.name = "TfIdfVectorizer",
                         .summary = "counts n-grams of integers",
                         .attributes = {required(attr_int("max_gram_length")), required(attr_int("max_skip_count")),
                                        required(attr_int("min_gram_length")), required(attr_string("mode")),
                                        required(attr_ints("ngram_counts")), required(attr_ints("ngram_indexes")),
                                        attr_ints("pool_int64s"), attr_strings("pool_strings"), attr_floats("weights")},
                         .infer = infer,
                         .run = run,
                         .quant = QuantRule::Float};
  return {&def, 1};
}
}  // namespace orknn::ops
