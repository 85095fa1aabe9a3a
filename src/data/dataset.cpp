#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "data/npy.h"
#include "data/picture.h"
#include "data/resize.h"

namespace orknn::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostProblems = 20;  // of a list; the rest is counted

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// The path under which a file of the list can be opened; empty when there is none.
std::string locate(const std::string& folder, const std::string& name) {
  if (!fs::path(name).is_absolute() && !folder.empty()) {
    const std::string beside = (fs::path(folder) / name).string();
    if (is_file(beside)) return beside;
  }
  return is_file(name) ? name : std::string();
}

const char* kind_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::fifo: return "a pipe";
    case fs::file_type::socket: return "a socket";
    case fs::file_type::character:
    case fs::file_type::block: return "a device";
    default: return "something else";
  }
}

Status no_such_file(const std::string& folder, const std::string& name) {
  Status status = Status::error(Code::NotFound, fmt::format("file '{}' does not exist", name));
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) return invalid_argument(fmt::format("'{}' is a folder, not a file", name));
  if (fs::exists(name, ignored))
    return invalid_argument(fmt::format("'{}' is {}, not a regular file", name, kind_of(fs::status(name, ignored).type())));
  if (fs::path(name).is_absolute() || folder.empty()) return status;
  return status.expected(fmt::format("it in '{}' or in the current directory", folder));
}

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> result;
  for (size_t at = 0; (at = line.find_first_not_of(" \t", at)) != line.npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    result.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return result;
}

