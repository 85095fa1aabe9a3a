#include "toolkit/codegen_texts.h"

namespace orknn::toolkit {

const std::string_view kProjectCMake =
    R"text(# Builds rknn_app_demo. Give the runtime with -DRKNN_API_PATH=<folder>: one that has include/rknn_api.h and lib/librknnrt.so, or
# librknn_api of the SDK. Without it the one of an installed OpenRKNN is used.
cmake_minimum_required(VERSION 3.10)
project(rknn_app_demo CXX)
set(CMAKE_CXX_STANDARD 11)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(RKNN_API_PATH "" CACHE PATH "folder of the RKNN runtime: headers and librknnrt.so")
find_program(OPENRKNN openrknn)
if(NOT RKNN_API_PATH AND OPENRKNN)
  execute_process(COMMAND ${OPENRKNN} --includedir OUTPUT_VARIABLE openrknn_include OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${OPENRKNN} --libdir OUTPUT_VARIABLE openrknn_lib OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
set(abi ${CMAKE_SYSTEM_PROCESSOR})
if(ANDROID)
  set(abi ${ANDROID_ABI})
endif()
find_path(RKNN_INCLUDE rknn_api.h HINTS ${RKNN_API_PATH}/include ${RKNN_API_PATH} ${openrknn_include} NO_CMAKE_FIND_ROOT_PATH)
find_library(RKNN_LIBRARY rknnrt HINTS ${RKNN_API_PATH}/lib ${RKNN_API_PATH}/${abi} ${RKNN_API_PATH} ${openrknn_lib} NO_CMAKE_FIND_ROOT_PATH)
if(NOT RKNN_INCLUDE OR NOT RKNN_LIBRARY)
  message(FATAL_ERROR "rknn_api.h and librknnrt.so were not found: give their folder with -DRKNN_API_PATH=<folder>")
endif()

add_executable(rknn_app_demo src/main.cpp src/model_runner.cpp)
target_include_directories(rknn_app_demo PRIVATE ${RKNN_INCLUDE})
target_link_libraries(rknn_app_demo PRIVATE ${RKNN_LIBRARY})
# The program looks for model/ and data/ beside itself.
file(COPY ${CMAKE_CURRENT_SOURCE_DIR}/model DESTINATION ${CMAKE_CURRENT_BINARY_DIR})
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/data)
  file(COPY ${CMAKE_CURRENT_SOURCE_DIR}/data DESTINATION ${CMAKE_CURRENT_BINARY_DIR})
  install(DIRECTORY data DESTINATION .)
endif()
install(TARGETS rknn_app_demo RUNTIME DESTINATION .)
install(DIRECTORY model DESTINATION .)
)text";

const std::string_view kProjectReadme = R"text(
## Build and run

On the machine that runs it (a board, or a PC with OpenRKNN):

    cmake -S . -B build
    cmake --build build
    build/rknn_app_demo

Another runtime: `cmake -S . -B build -DRKNN_API_PATH=<folder with include/rknn_api.h and lib/librknnrt.so>`.

