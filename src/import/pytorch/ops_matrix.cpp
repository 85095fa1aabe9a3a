// Products of matrices and vectors.
#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

struct Pair {
  TensorId a, b;
  DType dtype;
};
Result<Pair> pair(Call& c, std::string_view a, std::string_view b) {
  ORKNN_TRY_ASSIGN(const DType t, c.common_type({&c.value(a), &c.value(b)}));
  return Pair{c.as(c.value(a), t), c.as(c.value(b), t), t};
}

Result<Value> matmul(Call& c) {
  ORKNN_TRY_ASSIGN(const Pair p, pair(c, "self", "other"));
  return c.made(c.matmul(p.a, p.b));
}
Result<Value> outer(Call& c) {
  ORKNN_TRY_ASSIGN(const Pair p, pair(c, "self", "other"));
  return c.made(c.mul(c.reshape(p.a, {-1, 1}), c.reshape(p.b, {1, -1})));
}
Result<Value> dot(Call& c) {
  ORKNN_TRY_ASSIGN(const Pair p, pair(c, "self", "other"));
  return c.made(c.reduce("ReduceSum", c.mul(p.a, p.b), {0}, false));
}
// Dot products along one axis.
Result<Value> vecdot(Call& c) {
  ORKNN_TRY_ASSIGN(const Pair p, pair(c, "self", "other"));
  const TensorId product = c.mul(p.a, p.b);
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank_of(product).value_or(1)));
  return c.made(c.reduce("ReduceSum", product, {static_cast<int64_t>(axis)}, false));
}

// beta * self + alpha * product
Result<Value> add_to(Call& c, TensorId product) {
  const DType t = c.dtype_of(product);
  if (c.number("alpha") != 1) product = c.mul(product, c.as(c.value("alpha"), t));
  if (c.number("beta") == 0) return c.made(product);
  TensorId base = c.cast(c.tensor("self"), t);
  if (c.number("beta") != 1) base = c.mul(base, c.as(c.value("beta"), t));
  return c.made(c.add(base, product));
}
Result<Value> addmm(Call& c) {
  ORKNN_TRY_ASSIGN(const Pair p, pair(c, "mat1", "mat2"));
  if (!is_float(p.dtype) || c.rank("self") > 2) return add_to(c, c.matmul(p.a, p.b));
  return c.made(
      c.emit("Gemm", {p.a, p.b, c.cast(c.tensor("self"), p.dtype)}, {{"alpha", c.number("alpha")}, {"beta", c.number("beta")}}));
}
Result<Value> add_product(Call& c) {
  ORKNN_TRY_ASSIGN(const Pair p, pair(c, "batch1", "batch2"));
  return add_to(c, c.matmul(p.a, p.b));
}
Result<Value> addbmm(Call& c) {
  ORKNN_TRY_ASSIGN(const Pair p, pair(c, "batch1", "batch2"));
  return add_to(c, c.reduce("ReduceSum", c.matmul(p.a, p.b), {0}, false));
}
Result<Value> addr(Call& c) {
  ORKNN_TRY_ASSIGN(const Pair p, pair(c, "batch1", "batch2"));
  return add_to(c, c.mul(c.reshape(p.a, {-1, 1}), c.reshape(p.b, {1, -1})));
}
Result<Value> addmv(Call& c) {
  ORKNN_TRY_ASSIGN(const Pair p, pair(c, "batch1", "batch2"));
  return add_to(c, c.matmul(p.a, p.b));
}
Result<Value> addmm_activation(Call& c) {
  ORKNN_TRY_ASSIGN(const Value y, addmm(c));
  return c.made(c.emit(c.flag("use_gelu") ? "Gelu" : "Relu", {y.tensor().id}));
}

