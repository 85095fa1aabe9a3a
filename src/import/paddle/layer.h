// One operator of a program as its lowering sees it: operands, which old programs may state as attributes, and attributes.
#pragma once

#include "import/lower/channels_last.h"
#include "import/lower/row.h"
#include "import/paddle/program.h"

namespace orknn::importer::paddle {

// Says which stated numbers of an operator are too large for the layers that are told of it, and what they count as there; empty:
// none.
std::string replaced_numbers(const Operator& op);

class Layer : public Emitter {
 public:
  Layer(Network& network, const Operator& op)
      : Emitter(network.graph, network.ops, op.name, {op.name}), network_(network), op_(op) {}
  const Operator& op() const { return op_; }

  // --- operands
  using Outputs = std::vector<ir::TensorId>;  // of all lists, one after the other; none in place of what is not computed
  size_t operand_count() const;               // without absent ones at the end
  Result<ir::TensorId> operand(size_t i);     // a constant where the program states it as an attribute
  ir::TensorId input(size_t i);               // none when it is absent or of no use
  Result<std::vector<ir::TensorId>> list(size_t i);
  bool has(size_t i) const { return i < op_.inputs.size() && !op_.inputs[i].is_absent(); }
  // A vector of integers that may depend on the data: one tensor, or a list of single numbers put together. None when absent.
  Result<ir::TensorId> vector(size_t i);
  // The same as known integers: of the operand, or of the attribute where there is none.
  Result<std::vector<int64_t>> ints(size_t i, std::string_view key, std::string_view reason);
  Result<int64_t> integer(size_t i, std::string_view key, int64_t fallback, std::string_view reason);
  Result<double> number(size_t i, std::string_view key, double fallback, std::string_view reason);

  // --- attributes. One of another kind than asked for is the fallback.
  int64_t integer(std::string_view key, int64_t fallback) const;
  double number(std::string_view key, double fallback) const;
  bool flag(std::string_view key, bool fallback) const { return integer(key, fallback) != 0; }
  std::string text(std::string_view key, std::string_view fallback) const;
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  DType dtype(std::string_view key, DType fallback) const;  // fallback where Paddle leaves it open
  Result<int64_t> axis(int64_t stated, ir::TensorId x) const;

  // --- pictures
  PictureFormat format(size_t spatial) const;  // as `data_format` says

 private:
  const Attribute* find(std::string_view key) const;
  Network& network_;
  const Operator& op_;
};

using Row = OperatorRow<Layer>;

// The tables, one per family.
std::span<const Row> elementwise_rows(), convolution_rows(), normalization_rows(), matrix_rows(), reduction_rows(), shape_rows(),
    indexing_rows(), creation_rows(), resize_rows(), recurrent_rows(), detection_rows(), box_rows(), quantized_rows();

}  // namespace orknn::importer::paddle
