// Executes TorchScript code while importing. Tensors are values of the graph under construction, so operators on them become
// nodes; everything else (shapes, lists, constant conditions and loops) is computed on the spot. No code of the file runs on the
// machine: the operators are those of our tables, steps and nesting are bounded.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "import/pytorch/library.h"
#include "import/pytorch/schema.h"
#include "import/pytorch/session.h"

namespace orknn::importer::pytorch {

// Whether our tables have an operator; a name that ends with an underscore may be the plain one in place.
bool is_known_operator(std::string_view name);
// "aten::relu" for row "relu".
std::string shown_operator(std::string_view name);

class Interpreter {
 public:
  // `constants` is what CONSTANTS.c0, c1, ... mean.
  Interpreter(Session& session, Library& library, std::vector<Value> constants)
      : session_(session), library_(library), constants_(std::move(constants)) {}

  // The method of an object, nullptr when its class has none of that name.
  Result<const Function*> find_method(ObjectValue& object, std::string_view name);
  Result<Value> call_method(ObjectValue& object, std::string_view name, std::span<const Argument> arguments);
  // An operator by the name of its table row. `layer` names the nodes it makes.
  Result<Value> call_operator(std::string_view name, std::span<const Argument> arguments, const std::string& layer);
  // A literal such as the default of a parameter.
  Result<Value> literal(const Expression& expression);
  // The truth of a value that decides which code runs; an error when it is only known when the network runs.
  Result<bool> condition(const Value& value, const std::string& path);
  // Every operator that the code of these modules calls, by the name of its row, and in how many places.
  std::map<std::string, size_t> operators(std::span<ObjectValue* const> modules);

 private:
  struct Frame {
    const Function* function = nullptr;
    std::string path;  // of the module whose code runs
    std::unordered_map<std::string_view, Value> locals;
    Value result;
    bool returned = false;
  };
  class Nesting;

  Result<Value> call(const Function& function, const std::string& path, std::span<const Argument> arguments);
  Status run(const std::vector<Statement>& statements, Frame& frame);
  Status run(const Statement& statement, Frame& frame);
  Status run_for(const Statement& statement, Frame& frame);
  Status assign(const Expression& target, const Value& value, Frame& frame);

  Result<Value> evaluate(const Expression& e, Frame& frame);
  Result<Value> evaluate_call(const Expression& e, Frame& frame);
  Result<Value> call_builtin(const Expression& e, Frame& frame);
  Result<Value> call_value(const Value& function, std::span<const Argument> arguments, Frame& frame);
  Result<Value> call_qualified(const std::string& name, std::span<const Argument> arguments, Frame& frame);
  Result<Value> qualified_value(const std::string& name);
  Result<Value> attribute(const Value& object, const std::string& name);
  Result<Value> subscript(const Value& container, const Value& index, Frame& frame);
  Result<std::vector<Argument>> arguments(const Expression& e, Frame& frame);
  Result<bool> is_instance(const Value& value, const Expression& type);
  // Runs __setstate__ of an object whose class has one, once.
  Status initialize(ObjectValue& object);

  Session& session_;
  Library& library_;
  std::vector<Value> constants_;
  // The statement that runs, for messages about code that belongs to no submodule.
  struct Place {
    const Function* function = nullptr;
    int line = 0;
  };
  std::string layer_name(const std::string& layer) const;
  Place place_;
  int depth_ = 0;
  uint64_t steps_ = 0, calls_ = 0;
};

}  // namespace orknn::importer::pytorch
