#include "import/foreign_files.h"

#include <algorithm>
#include <filesystem>

namespace orknn::importer {
namespace {
using namespace std::string_view_literals;
constexpr std::string_view kFreeze =
    "freeze it into one .pb with convert_variables_to_constants_v2, or convert it to .tflite or .onnx";
constexpr std::string_view kPicture = "the file is a picture, not a model";
constexpr std::string_view kPictureHint = "pictures are inputs of a model, or samples of a calibration list";

// Files known by their first bytes.
struct Signature {
  std::string_view begin, what, hint;
};
constexpr Signature kSignatures[] = {
    {"RKNN", "the file is a finished .rknn", "load it with load_rknn, or give its source model"},
    {"\x12\x01\0\0\0\0\0\0"sv, "the file holds the parameters of an MXNet model",
     "give the -symbol.json file as the model and this one as its parameters"},
    {"version https://git-lfs", "the file is a pointer of Git LFS: the model itself was not fetched",
     "fetch it with git lfs pull"},
    {"<!DOCTYPE html", "the file is a web page, not a model", "the download went wrong: fetch the file itself"},
    {"<html", "the file is a web page, not a model", "the download went wrong: fetch the file itself"},
    {"\x93NUMPY", "the file holds one NumPy array, not a model", ""},
    {"\x89PNG", kPicture, kPictureHint},
    {"\xff\xd8\xff", kPicture, kPictureHint},
    {"GIF8", kPicture, kPictureHint},
    {"RIFF", "the file is a picture, a sound or a film, not a model", ""},
    {"%PDF-", "the file is a PDF document, not a model", ""},
    {"\x7f"
     "ELF",
     "the file is a program or a library, not a model", ""},
    {"GGUF", "the file holds weights in the GGUF format, which is not supported", ""},
    {"7767517\n", "the file describes a network of ncnn, which is not supported", "give the model it was made from"},
    {"\x1f\x8b", "the file is compressed (gzip)", "unpack it first"},
    {"7z\xbc\xaf\x27\x1c", "the file is compressed (7z)", "unpack it first"},
};
// Files known by their names; their bytes tell nothing or are those of another format.
constexpr Signature kNames[] = {
    {".bmp", kPicture, kPictureHint},
    {".py", "the file is a Python program, not a model", "run it so that it writes the model, and give that file"},
    {".weights", "the file holds the weights of a Darknet network",
     "give the .cfg file as the model and this one as its weights"},
    {".params", "the file holds the parameters of an MXNet model",
     "give the -symbol.json file as the model and this one as its parameters"},
    {".pdiparams", "the file holds the parameters of a PaddlePaddle model",
     "give the .json or .pdmodel file as the model and this one as its parameters"},
    {".safetensors", "the file holds weights without a network", "trace the model with torch.jit.trace, or export it to ONNX"},
    {".ckpt", "the file holds a checkpoint: weights without a network", kFreeze},
    {".index", "the file belongs to a checkpoint of TensorFlow: weights without a network", kFreeze},
    {".meta", "the file belongs to a checkpoint of TensorFlow, whose weights are not in it", kFreeze},
};

std::string_view begin_of(std::span<const std::byte> bytes, size_t count) {
  return {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), count)};
}

Status named(std::string_view what, std::string_view hint) {
  Status status = invalid_model(std::string(what));
  return hint.empty() ? status : status.hint(std::string(hint));
}
}  // namespace

Status recognize_foreign_file(std::string_view path, std::span<const std::byte> bytes) {
  if (bytes.empty()) return invalid_model("the file is empty");
  for (const Signature& s : kSignatures)
    if (begin_of(bytes, s.begin.size()) == s.begin) return named(s.what, s.hint);
  for (const Signature& s : kNames)
    if (path.ends_with(s.begin)) return named(s.what, s.hint);
  return {};
}

Result<std::string> model_file_of(const std::string& path) {
  std::error_code problem;
  if (!std::filesystem::is_directory(path, problem)) return path;
  const std::filesystem::path saved_model = std::filesystem::path(path) / "saved_model.pb";
  if (std::filesystem::exists(saved_model, problem)) return saved_model.string();
  return invalid_argument("this is a folder").expected("a model file");
}

}  // namespace orknn::importer
