// Products of matrices and vectors.
#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

TensorId outer(Emitter& e, TensorId a, TensorId b) { return e.mul(e.reshape(a, {-1, 1}), e.reshape(b, {1, -1})); }
TensorId dot(Emitter& e, TensorId a, TensorId b) { return e.reduce("ReduceSum", e.mul(a, b), {0}, false); }
TensorId inner(Call& c, TensorId a, TensorId b) {
  if (c.rank() == 0 || c.rank("other") == 0) return c.mul(a, b);
  return c.matmul(a, c.rank("other") < 2 ? b : c.swap_axes(b, -2, -1));
}
// Dot products along one axis.
Result<TensorId> vecdot(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId product, promoted<"Mul">(c));
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis_of(c.integer("dim"), c.rank_of(product).value_or(1)));
  return c.reduce("ReduceSum", product, {axis}, false);
}

// beta * self + alpha * product
TensorId added_to_self(Call& c, TensorId product) {
  const DType t = c.dtype_of(product);
  if (c.number("alpha") != 1) product = c.mul(product, c.as("alpha", t));
  if (c.number("beta") == 0) return product;
  const TensorId base = c.as("self", t);
  return c.add(c.number("beta") == 1 ? base : c.mul(base, c.as("beta", t)), product);
}
// The factors in their common type.
Result<std::pair<TensorId, TensorId>> factors(Call& c, std::string_view a, std::string_view b) {
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({a, b}));
  return std::pair(c.as(a, t), c.as(b, t));
}
Result<TensorId> addmm(Call& c) {
  ORKNN_TRY_ASSIGN(const auto f, factors(c, "mat1", "mat2"));
  const DType t = c.dtype_of(f.first);
  if (!is_float(t) || c.rank() > 2) return added_to_self(c, c.matmul(f.first, f.second));
  return c.emit("Gemm", {f.first, f.second, c.as("self", t)}, {{"alpha", c.number("alpha")}, {"beta", c.number("beta")}});
}
Result<TensorId> add_product(Call& c) {
  ORKNN_TRY_ASSIGN(const auto f, factors(c, "batch1", "batch2"));
  return added_to_self(c, c.matmul(f.first, f.second));
}
Result<TensorId> addbmm(Call& c) {
  ORKNN_TRY_ASSIGN(const auto f, factors(c, "batch1", "batch2"));
  return added_to_self(c, c.reduce("ReduceSum", c.matmul(f.first, f.second), {0}, false));
}
Result<TensorId> addr(Call& c) {
  ORKNN_TRY_ASSIGN(const auto f, factors(c, "batch1", "batch2"));
  return added_to_self(c, outer(c, f.first, f.second));
}
Result<TensorId> addmm_activation(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId y, addmm(c));
  return c.unary(c.flag("use_gelu") ? "Gelu" : "Relu", y);
}

Result<TensorId> linear(Call& c, TensorId x, TensorId weight, TensorId bias) {
  const DType t = c.dtype_of(x);
  weight = c.cast(weight, t);
  if (bias) bias = c.cast(bias, t);
  if (c.rank("weight") != 1 && c.rank("weight") != 2)
    return invalid_model("a linear layer needs a matrix").found(ir::to_string(c.dims("weight")));
  if (c.rank("weight") == 2 && c.rank("input") == 2 && is_float(t)) return c.linear(x, weight, bias);
  const TensorId y = c.matmul(x, c.rank("weight") == 1 ? weight : c.transpose(weight, {1, 0}));
  return bias ? c.add(y, bias) : y;
}
// y[.., k] = x1 W[k] x2
Result<TensorId> bilinear(Call& c, TensorId a, TensorId b, TensorId weight, TensorId bias) {
  if (c.rank("weight") != 3) return invalid_model("a bilinear layer needs weights of three axes");
  const Dims w = c.dims("weight");
  Dims rows = c.dims("input1");
  if (rows.empty() || rows.size() != c.dims("input2").size())
    return invalid_model("the inputs of a bilinear layer do not fit each other");
  TensorId y = c.emit("Einsum", {c.reshape(a, {-1, w[1]}), weight, c.reshape(b, {-1, w[2]})},
                      {{"equation", std::string("ni,kij,nj->nk")}});
  if (bias) y = c.add(y, bias);
  rows.back() = w[0];
  return c.reshape(y, rows);
}