Result<Value> linear(Call& c) {
  const DType t = c.dtype("input");
  const TensorId x = c.tensor("input"), weight = c.cast(c.tensor("weight"), t);
  if (c.rank("weight") == 1) {
    const TensorId y = c.matmul(x, weight);
    return c.made(c.has("bias") ? c.add(y, c.cast(c.tensor("bias"), t)) : y);
  }
  if (c.rank("weight") != 2) return invalid_model("a linear layer needs a matrix").found(ir::to_string(c.dims("weight")));
  if (c.rank("input") == 2 && is_float(t)) {
    std::vector<TensorId> inputs{x, weight};
    if (c.has("bias")) inputs.push_back(c.cast(c.tensor("bias"), t));
    return c.made(c.emit("Gemm", std::move(inputs), {{"transB", int64_t{1}}}));
  }
  const TensorId y = c.matmul(x, c.transpose(weight, {1, 0}));
  return c.made(c.has("bias") ? c.add(y, c.cast(c.tensor("bias"), t)) : y);
}
// y[.., k] = x1 W[k] x2
Result<Value> bilinear(Call& c) {
  if (c.rank("weight") != 3) return invalid_model("a bilinear layer needs weights of three axes");
  const Dims w = c.dims("weight");
  Dims rows(c.dims("input1").begin(), c.dims("input1").end());
  if (rows.empty() || rows.size() != c.dims("input2").size())
    return invalid_model("the inputs of a bilinear layer do not fit each other");
  const TensorId a = c.reshape(c.tensor("input1"), {-1, w[1]}), b = c.reshape(c.tensor("input2"), {-1, w[2]});
  TensorId y = c.emit("Einsum", {a, c.tensor("weight"), b}, {{"equation", std::string("ni,kij,nj->nk")}});
  if (c.has("bias")) y = c.add(y, c.tensor("bias"));
  rows.back() = w[0];
  return c.made(c.reshape(y, rows));
}

