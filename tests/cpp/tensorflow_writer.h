// Writes small TensorFlow graphs as text, for tests that need a graph nobody exports (or no honest writer would).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orknn::tests::tf {

using Names = std::vector<std::string>;
using Ints = std::vector<int64_t>;
using Attributes = std::vector<std::pair<std::string, std::string>>;  // key and the text of its value

// --- values of attributes
std::string integer(int64_t value);
std::string real(double value);
std::string flag(bool value);
std::string text(std::string_view value);
std::string type(std::string_view name);  // "FLOAT"
std::string shape(const Ints& dims);
std::string integers(const Ints& values);
std::string texts(const Names& values);
std::string function(std::string_view name);

// --- nodes
std::string node(std::string_view name, std::string_view op, const Names& inputs = {}, const Attributes& attributes = {});
std::string input(std::string_view name, const Ints& dims, std::string_view dtype = "FLOAT");
std::string floats(std::string_view name, const Ints& dims,
                   const std::vector<double>& values);  // fewer values than elements repeat the last
std::string ints(std::string_view name, const Ints& dims, const Ints& values, std::string_view dtype = "INT32");
std::string truth(std::string_view name, bool value);

// --- functions: arguments and results are names with types ("x FLOAT"), results say where they come from ("y FLOAT node:z:0")
std::string define(std::string_view name, const Names& arguments, const Names& results, const std::vector<std::string>& nodes);
std::string graph(const std::vector<std::string>& nodes, const std::vector<std::string>& functions = {}, int producer = 27);

// Small valid graphs that between them use every part of the format: seeds for mutation and fuzzing.
struct Sample {
  std::string name, text;
};
std::vector<Sample> samples();

}  // namespace orknn::tests::tf