// Spaces are allowed in equations. Operands share one type.
Result<TensorId> einsum(Call& c) {
  std::string equation(c.text("equation"));
  std::erase(equation, ' ');
  const auto& items = c.items("tensors");
  ORKNN_TRY_ASSIGN(std::vector<TensorId> operands, c.tensors("tensors"));
  ORKNN_TRY_ASSIGN(const DType t, c.common_type(items));
  double work = 1;
  for (size_t i = 0; i < items.size(); ++i) {
    operands[i] = c.cast(operands[i], t);
    work *= static_cast<double>(std::max<int64_t>(ir::element_count(items[i].tensor().dims), 1));
  }
  if (items.size() > 2 && work > 1e13)
    return unsupported("an einsum of this many large operands is not supported").hint("split it into products of two");
  return c.emit("Einsum", std::move(operands), {{"equation", equation}});
}

// One side of tensordot as a matrix [free, contracted]: the extents of its free axes come first.
struct Contraction {
  TensorId matrix;
  Dims free;
};
Result<Contraction> contraction(Call& c, std::string_view name, const std::string& axes_name) {
  ORKNN_TRY_ASSIGN(const auto contracted, c.ordered_axes(axes_name, name));
  if (contracted.size() != c.ints(axes_name).size()) return invalid_model("tensordot names axes that are not there");
  const Dims& dims = c.dims(name);
  std::vector<int64_t> order;
  Contraction side;
  for (int64_t i = 0; i < c.rank(name); ++i) {
    if (std::ranges::find(contracted, i) != contracted.end()) continue;
    order.push_back(i);
    side.free.push_back(dims[i]);
  }
  int64_t inner = 1;
  for (int64_t axis : contracted) inner *= dims[axis];
  order.insert(order.end(), contracted.begin(), contracted.end());
  side.matrix = c.reshape(c.transpose(c.tensor(name), order), {ir::element_count(side.free), inner});
  return side;
}
Result<TensorId> tensordot(Call& c) {
  if (c.ints("dims_self").size() != c.ints("dims_other").size())
    return invalid_model("tensordot needs as many axes on both sides");
  ORKNN_TRY_ASSIGN(Contraction a, contraction(c, "self", "dims_self"));
  ORKNN_TRY_ASSIGN(const Contraction b, contraction(c, "other", "dims_other"));
  a.free.insert(a.free.end(), b.free.begin(), b.free.end());
  return c.reshape(c.matmul(a.matrix, c.transpose(b.matrix, {1, 0})), a.free);
}
Result<TensorId> chain(Call& c) {
  ORKNN_TRY_ASSIGN(const auto matrices, c.tensors("matrices"));
  if (matrices.empty()) return invalid_model("a list of matrices is empty");
  TensorId y = matrices[0];
  for (size_t i = 1; i < matrices.size(); ++i) y = c.matmul(y, matrices[i]);
  return y;
}
Result<TensorId> cross(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  int64_t axis = -1;
  if (c.has("dim")) {
    ORKNN_TRY_ASSIGN(axis, c.axis());
  } else {
    for (int64_t i = c.rank(); i-- > 0;)
      if (c.dims()[i] == 3) axis = i;
  }
  if (axis < 0 || c.rank() == 0 || c.dims()[axis] != 3) return invalid_model("cross needs an axis of extent 3");
  const auto from = [&](TensorId v, int64_t first) {
    return c.gather(v, c.add_ints("order", {first, (first + 1) % 3, (first + 2) % 3}), axis);
  };
  return c.sub(c.mul(from(x[0], 1), from(x[1], 2)), c.mul(from(x[0], 2), from(x[1], 1)));
}
Result<TensorId> kron(Call& c) {
  ORKNN_TRY_ASSIGN(const auto x, c.promoted());
  Dims a = c.dims(), b = c.dims("other");
  if (a.size() < b.size()) a.insert(a.begin(), b.size() - a.size(), 1);
  if (b.size() < a.size()) b.insert(b.begin(), a.size() - b.size(), 1);
  Dims wide_a, wide_b, result;
  for (size_t i = 0; i < a.size(); ++i) {
    wide_a.insert(wide_a.end(), {a[i], 1});
    wide_b.insert(wide_b.end(), {1, b[i]});
    result.push_back(a[i] * b[i]);
  }
  return c.reshape(c.mul(c.reshape(x[0], wide_a), c.reshape(x[1], wide_b)), result);
}