std::string_view trimmed(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == line.npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

// The files of one line; a model of one input may have blanks in its file names.
std::vector<std::string> names_of_line(std::string_view line, size_t inputs, const std::string& folder) {
  if (inputs == 1 && line.find_first_of(" \t") != line.npos && !locate(folder, std::string(line)).empty())
    return {std::string(line)};
  return words(line);
}

std::string names_of(const std::vector<ModelInput>& inputs) {
  std::string text;
  for (const ModelInput& input : inputs) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", input.name);
  return text;
}

Status check_inputs(const std::vector<ModelInput>& inputs) {
  if (inputs.empty()) return invalid_argument("the model has no inputs to read samples for");
  for (const ModelInput& input : inputs) {
    const auto count = ir::checked_element_count(input.dims);
    if (!count || std::ranges::any_of(input.dims, [](int64_t d) { return d < 0; }))
      return invalid_argument(fmt::format("input '{}' needs a fixed shape to read samples for", input.name))
          .found(ir::to_string(input.dims));
  }
  return Status::ok();
}

// How a picture lies in an input.
struct PictureForm {
  int64_t batch = 1, channels = 0, height = 0, width = 0;
  bool channels_last = false;
};

// The layout is only a label: a shape in which just the other reading has 1 or 3 channels is read that way.
Result<PictureForm> picture_form(const ModelInput& input) {
  const size_t rank = input.dims.size();
  if (rank == 3 || rank == 4) {
    const int64_t* d = input.dims.data() + rank - 3;
    const int64_t batch = rank == 4 ? input.dims[0] : 1;
    const auto is_colour = [](int64_t channels) { return channels == 1 || channels == 3; };
    const bool last_is_stated = input.layout == ir::Layout::NHWC;
    for (const bool last : {last_is_stated, !last_is_stated})
      if (is_colour(last ? d[2] : d[0]))
        return last ? PictureForm{batch, d[2], d[0], d[1], true} : PictureForm{batch, d[0], d[1], d[2], false};
  }
  return shape_mismatch(fmt::format("a picture cannot feed input '{}'", input.name))
      .expected("an input with 1 or 3 channels, rows and columns")
      .found(ir::to_string(input.dims))
      .hint("save the sample as an .npy file of that shape");
}

ir::TensorData to_tensor(const Picture& picture, const ModelInput& input, const PictureForm& form) {
  ir::TensorData tensor = ir::TensorData::allocate(DType::UInt8, input.dims);
  auto* out = static_cast<uint8_t*>(tensor.mutable_data());
  const size_t pixels = static_cast<size_t>(form.height * form.width), channels = static_cast<size_t>(form.channels);
  const bool swap = input.swap_red_blue && channels == 3;
  for (size_t c = 0; c < channels; ++c) {
    const uint8_t* from = picture.pixels.data() + (swap ? 2 - c : c);
    uint8_t* to = form.channels_last ? out + c : out + c * pixels;
    const size_t step = form.channels_last ? channels : 1;
    for (size_t i = 0; i < pixels; ++i) to[i * step] = from[i * channels];
  }
  for (int64_t n = 1; n < form.batch; ++n) std::copy_n(out, pixels * channels, out + static_cast<size_t>(n) * pixels * channels);
  return tensor;
}

Result<ir::TensorData> load_picture(const MappedFile& file, const ModelInput& input, std::string& remark) {
  ORKNN_TRY_ASSIGN(const PictureForm form, picture_form(input));
  ORKNN_TRY_ASSIGN(Picture picture, decode_picture(file.bytes(), form.channels == 1 ? Colour::Grey : Colour::Rgb));
  remark = picture.remark;
  return to_tensor(resize_linear(picture, form.height, form.width), input, form);
}

// `dims` with leading extents of 1 added or removed to reach `rank`; unchanged when that does not suffice.
ir::Dims with_rank(ir::Dims dims, size_t rank) {
  while (dims.size() > rank && dims[0] == 1) dims.erase(dims.begin());
  if (dims.size() < rank) dims.insert(dims.begin(), rank - dims.size(), 1);
  return dims;
}

// Brings a 4-D array into another order of axes.
ir::TensorData transposed(const ir::TensorData& from, const std::array<size_t, 4>& order) {
  const ir::Dims& dims = from.dims();
  ir::Dims to_dims(4);
  for (size_t i = 0; i < 4; ++i) to_dims[i] = dims[order[i]];
  const std::array<int64_t, 4> strides{dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
  ir::TensorData to = ir::TensorData::allocate(from.dtype(), to_dims);
  visit_element_bytes(from.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = static_cast<const T*>(from.data());
    T* out = static_cast<T*>(to.mutable_data());
    for (int64_t a = 0; a < to_dims[0]; ++a)
      for (int64_t b = 0; b < to_dims[1]; ++b)
        for (int64_t c = 0; c < to_dims[2]; ++c) {
          const T* row = in + a * strides[order[0]] + b * strides[order[1]] + c * strides[order[2]];
          for (int64_t d = 0; d < to_dims[3]; ++d) *out++ = row[d * strides[order[3]]];
        }
  });
  return to;
}

ir::TensorData repeated(const ir::TensorData& from, int64_t times) {
  ir::Dims dims = from.dims();
  dims[0] *= times;
  ir::TensorData to = ir::TensorData::allocate(from.dtype(), dims);
  for (int64_t n = 0; n < times; ++n)
    std::copy_n(static_cast<const std::byte*>(from.data()), from.bytes(),
                static_cast<std::byte*>(to.mutable_data()) + static_cast<size_t>(n) * from.bytes());
  return to;
}

// The two ways a 4-D input can be written down; one of them equals its dims.
struct Readings {
  ir::Dims nchw, nhwc;
  bool input_is_nhwc = false;
};

Readings readings_of(const ModelInput& input) {
  const ir::Dims& d = input.dims;
  if (input.layout == ir::Layout::NHWC) return {{d[0], d[3], d[1], d[2]}, d, true};
  return {d, {d[0], d[2], d[3], d[1]}, false};
}

Result<ir::TensorData> fit_array(const ir::TensorData& array, const ModelInput& input, const DatasetOptions& options) {
  const size_t rank = input.dims.size();
  const ir::Dims dims = with_rank(array.dims(), rank);
  Status misfit = shape_mismatch(fmt::format("the array does not fit input '{}'", input.name)).found(ir::to_string(array.dims()));
  if (rank != 4) {
    if (dims == input.dims) return array.reshaped(dims);
    return misfit.expected(ir::to_string(input.dims));
  }
  const Readings readings = readings_of(input);
  for (const bool nhwc : {options.toolkit1, !options.toolkit1}) {
    ir::Dims wanted = nhwc ? readings.nhwc : readings.nchw;
    const int64_t batch = wanted[0];
    if (dims.size() == 4 && dims[0] == 1) wanted[0] = 1;  // a sample may be of batch 1 whatever the model's batch is
    if (dims != wanted) continue;
    ir::TensorData result = array.reshaped(dims);
    if (nhwc && !readings.input_is_nhwc) result = transposed(result, {0, 3, 1, 2});
    if (!nhwc && readings.input_is_nhwc) result = transposed(result, {0, 2, 3, 1});
    return wanted[0] == batch ? result : repeated(result, batch);
  }
  return misfit.expected(fmt::format("{} (NCHW) or {} (NHWC)", ir::to_string(readings.nchw), ir::to_string(readings.nhwc)));
}

Result<ir::TensorData> load_file(const std::string& path, const ModelInput& input, const DatasetOptions& options,
                                 std::string& remark) {
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  if (is_picture(file->bytes())) return load_picture(*file, input, remark);
  if (!is_npy(file->bytes()))
    return invalid_argument("unknown kind of file")
        .expected("the content of a jpg, png, bmp or npy file")
        .found(file->bytes().empty() ? "an empty file" : "other bytes");
  ORKNN_TRY_ASSIGN(const ir::TensorData array, parse_npy(file->bytes()));
  ORKNN_TRY(file->check());
  return fit_array(array, input, options);
}

// Collects what is wrong with a list.
class Problems {
 public:
  void add(const Status& status) {
    if (++count_ == 1)
      first_ = status;
    else if (count_ <= kMostProblems)
      first_.also(status);
  }
  bool any() const { return count_ > 0; }
  Status status(const std::string& list) {
    if (count_ > kMostProblems)
      first_.also(invalid_argument(fmt::format("{} more problems of this kind", count_ - kMostProblems)).model(list));
    return first_;
  }

 private:
  size_t count_ = 0;
  Status first_;
};

std::string line_name(const std::string& list, size_t line) { return fmt::format("{} line {}", list, line); }
}  // namespace

