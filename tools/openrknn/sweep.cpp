// openrknn sweep MODELS: one table of models x chips x settings. The work is spread by Python (python/rknn/sweep.py), which runs
// the other commands of this program; here are its words, help and completion.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "commands.h"
#include "platform/platforms.h"
#include "terminal.h"

namespace orknn::cli {
namespace {

struct SweepOptions {
  std::vector<std::string> models, settings{"float"};
  std::string platforms, data, output = "sweep", ray;
  int workers = 0;
  bool json = false;
};

std::vector<std::string> words_of(const SweepOptions& o) {
  std::vector<std::string> words{"-m", "rknn.sweep", "--platforms", o.platforms, "--output", o.output};
  if (!o.data.empty()) words.insert(words.end(), {"--data", o.data});
  if (!o.ray.empty()) words.insert(words.end(), {"--ray", o.ray});
  if (o.workers > 0) words.insert(words.end(), {"--workers", std::to_string(o.workers)});
  if (o.json) words.emplace_back("--json");
  words.emplace_back("--settings");
  words.insert(words.end(), o.settings.begin(), o.settings.end());
  words.emplace_back("--");
  words.insert(words.end(), o.models.begin(), o.models.end());
  return words;
}

Status check_platforms(const std::string& list) {
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    ORKNN_TRY(platform::get(list.substr(begin, end - begin)).status());
    begin = end + 1;
  }
  return {};
}

// Python takes the place of this process; returns only when there is none.
Status become_python(std::vector<std::string> words) {
  const char* chosen = std::getenv("ORKNN_PYTHON");  // set by the wheel's own command
  words.insert(words.begin(), chosen && *chosen ? chosen : "python3");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  return Status::error(Code::NotFound, "sweep needs Python: '" + words[0] + "' cannot be started, " + std::strerror(errno))
      .hint("install the wheel, or name its Python in ORKNN_PYTHON");
}

Status sweep(const SweepOptions& o) {
  ORKNN_TRY(check_platforms(o.platforms));
  return become_python(words_of(o));
}
}  // namespace

Action add_sweep(CLI::App& app) {
  CLI::App* command = app.add_subcommand("sweep", "build models for several chips with several settings: one table of results");
  const auto o = std::make_shared<SweepOptions>();
  command->add_option("models", o->models, "source models")->required()->check(CLI::ExistingPath);
  command->add_option("-t,--platforms", o->platforms, "chips, a,b (openrknn platforms)")->required();
  command
      ->add_option("--settings", o->settings,
                   "NAME, or NAME='OPTIONS' with options of convert and quantize; --dataset among them quantizes")
      ->capture_default_str();
  command
      ->add_option("--data", o->data,
                   "list of samples or folder of pictures to compare with the float model on; else the --dataset")
      ->check(CLI::ExistingPath);
  command->add_option("-o,--output", o->output, "folder of the table and of finished work; the same command continues there")
      ->capture_default_str();
  command->add_option("--workers", o->workers, "processes of this machine; as many as it has cores by default")
      ->check(whole_number(1, 4096));
  command->add_option("--ray", o->ray, "do the work on the Ray cluster at this address instead, 'auto': the one of this machine");
  command->add_flag("--json", o->json, "print JSON");
  add_examples(*command, {"sweep a.onnx b.onnx -t CHIP --settings float 'int8=--dataset list.txt' --data validation.txt",
                          "sweep a.onnx -t CHIP --settings 'mmse=--dataset list.txt --algorithm mmse' --ray auto"});
  return [o] {
    const Status s = sweep(*o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

}  // namespace orknn::cli
