// openrknn compare A B: how far two models, or a model and stored results, are from each other on pictures.
#include "toolkit/compare.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "runtime/custom_op_plugins.h"
#include "terminal.h"
#include "toolkit/engine_comparison.h"

namespace orknn::cli {
namespace {

struct CompareOptions {
  SourceOptions source;
  std::string a, b, images;
  bool engines = false, json = false;
};

// The model's command streams against its simulator, layer by layer, on every sample.
Status compare_streams(const CompareOptions& o, const std::shared_ptr<const format::Model>& model,
                       const std::vector<data::Dataset>& samples) {
  toolkit::EngineComparison total;
  for (const data::Dataset& set : samples)
    for (size_t i = 0; i < set.size(); ++i) {
      ORKNN_TRY_ASSIGN(const std::vector<ir::TensorData> values, set.sample(i));
      const auto feed = [&](runtime::Session& session) { return toolkit::feed_sample(session, values, set.inputs()); };
      ORKNN_TRY_ASSIGN(const toolkit::EngineComparison one, toolkit::compare_engines(model, ThreadPool::shared(), feed));
      merge(total, one);
    }
  if (o.json)
    print_json(toolkit::to_json(total));
  else
    print(toolkit::engine_comparison_text(total, true, output_width()));
  return toolkit::status_of(total);
}

Status compare(const CompareOptions& o) {
  if (o.images.empty() == o.source.dataset.empty())
    return invalid_argument("compare needs --images FOLDER or --dataset LIST, and not both");
  if (o.engines != o.b.empty()) return invalid_argument("compare needs a second model, or --engines, and not both");
  SourceOptions plain = o.source;
  plain.dataset.clear();   // here it lists what is compared on
  plain.declared.clear();  // options are meant for whichever of the two is a source model
  ORKNN_TRY_ASSIGN(const auto first, open_model(o.a, plain));
  ORKNN_TRY_ASSIGN(const std::unique_ptr<runtime::Session> a, runtime::Session::open(first));
  runtime::load_plugins(*a);
  ORKNN_TRY_ASSIGN(const std::vector<data::Dataset> samples,
                   toolkit::open_pictures(o.images.empty() ? o.source.dataset : o.images, a->inputs(), o.source.bgr));
  if (o.engines) return compare_streams(o, first, samples);
  std::error_code ignored;
  const bool stored = std::filesystem::is_directory(o.b, ignored);
  toolkit::Comparison result;
  if (stored) {
    ORKNN_TRY_ASSIGN(result, toolkit::compare_with_stored(*a, o.b, samples, progress_bar()));
  } else {
    ORKNN_TRY_ASSIGN(const auto second, open_model(o.b, plain));
    ORKNN_TRY_ASSIGN(const std::unique_ptr<runtime::Session> b, runtime::Session::open(second));
    runtime::load_plugins(*b);
    ORKNN_TRY_ASSIGN(result, toolkit::compare_models(*a, *b, samples, progress_bar()));
  }
  if (o.json)
    print_json(toolkit::to_json(result));
  else
    print(toolkit::comparison_text(result, output_width()));
  return {};
}
}  // namespace

Action add_compare(CLI::App& app) {
  CLI::App* command = app.add_subcommand("compare", "compare two models, or a model and stored results, on pictures");
  const auto o = std::make_shared<CompareOptions>();
  o->source.float_dtype = "float32";
  command->add_option("a", o->a, ".rknn or source model")->required();
  command->add_option("b", o->b,
                      ".rknn or source model, or a folder of results: dog.jpg.npy or dog.npy, dog_0.npy, ... for dog.jpg");
  command->add_flag(
      "--engines", o->engines,
      "instead of a second model: the command streams of the first, on the board's NPU where there is one, against its "
      "simulator, layer by layer");
  command->add_option("--images", o->images, "folder of pictures or .npy files")->check(existing_folder());
  command->add_option("--dataset", o->source.dataset, "list of samples, one per line");
  command->add_flag("--bgr", o->source.bgr, "pictures are fed as BGR");
  o->source.add_to(*command);
  command->add_flag("--json", o->json, "print JSON");
  add_examples(*command, {"compare model.onnx model.rknn --images pictures", "compare model.rknn results --dataset list.txt",
                          "compare model.rknn --engines --images pictures"});
  return [o] {
    const Status s = compare(*o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

}  // namespace orknn::cli