TensorId inverse(Call& c, TensorId x) { return c.unary("Inverse", c.as_float(x)); }
// The solution of A x = b; a right side with one axis less is a batch of vectors.
TensorId solve(Call& c, TensorId a, TensorId b) {
  const TensorId inverted = inverse(c, a);
  b = c.as_float(b);
  const Dims &left = c.dims("A"), &right = c.dims("B");
  const bool is_vector =
      right.size() == 1 || (left.size() == right.size() + 1 && std::equal(right.begin(), right.end(), left.begin()));
  if (!c.flag("left")) return c.matmul(b, inverted);
  return is_vector ? c.squeeze(c.matmul(inverted, c.unsqueeze(b, {-1})), {-1}) : c.matmul(inverted, b);
}
TensorId log_det(Emitter& e, TensorId x) { return e.unary("Log", e.unary("Det", x)); }
std::vector<TensorId> sign_and_log_det(Emitter& e, TensorId x) {
  const TensorId determinant = e.unary("Det", x);
  return {e.unary("Sign", determinant), e.unary("Log", e.unary("Abs", determinant))};
}
Result<TensorId> matrix_power(Call& c, TensorId x) {
  constexpr int64_t kMaxPower = 1024;
  const int64_t n = c.integer("n");
  const Dims& dims = c.dims();
  if (n > kMaxPower || n < -kMaxPower)
    return unsupported("the matrix is multiplied too often")
        .expected("at most " + std::to_string(kMaxPower) + " times")
        .found(std::to_string(n));
  if (dims.size() < 2 || dims[dims.size() - 1] != dims[dims.size() - 2])
    return invalid_model("only square matrices have powers").found(ir::to_string(dims));
  if (n == 0) return c.expand(c.unary("EyeLike", c.full(Dims{dims.back(), dims.back()}, 0, c.dtype())), dims);
  // Squares of the matrix, multiplied where the power has a one.
  TensorId square = n < 0 ? c.unary("Inverse", x) : x, result;
  for (int64_t rest = n < 0 ? -n : n; rest > 0; rest /= 2) {
    if (rest % 2 == 1) result = result ? c.matmul(result, square) : square;
    if (rest > 1) square = c.matmul(square, square);
  }
  return result;
}
Result<TensorId> trace(Call& c, TensorId x) {
  if (c.rank() != 2) return invalid_model("trace needs a matrix");
  ORKNN_TRY_ASSIGN(const auto positions, diagonal_positions(c.dims()[0], c.dims()[1], 0));
  return c.reduce("ReduceSum", c.gather(c.reshape(x, {-1}), c.add_ints("diagonal", positions), 0), {0}, false);
}
}  // namespace

std::span<const Row> matrix_rows() {
  static const Row rows[] = {
      {"matmul|linalg_matmul|__matmul__|mm|bmm|mv(Tensor self, Tensor other)", promoted<"MatMul">},
      {"dot|vdot(Tensor self, Tensor other)", promoted<dot>},
      {"inner(Tensor self, Tensor other)", inner},
      {"linalg_vecdot(Tensor self, Tensor other, *, int dim=-1)", vecdot},
      {"outer|ger(Tensor self, Tensor other)", promoted<outer>},
      {"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)", addmm},
      {"_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False)",
       addmm_activation},
      {"baddbmm|addmv(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", add_product},
      {"addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", addbmm},
      {"addr(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", addr},
      {"linear(Tensor input, Tensor weight, Tensor? bias=None)", linear},
      {"bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None)", bilinear},
      {"einsum(str equation, Tensor[] tensors, *, any path=None)", einsum},
      {"tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other)", tensordot},
      {"chain_matmul|linalg_multi_dot(Tensor[] matrices)", chain},
      {"cross(Tensor self, Tensor other, int? dim=None)", cross},
      {"linalg_cross(Tensor self, Tensor other, *, int? dim=-1)", cross},
      {"kron(Tensor self, Tensor other)", kron},
      {"det|linalg_det(Tensor self)", same<"Det">},
      {"trace(Tensor self)", trace},
      {"logdet(Tensor self)", log_det},
      {"slogdet|linalg_slogdet(Tensor self)", sign_and_log_det},
      {"matrix_power|linalg_matrix_power(Tensor self, int n)", matrix_power},
      {"inverse|linalg_inv(Tensor self)", inverse},
      {"linalg_inv_ex(Tensor self, *, bool check_errors=False)", with_unused<inverse, 1>},
      {"linalg_solve(Tensor A, Tensor B, *, bool left=True)", solve},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