For a board, cross-compiled for Linux: add `-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++` and a
`RKNN_API_PATH` with the board's library. For Android: add `-DCMAKE_TOOLCHAIN_FILE=$NDK/build/cmake/android.toolchain.cmake -DANDROID_ABI=arm64-v8a
-DANDROID_PLATFORM=android-24`. `cmake --install build --prefix out` collects program, model and data in `out`; copy that folder to the board.

## What it does

    rknn_app_demo [-n RUNS] [-m MODEL.rknn] [INPUT.npy ...]

It loads the model, fills the inputs, runs it, prints the time of a run and, for each output, its first values. Without arguments it takes the arrays in `data/`; where
`data/output_*.npy` hold what the toolkit's simulator computed, each output is compared with it and the program ends with 1 when a cosine is below 0.98. Arrays of
4-D inputs are in NHWC order; numbers of other types than the input's are converted. `-m` names another file of the same model.

| file | what |
|---|---|
| `src/main.cpp` | arguments, comparison, printing |
| `src/model_runner.h`, `src/model_runner.cpp` | the model: loads it, shares memory of inputs and outputs with the NPU (zero copy) where the runtime can, else hands them over |
| `src/npy.h` | reads .npy files |
| `src/model_info.h` | what the toolkit knows of this model |

To use the model in a program of your own, take `model_runner.*` and `npy.h` away or keep them, as you like.
)text";

const std::string_view kProjectArrays = R"text(// Reads .npy files: little-endian arrays of numbers in C order.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

struct Array {
  char kind = 'f';  // f, i, u or b
  size_t element_bytes = 4;
  std::vector<size_t> shape;
  std::vector<char> data;

  size_t count() const { return element_bytes ? data.size() / element_bytes : 0; }
};

inline std::string npy_field(const std::string& header, const std::string& key) {
  const size_t at = header.find("'" + key + "':");
  if (at == std::string::npos) throw std::runtime_error("a .npy header has no " + key);
  return header.substr(at + key.size() + 3);
}

inline Array read_npy(const std::string& path) {
  std::ifstream file(path.c_str(), std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0) throw std::runtime_error(path + " is no .npy file");
  const bool is_short = bytes[6] == 1;
  size_t length = 0;
  for (size_t i = 0; i < (is_short ? 2u : 4u); ++i) length |= static_cast<size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  const size_t begin = (is_short ? 10 : 12) + length;
  if (begin > bytes.size()) throw std::runtime_error(path + " is cut off");
  const std::string header(bytes.data() + begin - length, length);
  const std::string type = npy_field(header, "descr"), order = npy_field(header, "fortran_order"), shape = npy_field(header, "shape");
  const size_t quote = type.find('\'');
  if (quote == std::string::npos || quote + 3 >= type.size() || type[quote + 1] == '>' || !std::strchr("fiub", type[quote + 2]))
    throw std::runtime_error(path + " holds no little-endian numbers");
  if (order.find("False") == std::string::npos || order.find("False") > 2) throw std::runtime_error(path + " is in Fortran order");
  Array array;
  array.kind = type[quote + 2];
  array.element_bytes = static_cast<size_t>(std::atoi(type.c_str() + quote + 3));
  size_t count = 1;
  for (const char* at = shape.c_str() + shape.find('(') + 1; *at && *at != ')';) {
    char* end = nullptr;
    const size_t extent = static_cast<size_t>(std::strtoull(at, &end, 10));
    if (end == at) {
      ++at;
      continue;
    }
    array.shape.push_back(extent);
    count *= extent;
    at = end;
  }
  array.data.assign(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.end());
  if (array.data.size() != count * array.element_bytes) throw std::runtime_error(path + " has another size than its header says");
  // The runtime has no type for doubles and unsigned numbers of 64 bits.
  if (array.kind == 'f' && array.element_bytes == 8) {
    for (size_t i = 0; i < count; ++i) {
      double number;
      std::memcpy(&number, &array.data[i * sizeof number], sizeof number);
      const float rounded = static_cast<float>(number);
      std::memcpy(&array.data[i * sizeof rounded], &rounded, sizeof rounded);
    }
    array.element_bytes = sizeof(float);
    array.data.resize(count * sizeof(float));
  }
  if (array.kind == 'u' && array.element_bytes == 8) array.kind = 'i';
  return array;
}
)text";

const std::string_view kProjectRunnerHeader = R"text(// A .rknn model with its inputs and outputs.
#pragma once

#include <string>
#include <vector>

#include "npy.h"
#include "rknn_api.h"

// Types that the runtime converts from bytes and real numbers, and to real numbers. Numbers of the others go in and out as they are.
bool is_converted(rknn_tensor_type type);

// Errors are thrown as std::runtime_error. Not for two threads at once.
class ModelRunner {
 public:
  // `has_shape_sets`: the model was built with dynamic_input, so that shapes are chosen before it runs.
  ModelRunner(const std::string& path, bool has_shape_sets);
  ~ModelRunner();
  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;

  const std::vector<rknn_tensor_attr>& inputs() const { return inputs_; }
  const std::vector<rknn_tensor_attr>& outputs() const { return outputs_; }
  // Whether memory is shared with the NPU; known after set_inputs().
  bool is_zero_copy() const { return !memories_.empty(); }

  // One array per input; of 4-D inputs in NHWC order. A model with several shapes takes those of the arrays. Numbers are converted
  // to a type that the input takes.
  void set_inputs(const std::vector<Array>& arrays);
  void run();
  // After a run: output `index` as real numbers.
  std::vector<float> output(size_t index);

 private:
  void describe();
  void choose_shapes(const std::vector<Array>& arrays);
  bool share_memory(const std::vector<Array>& arrays);
  void release_memory();
  void hand_over(const std::vector<Array>& arrays);

  rknn_context context_ = 0;
  const bool has_shape_sets_;
  std::vector<rknn_tensor_attr> inputs_, outputs_;
  std::vector<rknn_tensor_mem*> memories_;  // of the inputs, then of the outputs
  std::vector<std::vector<float> > results_;  // without shared memory
};
)text";

const std::string_view kProjectRunner = R"text(#include "model_runner.h"

#include <cmath>
#include <cstdio>

namespace {

void check(int code, const char* call) {
  if (code == RKNN_SUCC) return;
  throw std::runtime_error(std::string(call) + " failed with " + std::to_string(code));
}

rknn_tensor_type type_of(const Array& array) {
  switch (array.kind) {
    case 'b': return RKNN_TENSOR_BOOL;
    case 'u': return array.element_bytes == 1 ? RKNN_TENSOR_UINT8 : array.element_bytes == 2 ? RKNN_TENSOR_UINT16 : RKNN_TENSOR_UINT32;
    case 'i':
      return array.element_bytes == 1   ? RKNN_TENSOR_INT8
             : array.element_bytes == 2 ? RKNN_TENSOR_INT16
             : array.element_bytes == 4 ? RKNN_TENSOR_INT32
                                        : RKNN_TENSOR_INT64;
    default: return array.element_bytes == 2 ? RKNN_TENSOR_FLOAT16 : RKNN_TENSOR_FLOAT32;
  }
}

template <class T>
double element(const char* data, size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof value, sizeof value);
  return static_cast<double>(value);
}

double half_element(const char* data, size_t index) {
  uint16_t bits;
  std::memcpy(&bits, data + index * sizeof bits, sizeof bits);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

double number_at(const char* data, rknn_tensor_type type, size_t index) {
  switch (type) {
    case RKNN_TENSOR_BOOL: return element<uint8_t>(data, index) != 0;
    case RKNN_TENSOR_UINT8: return element<uint8_t>(data, index);
    case RKNN_TENSOR_INT8: return element<int8_t>(data, index);
    case RKNN_TENSOR_UINT16: return element<uint16_t>(data, index);
    case RKNN_TENSOR_INT16: return element<int16_t>(data, index);
    case RKNN_TENSOR_UINT32: return element<uint32_t>(data, index);
    case RKNN_TENSOR_INT32: return element<int32_t>(data, index);
    case RKNN_TENSOR_INT64: return element<int64_t>(data, index);
    case RKNN_TENSOR_FLOAT16: return half_element(data, index);
    default: return element<float>(data, index);
  }
}

template <class T>
Array converted(const Array& array, char kind) {
  Array result;
  result.kind = kind;
  result.element_bytes = sizeof(T);
  result.shape = array.shape;
  result.data.resize(array.count() * sizeof(T));
  for (size_t i = 0; i < array.count(); ++i) {
    const T value = static_cast<T>(number_at(array.data.data(), type_of(array), i));
    std::memcpy(&result.data[i * sizeof value], &value, sizeof value);
  }
  return result;
}

// The array as an input of the reported type takes it.
Array taken(const Array& array, rknn_tensor_type reported) {
  if (!is_converted(reported) && type_of(array) == reported) return array;
  switch (reported) {
    case RKNN_TENSOR_BOOL: return converted<bool>(array, 'b');
    case RKNN_TENSOR_UINT16: return converted<uint16_t>(array, 'u');
    case RKNN_TENSOR_INT16: return converted<int16_t>(array, 'i');
    case RKNN_TENSOR_UINT32: return converted<uint32_t>(array, 'u');
    case RKNN_TENSOR_INT32: return converted<int32_t>(array, 'i');
    case RKNN_TENSOR_INT64: return converted<int64_t>(array, 'i');
    // What is int8 or float16 already would be taken for normalized and quantized.
    default: return type_of(array) == RKNN_TENSOR_UINT8 ? array : converted<float>(array, 'f');
  }
}

rknn_tensor_type bound_type(const rknn_tensor_attr& output) { return is_converted(output.type) ? RKNN_TENSOR_FLOAT32 : output.type; }

// Pictures of bytes are read by the NPU itself: their rows may be longer in memory than what they hold.
bool has_padded_rows(const Array& array, const rknn_tensor_attr& attr) {
  return array.element_bytes == 1 && attr.fmt == RKNN_TENSOR_NHWC && attr.n_dims == 4 && attr.w_stride > attr.dims[2];
}

void copy_rows(const Array& array, const rknn_tensor_attr& attr, char* to) {
  if (!has_padded_rows(array, attr)) {
    std::memcpy(to, array.data.data(), array.data.size());
    return;
  }
  const size_t row = attr.dims[2] * attr.dims[3], step = attr.w_stride * attr.dims[3];
  for (size_t i = 0; i < array.data.size() / row; ++i) std::memcpy(to + i * step, array.data.data() + i * row, row);
}

}  // namespace

bool is_converted(rknn_tensor_type type) {
  return type == RKNN_TENSOR_INT8 || type == RKNN_TENSOR_UINT8 || type == RKNN_TENSOR_FLOAT16 || type == RKNN_TENSOR_FLOAT32;
}

ModelRunner::ModelRunner(const std::string& path, bool has_shape_sets) : has_shape_sets_(has_shape_sets) {
  std::ifstream file(path.c_str(), std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  check(rknn_init(&context_, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr), "rknn_init");
  try {
    describe();
  } catch (...) {
    rknn_destroy(context_);
    throw;
  }
}

ModelRunner::~ModelRunner() {
  release_memory();
  rknn_destroy(context_);
}

void ModelRunner::describe() {
  rknn_input_output_num number;
  check(rknn_query(context_, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number), "rknn_query");
  inputs_.resize(number.n_input);
  outputs_.resize(number.n_output);
  for (uint32_t i = 0; i < number.n_input + number.n_output; ++i) {
    const bool is_input = i < number.n_input;
    rknn_tensor_attr& attr = is_input ? inputs_[i] : outputs_[i - number.n_input];
    std::memset(&attr, 0, sizeof attr);
    attr.index = is_input ? i : i - number.n_input;
    check(rknn_query(context_, is_input ? RKNN_QUERY_INPUT_ATTR : RKNN_QUERY_OUTPUT_ATTR, &attr, sizeof attr), "rknn_query");
  }
}

void ModelRunner::choose_shapes(const std::vector<Array>& arrays) {
  if (!has_shape_sets_) return;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (arrays[i].shape.size() > RKNN_MAX_DIMS) throw std::runtime_error("input " + std::to_string(i) + " has too many dimensions");
    inputs_[i].n_dims = static_cast<uint32_t>(arrays[i].shape.size());
    for (size_t d = 0; d < arrays[i].shape.size(); ++d) inputs_[i].dims[d] = static_cast<uint32_t>(arrays[i].shape[d]);
  }
  check(rknn_set_input_shapes(context_, static_cast<uint32_t>(inputs_.size()), inputs_.data()), "rknn_set_input_shapes");
  for (rknn_tensor_attr& attr : inputs_) check(rknn_query(context_, RKNN_QUERY_CURRENT_INPUT_ATTR, &attr, sizeof attr), "rknn_query");
  for (rknn_tensor_attr& attr : outputs_) check(rknn_query(context_, RKNN_QUERY_CURRENT_OUTPUT_ATTR, &attr, sizeof attr), "rknn_query");
}

void ModelRunner::set_inputs(const std::vector<Array>& arrays) {
  if (arrays.size() != inputs_.size())
    throw std::runtime_error("the model has " + std::to_string(inputs_.size()) + " inputs, found " + std::to_string(arrays.size()) + " arrays");
  choose_shapes(arrays);
  std::vector<Array> given;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].count() != inputs_[i].n_elems)
      throw std::runtime_error("input " + std::to_string(i) + " has " + std::to_string(inputs_[i].n_elems) + " elements, the array " +
                               std::to_string(arrays[i].count()));
    given.push_back(taken(arrays[i], inputs_[i].type));
  }
  release_memory();
  if (!share_memory(given)) {
    release_memory();
    hand_over(given);
  }
}

// False when the runtime does not offer it for these tensors.
bool ModelRunner::share_memory(const std::vector<Array>& arrays) {
  for (const rknn_tensor_attr& attr : outputs_)
    if (attr.n_elems == 0) return false;  // its extents are known after a run
  for (size_t i = 0; i < inputs_.size(); ++i) {
    rknn_tensor_attr attr = inputs_[i];
    attr.type = type_of(arrays[i]);
    attr.pass_through = 0;
    attr.size = static_cast<uint32_t>(arrays[i].data.size());
    size_t bytes = attr.size;
    if (has_padded_rows(arrays[i], attr)) bytes = static_cast<size_t>(attr.dims[0]) * attr.dims[1] * attr.w_stride * attr.dims[3];
    rknn_tensor_mem* memory = rknn_create_mem(context_, static_cast<uint32_t>(bytes));
    if (!memory) return false;
    memories_.push_back(memory);
    copy_rows(arrays[i], attr, static_cast<char*>(memory->virt_addr));
    if (rknn_set_io_mem(context_, memory, &attr) != RKNN_SUCC) return false;
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    rknn_tensor_attr attr = outputs_[i];
    attr.type = bound_type(attr);
    if (attr.type == RKNN_TENSOR_FLOAT32) attr.size = attr.n_elems * static_cast<uint32_t>(sizeof(float));
    rknn_tensor_mem* memory = rknn_create_mem(context_, attr.size);
    if (!memory) return false;
    memories_.push_back(memory);
    if (rknn_set_io_mem(context_, memory, &attr) != RKNN_SUCC) return false;
  }
  return true;
}

void ModelRunner::release_memory() {
  for (rknn_tensor_mem* memory : memories_) rknn_destroy_mem(context_, memory);
  memories_.clear();
}

void ModelRunner::hand_over(const std::vector<Array>& arrays) {
  std::vector<rknn_input> inputs(arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    std::memset(&inputs[i], 0, sizeof inputs[i]);
    inputs[i].index = static_cast<uint32_t>(i);
    inputs[i].buf = const_cast<char*>(arrays[i].data.data());
    inputs[i].size = static_cast<uint32_t>(arrays[i].data.size());
    inputs[i].type = type_of(arrays[i]);
    inputs[i].fmt = inputs_[i].fmt;
  }
  check(rknn_inputs_set(context_, static_cast<uint32_t>(inputs.size()), inputs.data()), "rknn_inputs_set");
}

void ModelRunner::run() {
  check(rknn_run(context_, nullptr), "rknn_run");
  if (is_zero_copy()) return;
  std::vector<rknn_output> outputs(outputs_.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::memset(&outputs[i], 0, sizeof outputs[i]);
    outputs[i].index = static_cast<uint32_t>(i);
    outputs[i].want_float = 1;
  }
  check(rknn_outputs_get(context_, static_cast<uint32_t>(outputs.size()), outputs.data(), nullptr), "rknn_outputs_get");
  results_.clear();
  for (const rknn_output& output : outputs) {
    const float* values = static_cast<const float*>(output.buf);
    results_.push_back(std::vector<float>(values, values + output.size / sizeof(float)));
  }
  rknn_outputs_release(context_, static_cast<uint32_t>(outputs.size()), outputs.data());
}

std::vector<float> ModelRunner::output(size_t index) {
  if (!is_zero_copy()) return results_.at(index);
  rknn_tensor_mem* memory = memories_.at(inputs_.size() + index);
  rknn_mem_sync(context_, memory, RKNN_MEMORY_SYNC_FROM_DEVICE);
  std::vector<float> values(outputs_[index].n_elems);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(number_at(static_cast<const char*>(memory->virt_addr), bound_type(outputs_[index]), i));
  return values;
}
)text";

const std::string_view kProjectMain =
    R"text(// Runs the model once or more and compares its outputs with those of the toolkit's simulator.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "model_info.h"
#include "model_runner.h"

namespace {

const double kLeastCosine = 0.98;

struct Arguments {
  std::string model;
  std::vector<std::string> inputs;
  int runs = 1;
};

std::string own_folder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return ".";
  const std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/'));
}

bool exists(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// False when the arguments make no sense.
bool read_arguments(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if ((word == "-n" || word == "-m") && i + 1 == argc) return false;
    if (word == "-n")
      arguments.runs = std::atoi(argv[++i]);
    else if (word == "-m")
      arguments.model = argv[++i];
    else if (!word.empty() && word[0] == '-')
      return false;
    else
      arguments.inputs.push_back(word);
  }
  return arguments.runs > 0;
}

// Something to compute with when there are no arrays.
Array made_up(const rknn_tensor_attr& attr) {
  Array array;
  array.kind = 'u';
  array.element_bytes = 1;
  for (uint32_t i = 0; i < attr.n_dims; ++i) array.shape.push_back(attr.dims[i]);
  // 0 and 1 are legal indices, tokens and flags.
  const uint32_t values = is_converted(attr.type) ? 255 : 2;
  for (uint32_t i = 0; i < attr.n_elems; ++i) array.data.push_back(static_cast<char>(i * 31 % values));
  return array;
}

std::vector<float> floats_of(const Array& array) {
  if (array.kind != 'f' || array.element_bytes != 4) throw std::runtime_error("the stored outputs are not float32 arrays");
  std::vector<float> values(array.count());
  std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) throw std::runtime_error("the stored output has another size");
  double product = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  if (aa == 0 && bb == 0) return 1;
  return aa == 0 || bb == 0 ? 0 : product / std::sqrt(aa * bb);
}

int run(const Arguments& arguments) {
  const std::string folder = own_folder();
  ModelRunner model(arguments.model.empty() ? folder + "/model/" + kModelFile : arguments.model, kHasShapeSets);
  std::vector<std::string> files = arguments.inputs;
  const bool compares = files.empty() && kStoredArrays;
  if (compares)
    for (size_t i = 0; i < model.inputs().size(); ++i) files.push_back(folder + "/data/input_" + std::to_string(i) + ".npy");
  std::vector<Array> arrays;
  for (const std::string& file : files) arrays.push_back(read_npy(file));
  if (files.empty())
    for (const rknn_tensor_attr& attr : model.inputs()) arrays.push_back(made_up(attr));
  model.set_inputs(arrays);
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  for (int i = 0; i < arguments.runs; ++i) model.run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%s: %.3f ms per run, %s\n", kModelFile, 1000 * seconds / arguments.runs, model.is_zero_copy() ? "zero copy" : "copied inputs and outputs");
  bool good = true;
  for (size_t i = 0; i < model.outputs().size(); ++i) {
    const std::vector<float> values = model.output(i);
    std::printf("output %u '%s':", static_cast<unsigned>(i), model.outputs()[i].name);
    for (size_t k = 0; k < std::min<size_t>(values.size(), 5); ++k) std::printf(" %g", values[k]);
    const std::string stored = folder + "/data/output_" + std::to_string(i) + ".npy";
    if (compares && exists(stored)) {
      const double agreement = cosine(values, floats_of(read_npy(stored)));
      good = good && agreement >= kLeastCosine;
      std::printf(" ... cosine %.6f", agreement);
    }
    std::printf("\n");
  }
  if (!good) std::printf("an output differs from the simulator's\n");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!read_arguments(argc, argv, arguments)) {
    std::fprintf(stderr, "usage: rknn_app_demo [-n RUNS] [-m MODEL.rknn] [INPUT.npy ...]\n");
    return 2;
  }
  try {
    return run(arguments);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
)text";

}  // namespace orknn::toolkit
