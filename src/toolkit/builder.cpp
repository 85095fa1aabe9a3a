#include "toolkit/builder.h"

#include <filesystem>

#include "format/rknn_file.h"
#include "ir/mapped_constants.h"

namespace orknn::toolkit {

Result<Builder> Builder::create(BuildConfig config, Progress progress) {
  ORKNN_TRY_ASSIGN(BuildOptions options, make_options(std::move(config), std::move(progress)));
  return Builder(std::move(options));
}

Status Builder::load_model(const SourceModel& source) {
  forget_model();
  ORKNN_TRY_ASSIGN(imported_, import_model(options_, source));
  return {};
}

Status Builder::build(const BuildRequest& request) {
  forget_build();
  if (!imported_) return invalid_argument("build needs a loaded source model first");
  ORKNN_TRY_ASSIGN(built_, build_model(options_, *imported_, request));
  return {};
}

Status Builder::set_batch(int64_t samples) {
  ORKNN_TRY(check_batch(samples));
  options_.config.rknn_batch_size = samples;
  return {};
}

Result<HybridStep1> Builder::hybrid_step1(const HybridRequest& request) {
  forget_build();
  if (!imported_) return invalid_argument("hybrid_quantization_step1 needs a loaded source model first");
  return toolkit::hybrid_step1(options_, *imported_, request);
}

Result<Builder> Builder::hybrid_step2(const HybridFiles& files, Progress progress,
                                      std::shared_ptr<const ops::CustomOps> custom_ops) {
  ORKNN_TRY_ASSIGN(HybridStep2 read, read_hybrid_files(files, std::move(progress), std::move(custom_ops)));
  Builder builder(std::move(read.options));
  builder.imported_ = std::move(read.imported);
  ORKNN_TRY(builder.build(read.request));
  return builder;
}

Result<AccuracyReport> Builder::analyse_accuracy(const AccuracyOptions& options) const {
  if (!built_)
    return invalid_argument("accuracy_analysis needs a built model")
        .hint("call build first; a model from load_rknn has no float form to compare with");
  return toolkit::analyse_accuracy(options_, *imported_, *built_, options);
}

Status Builder::export_rknn(const std::string& path) const {
  if (!built_) return invalid_argument("export_rknn needs a built model, call build first");
  for (const std::string& source : imported_->files) {
    std::error_code problem;
    if (std::filesystem::equivalent(source, path, problem))
      return invalid_argument("the model would overwrite its own source '" + source + "'")
          .model(path)
          .stage("export")
          .hint("give another file name");
  }
  const format::Model& model = *built_->model;
  for (const format::Program& program : model.programs)
    if (Status s = ir::check_mapped_files(program.graph); !s) return s.model(path).stage("export");
  constexpr uint64_t kLong = uint64_t{128} << 20;  // smaller files take less than two seconds and show no bar
  std::optional<ByteBar> bar;
  if (model.weight_bytes >= kLong) bar.emplace(options_.progress, "Exporting", format::kWritePasses * model.weight_bytes, 1);
  Status s = format::write_rknn(model, path, [&](uint64_t bytes) {
    if (bar) bar->add(bytes);
  });
  if (!s) return s.model(path).stage("export");
  if (bar) bar->finish();
  return {};
}

Result<uint64_t> Builder::file_bytes() const {
  if (!built_) return invalid_argument("the size of a file needs a built model, call build first");
  for (const format::Program& program : built_->model->programs) ORKNN_TRY(ir::check_mapped_files(program.graph));
  return format::rknn_file_bytes(*built_->model);
}

}  // namespace orknn::toolkit
