// openrknn edit, encrypt, codegen: other forms of a model file.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "commands.h"
#include "format/encrypted.h"
#include "terminal.h"
#include "toolkit/codegen.h"
#include "toolkit/onnx_edit.h"

namespace orknn::cli {
namespace {

struct EditOptions {
  std::string model, out, dataset;
  std::vector<std::string> inputs, outputs;
  bool json = false;
};

// NAME=FORMULA; formulas have '=' too, but none ahead of their first bracket.
Result<importer::onnx::TensorFormulas> formulas(const std::vector<std::string>& texts) {
  importer::onnx::TensorFormulas all;
  for (const std::string& text : texts) {
    const size_t at = text.rfind('=', std::min(text.find('['), text.find("->")));
    if (at == text.npos || at == 0)
      return invalid_argument("a transformation is a tensor, '=' and a formula").expected("x=a,b,c->a,c,b").found(text);
    all.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  return all;
}

Status edit(const EditOptions& o) {
  if (is_rknn(o.model))
    return invalid_argument("a finished .rknn cannot be edited").model(o.model).hint("edit the ONNX model it was made from");
  toolkit::OnnxEdit request{o.model, o.out, {}, {}, o.dataset};
  ORKNN_TRY_ASSIGN(request.inputs, formulas(o.inputs));
  ORKNN_TRY_ASSIGN(request.outputs, formulas(o.outputs));
  ORKNN_TRY_ASSIGN(const std::vector<std::string> lines, toolkit::edit_onnx(request));
  if (o.json) {
    print_json({{"output", o.out}, {"log", lines}});
    return {};
  }
  for (const std::string& line : lines) print(line + "\n");
  print(fmt::format("{:<16}{}\n", "written", o.out));
  return {};
}

struct EncryptOptions {
  std::string model, out;
  int level = 1;
  bool json = false;
};

Status encrypt(const EncryptOptions& o) {
  std::error_code problem;
  if (!is_rknn(o.model) && std::filesystem::is_regular_file(o.model, problem))
    return invalid_argument("the model is not a finished .rknn, which alone can be encrypted")
        .model(o.model)
        .hint("convert it first: openrknn convert");
  const std::string out = o.out.empty() ? directory_of(o.model) + "/" + file_stem(o.model) + ".crypt.rknn" : o.out;
  ORKNN_TRY(check_outputs({o.model}, {out}));
  const std::string passphrase = format::passphrase_of_environment();
  ORKNN_TRY(format::encrypt_rknn(o.model, out, {o.level, passphrase}));
  const char* key = passphrase.empty() ? "built-in" : "passphrase";
  if (o.json)
    print_json({{"output", out}, {"level", o.level}, {"key", key}});
  else
    print(fmt::format("{:<16}{} (level {}, {} key)\n", "written", out, o.level, key));
  return {};
}

struct CodegenOptions {
  SourceOptions source;
  std::string model;
  toolkit::CodegenRequest request;
  bool json = false;
};

Status codegen(CodegenOptions& o) {
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const format::Model> model, open_model(o.model, o.source));
  o.request.swap_red_blue = {o.source.bgr};
  ORKNN_TRY_ASSIGN(const bool written, toolkit::generate_project(model, o.request));
  if (!written) return invalid_argument("the folder exists").found(o.request.output_path).hint("--overwrite writes into it");
  if (o.json)
    print_json({{"output", o.request.output_path}});
  else
    print(fmt::format("{:<16}{}\n", "written", o.request.output_path));
  return {};
}

}  // namespace

Action add_edit(CLI::App& app) {
  CLI::App* command = app.add_subcommand("edit", "give inputs and outputs of an ONNX model other shapes");
  const auto o = std::make_shared<EditOptions>();
  command->add_option("model", o->model, "ONNX model")->required();
  command->add_option("-o,--output", o->out, "the ONNX model to write")->required();
  command->add_option("--transform-input", o->inputs, "NAME=FORMULA, e.g. x=a,b,c->a,c,b; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--transform-output", o->outputs, "NAME=FORMULA; may be repeated")->allow_extra_args(false);
  command->add_option("--dataset", o->dataset, "calibration list of the model: one for the edited model is written beside it");
  command->add_flag("--json", o->json, "print JSON");
  return [o] {
    const Status s = edit(*o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

Action add_encrypt(CLI::App& app) {
  CLI::App* command = app.add_subcommand("encrypt", "encrypt a .rknn; ORKNN_PASSPHRASE holds the passphrase, if there is one");
  const auto o = std::make_shared<EncryptOptions>();
  command->add_option("model", o->model, "the .rknn")->required();
  command->add_option("-o,--output", o->out, "the file to write, MODEL.crypt.rknn by default");
  offer(command->add_option("--level", o->level, "1 to 3: higher takes longer to open, and to attack")
            ->check(whole_number(format::kMinEncryptionLevel, format::kMaxEncryptionLevel)),
        whole_numbers(format::kMinEncryptionLevel, format::kMaxEncryptionLevel));
  command->add_flag("--json", o->json, "print JSON");
  return [o] {
    const Status s = encrypt(*o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

Action add_codegen(CLI::App& app) {
  CLI::App* command = app.add_subcommand("codegen", "write a C++ project that runs a model");
  const auto o = std::make_shared<CodegenOptions>();
  command->add_option("model", o->model, ".rknn or source model")->required();
  command->add_option("-o,--output", o->request.output_path, "folder of the project")->required();
  command
      ->add_option("-i,--input", o->request.inputs,
                   "picture or .npy of each input, in order: the program compares its results with the simulator's")
      ->allow_extra_args(false);
  command->add_flag("--overwrite", o->request.overwrite, "write into a folder that exists");
  o->source.add_to(*command);
  o->source.add_quantization_to(*command);
  o->source.add_other_keys_to(*command);
  command->add_flag("--json", o->json, "print JSON");
  return [o] {
    const Status s = codegen(*o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

}  // namespace orknn::cli
