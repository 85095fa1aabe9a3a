#include "toolkit/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "data/npy.h"
#include "toolkit/accuracy.h"
#include "toolkit/table.h"

namespace orknn::toolkit {
namespace {

namespace fs = std::filesystem;
using Outputs = std::vector<ir::TensorData>;

Result<Outputs> run(runtime::Session& session, const std::vector<ir::TensorData>& values,
                    const std::vector<data::ModelInput>& described) {
  ORKNN_TRY(feed_sample(session, values, described));
  ORKNN_TRY(session.run());
  Outputs outputs;
  for (size_t i = 0; i < session.outputs().size(); ++i) outputs.push_back(session.output(i));
  return outputs;
}

std::vector<float> floats(const ir::TensorData& value) {
  const ir::TensorData wide = ir::convert(value.view(), DType::Float32);
  return {wide.values<float>().begin(), wide.values<float>().end()};
}

using Expected =
    std::function<Result<Outputs>(const std::vector<ir::TensorData>& inputs, const data::Dataset& sample, size_t index)>;

Result<Comparison> compare(runtime::Session& a, const std::vector<data::Dataset>& samples, const Expected& other,
                           const Progress& progress) {
  Comparison result;
  size_t total = 0;
  for (const data::Dataset& d : samples) total += d.size();
  if (total == 0) return invalid_argument("there are no pictures to compare on");
  for (const runtime::PortInfo& port : a.outputs()) result.outputs.push_back({.name = port.name});
  const auto show = [&] {
    if (progress) progress("Comparing", static_cast<int64_t>(result.pictures), static_cast<int64_t>(total));
  };
  show();
  for (const data::Dataset& d : samples)
    for (size_t i = 0; i < d.size(); ++i) {
      const std::string where = d.describe(i);
      ORKNN_TRY_ASSIGN(const std::vector<ir::TensorData> inputs, d.sample(i));
      ORKNN_TRY_ASSIGN(const Outputs first, run(a, inputs, d.inputs()));
      ORKNN_TRY_ASSIGN(const Outputs second, other(inputs, d, i));
      if (first.size() != second.size())
        return invalid_argument("the two have different numbers of outputs")
            .expected(std::to_string(first.size()))
            .found(std::to_string(second.size()))
            .model(where);
      for (size_t k = 0; k < first.size(); ++k) {
        OutputComparison& out = result.outputs[k];
        const std::vector<float> x = floats(first[k]), y = floats(second[k]);
        if (x.size() != y.size())
          return invalid_argument(fmt::format("output '{}' has different sizes", out.name))
              .expected(ir::to_string(first[k].dims()))
              .found(ir::to_string(second[k].dims()))
              .model(where);
        out.dims = first[k].dims();
        const Distance distance_of_both = distance(x, y);
        const double cosine = distance_of_both.word.empty() ? distance_of_both.cosine : 0;
        out.mean_cosine = result.pictures == 0 ? cosine : out.mean_cosine + cosine;
        if (result.pictures == 0 || cosine < out.least_cosine) {
          out.least_cosine = cosine;
          out.least_cosine_at = d.files(i)[0];
        }
        double sum = 0;
        for (size_t e = 0; e < x.size(); ++e) {
          const double difference = x[e] == y[e] ? 0 : std::abs(static_cast<double>(x[e]) - y[e]);
          out.largest_difference = std::max(out.largest_difference, std::isnan(difference) ? INFINITY : difference);
          sum += difference;
        }
        out.mean_difference += x.empty() ? 0 : sum / static_cast<double>(x.size());
        const auto top = [](const std::vector<float>& v) { return std::max_element(v.begin(), v.end()) - v.begin(); };
        out.same_top1 += top(x) == top(y) ? 1 : 0;
      }
      ++result.pictures;
      show();
    }
  for (OutputComparison& out : result.outputs) {
    out.mean_cosine /= static_cast<double>(result.pictures);
    out.mean_difference /= static_cast<double>(result.pictures);
  }
  return result;
}
}  // namespace

Status feed_sample(runtime::Session& session, const std::vector<ir::TensorData>& values,
                   const std::vector<data::ModelInput>& described) {
  if (values.size() != session.inputs().size())
    return invalid_argument("the models have different numbers of inputs")
        .expected(std::to_string(values.size()))
        .found(std::to_string(session.inputs().size()));
  for (size_t i = 0; i < values.size(); ++i) {
    runtime::InputData data;
    data.dtype = values[i].dtype();
    data.data = values[i].data();
    data.bytes = values[i].bytes();
    data.layout = described[i].layout;
    ORKNN_TRY(session.set_input(i, data));
  }
  return {};
}

Result<std::vector<data::Dataset>> open_pictures(const std::string& folder_or_list, const std::vector<runtime::PortInfo>& ports,
                                                 bool swap_red_blue) {
  std::vector<data::ModelInput> inputs;
  for (const runtime::PortInfo& port : ports) {
    if (std::any_of(port.dims.begin(), port.dims.end(), [](int64_t d) { return d < 0; }))
      return unsupported("input '" + port.name + "' has no fixed shape").hint("give the input shapes with --input-size-list");
    inputs.push_back({port.name, port.dims, port.layout, swap_red_blue});
  }
  std::vector<data::Dataset> list;
  std::error_code problem;
  if (!fs::is_directory(folder_or_list, problem)) {
    ORKNN_TRY_ASSIGN(data::Dataset samples, data::Dataset::open(folder_or_list, inputs));
    list.push_back(std::move(samples));
    return list;
  }
  if (inputs.size() != 1)
    return invalid_argument(fmt::format("the model has {} inputs, a folder serves one", inputs.size()))
        .hint("give a list with one file per input on each line");
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_or_list, problem)) {
    std::string ending = entry.path().extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (ending == ".jpg" || ending == ".jpeg" || ending == ".png" || ending == ".bmp" || ending == ".npy")
      files.push_back(entry.path().string());
  }
  if (problem) return io_error(fmt::format("the folder '{}' cannot be read: {}", folder_or_list, problem.message()));
  if (files.empty())
    return invalid_argument("there are no pictures in '" + folder_or_list + "'").expected("jpg, png, bmp or npy files");
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    ORKNN_TRY_ASSIGN(data::Dataset sample, data::Dataset::of_files({file}, inputs));
    list.push_back(std::move(sample));
  }
  return list;
}

