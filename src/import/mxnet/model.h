// From a parsed symbol and its parameters to our graph: which variables are inputs, which are parameters, in which order layers
// are lowered, and what their outputs are called.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "import/lower/network.h"
#include "import/mxnet/layer.h"
#include "import/mxnet/params.h"

namespace orknn::importer::mxnet {

// The whole import of a symbol. Without `params` parameters are made up.
Result<Imported> import_model(std::span<const std::byte> symbol, const Params* params, const ImportOptions& options,
                              const ir::OpSet& ops);

// The shape and type a variable states; unknown extents where it says 0 or -1, float32 when it states no type.
std::optional<ir::Shape> stated_shape(const SymbolNode& variable);
DType stated_dtype(const SymbolNode& variable);

class Model : public ModelAccess {
 public:
  Model(const Symbol& symbol, const Params* params, const ir::OpSet& ops) : symbol_(symbol), params_(params), network_(ops) {}
  Result<ir::Graph> build(const ImportOptions& options);
  const std::vector<std::string>& warnings() const { return network_.warnings; }

  Result<ir::TensorId> parameter(const std::string& name, const std::optional<ir::Dims>& dims, Fill fill,
                                 int64_t fan_in) override;
  Result<std::vector<ir::TensorId>> lower_body(const Symbol& body, std::span<const ir::TensorId> inputs,
                                               const std::string& prefix) override;
  void warn(std::string text) override { network_.warnings.push_back(std::move(text)); }

 private:
  // What the variables without a value are for.
  struct Variables {
    std::vector<uint32_t> inputs, parameters, states;
  };

  void name_outputs();
  std::string_view name_of(const Entry& entry) const;
  Result<std::vector<std::string>> pick_outputs(const ImportOptions& options);
  std::vector<char> labelled_nodes() const;
  Variables sort_variables(const LayerPlan& plan) const;
  Result<std::vector<Port>> ports(const LayerPlan& plan, const ImportOptions& options);
  std::optional<int64_t> rank_needed_by_readers(uint32_t variable) const;
  Status add_constants(const LayerPlan& plan);
  ir::TensorId bind_parameter(const std::string& name, ir::TensorData value);
  Status lower(const SymbolNode& node, uint32_t index);
  Result<std::vector<ir::TensorId>> run_row(Layer& layer);

  const Symbol& symbol_;
  const Params* params_;
  Network network_;
  std::map<Entry, std::string> names_;                   // outputs that somebody reads
  std::unordered_map<std::string_view, Entry> entries_;  // by name
  InventedValues invented_;
  int body_depth_ = 0;
  size_t body_layers_ = 0;
};

}  // namespace orknn::importer::mxnet