Result<Dataset> Dataset::open(const std::string& list, std::vector<ModelInput> inputs, const DatasetOptions& options) {
  ORKNN_TRY(check_inputs(inputs));
  if (!is_file(list))
    return no_such_file("", list).hint("the calibration list is a text file with one sample per line, read more than once");
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(list));
  std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.find('\0') != text.npos)
    return invalid_argument("the calibration list is not a text file").model(list).hint("it names one sample per line");

  Dataset dataset;
  dataset.list_ = list;
  dataset.options_ = options;
  const std::string folder = directory_of(list);
  Problems problems;
  size_t blank_lines = 0;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty()) {
      ++blank_lines;
      continue;
    }
    const std::vector<std::string> names = names_of_line(content, inputs.size(), folder);
    if (names.size() != inputs.size()) {
      problems.add(invalid_argument("the line does not have a file for each input")
                       .model(line_name(list, line))
                       .expected(fmt::format("{} ({})", inputs.size(), names_of(inputs)))
                       .found(fmt::format("{}: {}", names.size(), content.substr(0, 200)))
                       .hint("blanks separate the files of one line, so file names cannot contain any"));
      continue;
    }
    Sample sample{line, {}};
    for (const std::string& name : names) {
      std::string path = locate(folder, name);
      if (!path.empty())
        sample.files.push_back(std::move(path));
      else if (options.toolkit1)
        log(LogLevel::Warn, "dataset", fmt::format("Can not find file: {}. This line will be ignored!", name));
      else
        problems.add(no_such_file(folder, name).model(line_name(list, line)));
    }
    if (sample.files.size() == inputs.size()) dataset.samples_.push_back(std::move(sample));
  }
  if (problems.any()) return problems.status(list);
  if (options.toolkit1 && blank_lines)
    log(LogLevel::Warn, "dataset", fmt::format("{} blank line(s) in dataset file. Ignored!!!", blank_lines));
  if (dataset.samples_.empty())
    return invalid_argument("there is no valid data in the calibration list").model(list).hint("it names one sample per line");
  dataset.inputs_ = std::move(inputs);
  return dataset;
}

Result<Dataset> Dataset::of_files(const std::vector<std::string>& files, std::vector<ModelInput> inputs,
                                  const DatasetOptions& options) {
  ORKNN_TRY(check_inputs(inputs));
  if (files.size() != inputs.size())
    return invalid_argument("one file for each input is needed")
        .expected(fmt::format("{} ({})", inputs.size(), names_of(inputs)))
        .found(std::to_string(files.size()));
  Problems problems;
  for (const std::string& file : files)
    if (!is_file(file)) problems.add(no_such_file("", file));
  if (problems.any()) return problems.status("");
  Dataset dataset;
  dataset.inputs_ = std::move(inputs);
  dataset.options_ = options;
  dataset.samples_.push_back({0, files});
  return dataset;
}

std::string Dataset::describe(size_t index) const {
  const Sample& sample = samples_[index];
  std::string names;
  for (const std::string& file : sample.files) names += (names.empty() ? "" : ", ") + fs::path(file).filename().string();
  return sample.line ? fmt::format("{} ({})", line_name(list_, sample.line), names) : names;
}

bool Dataset::holds_pixels(size_t index) const {
  bool uses_the_range = false;
  for (const Sample& sample : samples_) {
    const auto file = MappedFile::open(sample.files[index]);
    if (!file) return false;
    const std::span<const std::byte> bytes = (*file)->bytes();
    const bool picture = is_picture(bytes);
    if (!picture && npy_type(bytes) != DType::UInt8) return false;
    if (picture || uses_the_range) {
      uses_the_range = true;
      continue;
    }
    const auto array = parse_npy(bytes);
    if (!array) return false;
    uses_the_range = std::ranges::any_of(array->view().values<uint8_t>(), [](uint8_t v) { return v > 127; });
  }
  return uses_the_range;
}

Result<std::vector<ir::TensorData>> Dataset::sample(size_t index) const {
  ORKNN_ASSERT(index < samples_.size(), "the list has that sample");
  const Sample& sample = samples_[index];
  std::vector<ir::TensorData> tensors;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::string& file = sample.files[i];
    const std::string place = sample.line ? fmt::format("{}: {}", line_name(list_, sample.line), file) : file;
    std::string remark;
    auto tensor = load_file(file, inputs_[i], options_, remark);
    if (!tensor) return Status(tensor.status()).model(place);
    if (!remark.empty()) log(LogLevel::Warn, "dataset", fmt::format("{}: {}", place, remark));
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

}  // namespace orknn::data