Result<Comparison> compare_models(runtime::Session& a, runtime::Session& b, const std::vector<data::Dataset>& samples,
                                  const Progress& progress) {
  return compare(
      a, samples,
      [&](const std::vector<ir::TensorData>& inputs, const data::Dataset& sample, size_t) {
        return run(b, inputs, sample.inputs());
      },
      progress);
}

Result<Comparison> compare_with_stored(runtime::Session& a, const std::string& folder, const std::vector<data::Dataset>& samples,
                                       const Progress& progress) {
  const auto stored_file = [&](const fs::path& picture, size_t output) {
    std::string file;
    for (const std::string& name : {picture.filename().string(), file_stem(picture.string())}) {
      const std::string start = (fs::path(folder) / name).string();
      std::error_code ignored;
      file = fmt::format("{}_{}.npy", start, output);
      if (a.outputs().size() == 1 && !fs::exists(file, ignored)) file = start + ".npy";
      if (fs::exists(file, ignored)) break;
    }
    return file;
  };
  std::map<std::string, std::string> taken;  // stored file -> files of the sample it belongs to
  return compare(
      a, samples,
      [&](const std::vector<ir::TensorData>&, const data::Dataset& sample, size_t index) -> Result<Outputs> {
        const std::string files = fmt::format("{}", fmt::join(sample.files(index), " "));
        Outputs outputs;
        for (size_t k = 0; k < a.outputs().size(); ++k) {
          const std::string file = stored_file(sample.files(index)[0], k);
          if (const std::string& other = taken.emplace(file, files).first->second; other != files)
            return invalid_argument(fmt::format("'{}' and '{}' would be compared with the same result", other, files))
                .model(file)
                .hint("name results after whole file names, as in dog.jpg.npy");
          auto value = data::read_npy(file);
          if (!value) return Status(value.status()).model(file);
          outputs.push_back(std::move(*value));
        }
        return outputs;
      },
      progress);
}

std::string comparison_text(const Comparison& c, size_t width) {
  using enum Table::Align;
  Table table({{"output", Left, true},
               {"shape", Left, true},
               {"cosine", Right},
               {"lowest", Right},
               {"largest difference", Right},
               {.title = "mean difference", .align = Right, .may_drop = true},
               {"same top-1", Right},
               {.title = "lowest at", .may_shorten = true, .may_drop = true}});
  for (const OutputComparison& o : c.outputs)
    table.add({o.name, ir::to_string(o.dims), fmt::format("{:.5f}", o.mean_cosine), fmt::format("{:.5f}", o.least_cosine),
               fmt::format("{:.6g}", o.largest_difference), fmt::format("{:.6g}", o.mean_difference),
               fmt::format("{}/{}", o.same_top1, c.pictures), o.least_cosine_at});
  return table.to_text(width);
}

nlohmann::ordered_json to_json(const Comparison& c) {
  nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
  for (const OutputComparison& o : c.outputs)
    outputs.push_back({{"name", o.name},
                       {"shape", o.dims},
                       {"cosine", o.mean_cosine},
                       {"lowest_cosine", o.least_cosine},
                       {"lowest_cosine_at", o.least_cosine_at},
                       {"largest_difference", o.largest_difference},
                       {"mean_difference", o.mean_difference},
                       {"same_top1", o.same_top1}});
  return {{"pictures", c.pictures}, {"outputs", std::move(outputs)}};
}

}  // namespace orknn::toolkit