// Spaces are allowed in equations. Operands share one type.
Result<Value> einsum(Call& c) {
  std::string equation;
  for (char ch : c.text("equation"))
    if (ch != ' ') equation += ch;
  const auto& items = c.items("tensors");
  std::vector<TensorId> operands;
  for (const Value& v : items)
    if (!v.is_tensor()) return invalid_model("a list of tensors holds None");
  ORKNN_TRY_ASSIGN(const DType t, c.common_type(std::span<const Value>(items)));
  double work = 1;
  for (const Value& v : items) {
    operands.push_back(c.cast(v.tensor().id, t));
    work *= static_cast<double>(std::max<int64_t>(ir::element_count(v.tensor().dims), 1));
  }
  if (items.size() > 2 && work > 1e13)
    return c.fail("einsum of so many large operands is not supported").hint("split it into products of two");
  return c.made(c.emit("Einsum", std::move(operands), {{"equation", equation}}));
}
Result<Value> tensordot(Call& c) {
  const int64_t ra = c.rank("self"), rb = c.rank("other");
  std::vector<int64_t> da = c.ints("dims_self"), db = c.ints("dims_other");
  if (da.size() != db.size()) return invalid_model("tensordot needs as many axes on both sides");
  // Contracted axes last on the left, first on the right; the rest makes rows and columns.
  const auto order = [&](const std::vector<int64_t>& axes, int64_t rank, bool contracted_last) -> Result<std::vector<int64_t>> {
    std::vector<int64_t> contracted, free;
    for (int64_t a : axes) {
      ORKNN_TRY_ASSIGN(const size_t axis, c.axis_of(a, rank));
      if (std::find(contracted.begin(), contracted.end(), static_cast<int64_t>(axis)) != contracted.end())
        return invalid_model("tensordot names an axis twice");
      contracted.push_back(static_cast<int64_t>(axis));
    }
    for (int64_t i = 0; i < rank; ++i)
      if (std::find(contracted.begin(), contracted.end(), i) == contracted.end()) free.push_back(i);
    std::vector<int64_t>& first = contracted_last ? free : contracted;
    const std::vector<int64_t>& second = contracted_last ? contracted : free;
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  ORKNN_TRY_ASSIGN(const auto pa, order(da, ra, true));
  ORKNN_TRY_ASSIGN(const auto pb, order(db, rb, false));
  if (pa.size() != static_cast<size_t>(ra) || pb.size() != static_cast<size_t>(rb))
    return invalid_model("tensordot names axes that are not there");
  Dims result;
  int64_t rows = 1, inner = 1, columns = 1;
  for (size_t i = 0; i < pa.size(); ++i) {
    const int64_t d = c.dims("self")[static_cast<size_t>(pa[i])];
    if (i + da.size() < pa.size()) {
      result.push_back(d);
      rows *= d;
    } else {
      inner *= d;
    }
  }
  for (size_t i = db.size(); i < pb.size(); ++i) {
    const int64_t d = c.dims("other")[static_cast<size_t>(pb[i])];
    result.push_back(d);
    columns *= d;
  }
  const TensorId a = c.reshape(c.transpose(c.tensor("self"), pa), {rows, inner}),
                 b = c.reshape(c.transpose(c.tensor("other"), pb), {inner, columns});
  return c.made(c.reshape(c.matmul(a, b), result));
}
Result<Value> chain(Call& c) {
  const auto& items = c.items("matrices");
  if (items.empty()) return invalid_model("a list of matrices is empty");
  TensorId y = items[0].tensor().id;
  for (size_t i = 1; i < items.size(); ++i) y = c.matmul(y, items[i].tensor().id);
  return c.made(y);
}
Result<Value> cross(Call& c) {
  ORKNN_TRY_ASSIGN(const Pair p, pair(c, "self", "other"));
  const int64_t rank = c.rank("self");
  int64_t axis = -1;
  if (c.has("dim")) {
    ORKNN_TRY_ASSIGN(const size_t a, c.axis("dim", rank));
    axis = static_cast<int64_t>(a);
  } else {
    for (int64_t i = rank; i-- > 0;)
      if (c.dims("self")[static_cast<size_t>(i)] == 3) axis = i;
  }
  if (axis < 0 || rank == 0 || c.dims("self")[static_cast<size_t>(axis)] != 3)
    return invalid_model("cross needs an axis of extent 3");
  const auto turned = [&](TensorId x, int64_t first) {
    return c.gather(x, c.add_ints("order", {first, (first + 1) % 3, (first + 2) % 3}), axis);
  };
  return c.made(c.sub(c.mul(turned(p.a, 1), turned(p.b, 2)), c.mul(turned(p.a, 2), turned(p.b, 1))));
}
Result<Value> kron(Call& c) {
  ORKNN_TRY_ASSIGN(const Pair p, pair(c, "self", "other"));
  Dims a = c.dims("self"), b = c.dims("other");
  if (a.size() < b.size()) a.insert(a.begin(), b.size() - a.size(), 1);
  if (b.size() < a.size()) b.insert(b.begin(), a.size() - b.size(), 1);
  Dims wide_a, wide_b, result;
  for (size_t i = 0; i < a.size(); ++i) {
    wide_a.insert(wide_a.end(), {a[i], 1});
    wide_b.insert(wide_b.end(), {1, b[i]});
    result.push_back(a[i] * b[i]);
  }
  return c.made(c.reshape(c.mul(c.reshape(p.a, wide_a), c.reshape(p.b, wide_b)), result));
}
Result<Value> inverse(Call& c) { return c.made(c.emit("Inverse", {c.as_float("self")})); }
Result<Value> inverse_with_info(Call& c) {
  ORKNN_TRY_ASSIGN(const Value y, inverse(c));
  return c.tuple({y, Value::uninitialized()});
}
// The solution of A x = b; a right side with one axis less is a batch of vectors.
Result<Value> solve(Call& c) {
  const TensorId inverted = c.emit("Inverse", {c.as_float("A")}), b = c.as_float("B");
  const Dims &left = c.dims("A"), &right = c.dims("B");
  const bool is_vector =
      right.size() == 1 || (left.size() == right.size() + 1 && std::equal(right.begin(), right.end(), left.begin()));
  if (!c.flag("left")) return c.made(c.matmul(b, inverted));
  return c.made(is_vector ? c.squeeze(c.matmul(inverted, c.unsqueeze(b, {-1})), {-1}) : c.matmul(inverted, b));
}
Result<Value> det(Call& c) { return c.made(c.emit("Det", {c.tensor("self")})); }
Result<Value> log_det(Call& c) { return c.made(c.emit("Log", {c.emit("Det", {c.tensor("self")})})); }
Result<Value> sign_and_log_det(Call& c) {
  const TensorId determinant = c.emit("Det", {c.tensor("self")});
  ORKNN_TRY_ASSIGN(const Value sign, c.made(c.emit("Sign", {determinant})));
  ORKNN_TRY_ASSIGN(const Value log, c.made(c.emit("Log", {c.emit("Abs", {determinant})})));
  return c.tuple({sign, log});
}
Result<Value> matrix_power(Call& c) {
  constexpr int64_t kMaxPower = 1024;
  const int64_t n = c.integer("n");
  const Dims& dims = c.dims("self");
  if (n > kMaxPower || n < -kMaxPower)
    return c.fail("the matrix is multiplied too often")
        .expected("at most " + std::to_string(kMaxPower) + " times")
        .found(std::to_string(n));
  if (dims.size() < 2 || dims[dims.size() - 1] != dims[dims.size() - 2])
    return invalid_model("only square matrices have powers").found(ir::to_string(dims));
  const TensorId x = n < 0 ? c.emit("Inverse", {c.tensor("self")}) : c.tensor("self");
  if (n == 0) return c.made(c.expand(c.emit("EyeLike", {c.full(Dims{dims.back(), dims.back()}, 0, c.dtype("self"))}), dims));
  // Squares of the matrix, multiplied where the power has a one.
  TensorId square = x, result;
  for (int64_t rest = n < 0 ? -n : n; rest > 0; rest /= 2) {
    if (rest % 2 == 1) result = result ? c.matmul(result, square) : square;
    if (rest > 1) square = c.matmul(square, square);
  }
  return c.made(result);
}
Result<Value> trace(Call& c) {
  if (c.rank("self") != 2) return invalid_model("trace needs a matrix");
  const int64_t columns = c.dims("self")[1], count = std::min(c.dims("self")[0], columns);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < std::min<int64_t>(count, 1 << 20); ++i) positions.push_back(i * (columns + 1));
  return c.made(
      c.reduce("ReduceSum", c.gather(c.reshape(c.tensor("self"), {-1}), c.add_ints("diagonal", positions), 0), {0}, false));
}
}  // namespace

