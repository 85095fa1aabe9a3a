#include "toolkit/edited_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/files.h"
#include "base/log.h"
#include "base/utf8.h"
#include "data/dataset.h"
#include "data/npy.h"
#include "import/onnx/axis_formula.h"

namespace orknn::toolkit {
namespace {

namespace fs = std::filesystem;
using importer::onnx::AxisExtent;
using importer::onnx::AxisExtents;
using importer::onnx::AxisFormula;
using importer::onnx::AxisPlan;

// Known extents only.
ir::Dims dims_of_extents(const AxisExtents& extents) {
  ir::Dims dims;
  for (const AxisExtent& e : extents) dims.push_back(e.known);
  return dims;
}

// The tensor with its axes moved and joined as the plan says.
ir::TensorData rearranged(const ir::TensorData& value, const AxisPlan& plan) {
  const ir::Dims axes = dims_of_extents(plan.left_axes), moved = dims_of_extents(plan.right_axes);
  ir::TensorData result = ir::TensorData::allocate(value.dtype(), dims_of_extents(plan.after));
  const size_t element = dtype_bytes(value.dtype()), rank = axes.size();
  std::vector<size_t> strides(rank, element), index(rank, 0);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * static_cast<size_t>(axes[i]);
  auto* to = static_cast<std::byte*>(result.mutable_data());
  const auto* from = static_cast<const std::byte*>(value.data());
  const size_t count = result.bytes() / element;
  for (size_t n = 0; n < count; ++n, to += element) {
    size_t offset = 0;
    for (size_t i = 0; i < rank; ++i) offset += index[i] * strides[plan.to_right[i]];
    std::memcpy(to, from + offset, element);
    for (size_t i = rank; i-- > 0 && ++index[i] == static_cast<size_t>(moved[i]);) index[i] = 0;
  }
  return result;
}

// The sample in the model's old shape. An input with open dimensions takes the array as it is.
Result<ir::TensorData> read_sample(const importer::onnx::EditedInput& input, const std::string& file) {
  const bool is_open = std::any_of(input.dims.begin(), input.dims.end(), [](int64_t d) { return d < 0; });
  if (is_open) return data::read_npy(file);
  ORKNN_TRY_ASSIGN(const data::Dataset sample, data::Dataset::of_files({file}, {{input.name, input.dims}}));
  ORKNN_TRY_ASSIGN(const std::vector<ir::TensorData> values, sample.sample(0));
  return values[0];
}

class SampleWriter {
 public:
  SampleWriter(const std::string& dataset, const std::vector<importer::onnx::EditedInput>& inputs, const std::string& export_path)
      : dataset_(dataset), inputs_(inputs), folder_(directory_of(export_path)), stem_(file_stem(export_path)) {
    std::replace_if(
        stem_.begin(), stem_.end(), [](char c) { return c == ' ' || c == '\t'; }, '_');  // blanks separate files
  }

  Result<std::string> run() {
    ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(dataset_));
    std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    std::string list;
    for (size_t number = 1; !text.empty(); ++number) {
      const size_t end = std::min(text.find('\n'), text.size());
      auto line = edited_line(text.substr(0, end));
      if (!line) return std::move(line).status().model(fmt::format("{} line {}", dataset_, number));
      if (!line->empty()) list += *line + "\n";
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (list.empty()) return invalid_argument("the list has no samples").model(dataset_);
    const std::string path = (fs::path(folder_) / ("dataset_for_" + stem_ + ".txt")).string();
    ORKNN_TRY(write_file_atomically(path, [&](FileWriter& out) { return out.write(list); }));
    return path;
  }

 private:
  Result<std::string> edited_line(std::string_view line) {
    std::vector<std::string> files;
    for (size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != line.npos;) {
      const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
      files.emplace_back(line.substr(at, end - at));
      at = end;
    }
    if (files.empty()) return std::string();
    if (files.size() != inputs_.size())
      return invalid_argument("a sample has one file for each input")
          .expected(std::to_string(inputs_.size()))
          .found(std::to_string(files.size()));
    std::string result;
    for (size_t i = 0; i < files.size(); ++i) {
      ORKNN_TRY_ASSIGN(const std::string file, edited_file(i, located(files[i])));
      result += (i ? " " : "") + file;
    }
    return result;
  }

  std::string located(const std::string& name) const {
    const fs::path beside = fs::path(directory_of(dataset_)) / name;
    std::error_code ignored;
    return fs::exists(beside, ignored) || !fs::exists(name, ignored) ? beside.lexically_normal().string() : name;
  }

  // The file of input `i` as the new list names it, relative to the list where it lies below its folder.
  Result<std::string> edited_file(size_t i, const std::string& file) {
    const importer::onnx::EditedInput& input = inputs_[i];
    if (!input.formula) return in_list(file);
    const auto known = written_.find({i, file});
    if (known != written_.end()) return known->second;
    ORKNN_TRY_ASSIGN(const ir::TensorData value, read_sample(input, file));
    ORKNN_TRY_ASSIGN(const AxisFormula formula, importer::onnx::parse_axis_formula(*input.formula));
    ORKNN_TRY_ASSIGN(const AxisPlan plan, importer::onnx::apply_axis_formula(formula, value.dims()));
    warn_of_picture(file);
    const std::string name = fresh_file(file_stem(file) + "_for_" + stem_);
    ORKNN_TRY(data::write_npy((fs::path(folder_) / name).string(), rearranged(value, plan)));
    written_[{i, file}] = name;
    return name;
  }

  std::string in_list(const std::string& file) const {
    std::error_code problem;
    const fs::path path = fs::absolute(file, problem).lexically_normal(),
                   base = fs::absolute(folder_, problem).lexically_normal();
    const fs::path relative = path.lexically_relative(base);
    return relative.empty() || *relative.begin() == ".." ? path.string() : relative.string();
  }

  std::string fresh_file(const std::string& wanted) {
    std::string name = wanted + ".npy";
    for (size_t n = 1; !names_.insert(name).second; ++n) name = fmt::format("{}_{}.npy", wanted, n);
    return name;
  }

  void warn_of_picture(const std::string& file) {
    if (file.ends_with(".npy") || warned_) return;
    warned_ = true;
    log(LogLevel::Warn, "onnx_edit",
        fmt::format("'{}' is a picture and becomes an array: quant_img_RGB2BGR has no effect on arrays!", to_utf8(file)));
  }

  const std::string& dataset_;
  const std::vector<importer::onnx::EditedInput>& inputs_;
  std::string folder_, stem_;
  std::map<std::pair<size_t, std::string>, std::string> written_;
  std::set<std::string> names_;
  bool warned_ = false;
};
}  // namespace

Result<std::string> write_edited_samples(const std::string& dataset, const std::vector<importer::onnx::EditedInput>& inputs,
                                         const std::string& export_path) {
  return SampleWriter(dataset, inputs, export_path).run();
}

}  // namespace orknn::toolkit