std::span<const Row> matrix_rows() {
  static constexpr Row kRows[] = {
      {"matmul(Tensor self, Tensor other)", matmul},
      {"linalg_matmul(Tensor self, Tensor other)", matmul},
      {"__matmul__(Tensor self, Tensor other)", matmul},
      {"mm(Tensor self, Tensor other)", matmul},
      {"bmm(Tensor self, Tensor other)", matmul},
      {"mv(Tensor self, Tensor other)", matmul},
      {"dot(Tensor self, Tensor other)", dot},
      {"vdot(Tensor self, Tensor other)", dot},
      {"inner(Tensor self, Tensor other)",
       [](Call& c) {
         return c.made(
             c.matmul(c.tensor("self"), c.rank("other") < 2 ? c.tensor("other") : c.swap_axes(c.tensor("other"), -2, -1)));
       }},
      {"linalg_vecdot(Tensor self, Tensor other, *, int dim=-1)", vecdot},
      {"outer(Tensor self, Tensor other)", outer},
      {"ger(Tensor self, Tensor other)", outer},
      {"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)", addmm},
      {"_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False)",
       addmm_activation},
      {"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", add_product},
      {"addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", addbmm},
      {"addmv(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", addmv},
      {"addr(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", addr},
      {"linear(Tensor input, Tensor weight, Tensor? bias=None)", linear},
      {"bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None)", bilinear},
      {"einsum(str equation, Tensor[] tensors, *, any path=None)", einsum},
      {"tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other)", tensordot},
      {"chain_matmul(Tensor[] matrices)", chain},
      {"linalg_multi_dot(Tensor[] matrices)", chain},
      {"cross(Tensor self, Tensor other, int? dim=None)", cross},
      {"linalg_cross(Tensor self, Tensor other, *, int? dim=-1)", cross},
      {"kron(Tensor self, Tensor other)", kron},
      {"det(Tensor self)", det},
      {"linalg_det(Tensor self)", det},
      {"trace(Tensor self)", trace},
      {"logdet(Tensor self)", log_det},
      {"slogdet(Tensor self)", sign_and_log_det},
      {"linalg_slogdet(Tensor self)", sign_and_log_det},
      {"matrix_power(Tensor self, int n)", matrix_power},
      {"linalg_matrix_power(Tensor self, int n)", matrix_power},
      {"inverse(Tensor self)", inverse},
      {"linalg_inv(Tensor self)", inverse},
      {"linalg_inv_ex(Tensor self, *, bool check_errors=False)", inverse_with_info},
      {"linalg_solve(Tensor A, Tensor B, *, bool left=True)", solve},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
