// Every rule of the calibration list, on small files made here.
#include "data/dataset.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "base/log.h"
#include "data/npy.h"
#include "data/picture.h"
#include "data/resize.h"
#include "temporary_folder.h"
#include "test_paths.h"

namespace orknn::data {
namespace {

namespace fs = std::filesystem;

const std::string kPictures = std::string(tests::kSourceFolder) + "/tests/data/pictures/";

class DatasetTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(folder.file(name)).parent_path());
    std::ofstream(folder.file(name), std::ios::binary) << text;
    return folder.file(name);
  }
  void copy(const std::string& picture, const std::string& name) {
    fs::create_directories(fs::path(folder.file(name)).parent_path());
    fs::copy_file(kPictures + picture, folder.file(name), fs::copy_options::overwrite_existing);
  }
  // An array of 0, 1, 2, ...
  template <class T>
  ir::TensorData write_array(const std::string& name, ir::Dims dims) {
    std::vector<T> values(static_cast<size_t>(ir::element_count(dims)));
    std::iota(values.begin(), values.end(), T{});
    const ir::TensorData array = ir::TensorData::from<T>(std::move(dims), values);
    EXPECT_TRUE(write_npy(folder.file(name), array));
    return array;
  }
  // Sample 0 of a list with one line.
  Result<std::vector<ir::TensorData>> first(const std::string& line, std::vector<ModelInput> inputs,
                                            const DatasetOptions& options = {}) {
    ORKNN_TRY_ASSIGN(const Dataset dataset, Dataset::open(write("list.txt", line), std::move(inputs), options));
    return dataset.sample(0);
  }
  tests::TemporaryFolder folder;
};

const ModelInput kNchw{"images", {1, 3, 8, 10}, ir::Layout::NCHW, false}, kNhwc{"images", {1, 8, 10, 3}, ir::Layout::NHWC, false};

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST_F(DatasetTest, LinesAndPaths) {
  copy("jpg_420.jpg", "a.jpg");
  copy("png_rgb8.png", "sub/b.PNG");
  copy("bmp_24.bmp", "with blank.bmp");
  const std::string list = write("list.txt",
                                 "\xef\xbb\xbf"
                                 "a.jpg\r\n\n   \t\n./sub/b.PNG \nwith blank.bmp\n" +
                                     folder.file("a.jpg"));
  const auto dataset = Dataset::open(list, {kNchw});
  ASSERT_TRUE(dataset) << dataset.status().to_string();
  ASSERT_EQ(dataset->size(), 4u);
  EXPECT_EQ(dataset->describe(1), list + " line 4 (b.PNG)");
  EXPECT_EQ(dataset->files(3), std::vector<std::string>{folder.file("a.jpg")});
  for (size_t i = 0; i < dataset->size(); ++i) {
    const auto sample = dataset->sample(i);
    ASSERT_TRUE(sample) << sample.status().to_string();
    EXPECT_EQ(sample->at(0).dims(), kNchw.dims);
    EXPECT_EQ(sample->at(0).dtype(), DType::UInt8);
  }
}

TEST_F(DatasetTest, TheFolderOfTheListComesBeforeTheCurrentDirectory) {
  const fs::path before = fs::current_path();
  copy("jpg_420.jpg", "here/a.jpg");
  copy("png_rgb8.png", "here/only.png");
  copy("jpg_grey.jpg", "lists/a.jpg");
  write("lists/list.txt", "a.jpg\nonly.png");
  fs::current_path(folder.file("here"));
  const auto dataset = Dataset::open("../lists/list.txt", {kNchw});
  fs::current_path(before);
  ASSERT_TRUE(dataset) << dataset.status().to_string();
  EXPECT_EQ(dataset->files(0)[0], "../lists/a.jpg");
  EXPECT_EQ(dataset->files(1)[0], "only.png");
}

TEST_F(DatasetTest, PicturesAreScaledAndLaidOut) {
  copy("jpg_420.jpg", "a.jpg");
  const Picture rgb = resize_linear(*read_picture(folder.file("a.jpg"), Colour::Rgb), 8, 10);
  const Picture grey = resize_linear(*read_picture(folder.file("a.jpg"), Colour::Grey), 8, 10);
  for (const bool swap : {false, true}) {
    ModelInput nchw = kNchw, nhwc = kNhwc, plain{"p", {3, 8, 10}}, one{"g", {1, 1, 8, 10}, ir::Layout::NCHW, swap},
               batch{"b", {2, 8, 10, 3}, ir::Layout::NHWC, swap};
    ModelInput mislabelled{"m", {1, 8, 10, 3}, ir::Layout::NCHW, swap};
    nchw.swap_red_blue = nhwc.swap_red_blue = plain.swap_red_blue = swap;
    const auto sample = first("a.jpg a.jpg a.jpg a.jpg a.jpg a.jpg", {nchw, nhwc, plain, one, batch, mislabelled});
    ASSERT_TRUE(sample) << sample.status().to_string();
    for (size_t pixel = 0; pixel < 80; ++pixel) {
      for (size_t c = 0; c < 3; ++c) {
        const uint8_t expected = rgb.pixels[3 * pixel + (swap ? 2 - c : c)];
        ASSERT_EQ(sample->at(0).values<uint8_t>()[c * 80 + pixel], expected);
        ASSERT_EQ(sample->at(1).values<uint8_t>()[3 * pixel + c], expected);
        ASSERT_EQ(sample->at(2).values<uint8_t>()[c * 80 + pixel], expected);
        ASSERT_EQ(sample->at(4).values<uint8_t>()[3 * pixel + c], expected);
        ASSERT_EQ(sample->at(4).values<uint8_t>()[240 + 3 * pixel + c], expected);
        ASSERT_EQ(sample->at(5).values<uint8_t>()[3 * pixel + c], expected);
      }
      ASSERT_EQ(sample->at(3).values<uint8_t>()[pixel], grey.pixels[pixel]);
    }
    for (size_t i = 0; i < 6; ++i)
      EXPECT_EQ(sample->at(i).dims(), (std::vector{nchw, nhwc, plain, one, batch, mislabelled}[i].dims));
  }
}

// Names the element of an array of 0, 1, 2, ... by its position in NCHW order.
std::vector<int64_t> moved(const std::vector<int64_t>& values, const ir::Dims& dims, bool to_nhwc) {
  std::vector<int64_t> result;
  const int64_t c = to_nhwc ? dims[1] : dims[3], h = to_nhwc ? dims[2] : dims[1], w = to_nhwc ? dims[3] : dims[2];
  if (to_nhwc) {
    for (int64_t i = 0; i < h * w; ++i)
      for (int64_t k = 0; k < c; ++k) result.push_back(values[static_cast<size_t>(k * h * w + i)]);
  } else {
    for (int64_t k = 0; k < c; ++k)
      for (int64_t i = 0; i < h * w; ++i) result.push_back(values[static_cast<size_t>(i * c + k)]);
  }
  return result;
}

TEST_F(DatasetTest, ArraysAreNchwUnlessOnlyNhwcFits) {
  const auto values = [&](const ModelInput& input, const DatasetOptions& options = {}) {
    const auto sample = first("x.npy", {input}, options);
    EXPECT_TRUE(sample) << sample.status().to_string();
    if (!sample) return std::vector<int64_t>{};
    EXPECT_EQ(sample->at(0).dims(), input.dims);
    EXPECT_EQ(sample->at(0).dtype(), DType::Int32);
    return ir::to_ints(sample->at(0).view());
  };
  std::vector<int64_t> plain(240);
  std::iota(plain.begin(), plain.end(), 0);
  for (const bool batch : {true, false}) {
    const auto dims = [&](ir::Dims d) { return batch ? d : ir::Dims(d.begin() + 1, d.end()); };
    write_array<int32_t>("x.npy", dims({1, 3, 8, 10}));
    EXPECT_EQ(values(kNchw), plain);
    EXPECT_EQ(values(kNhwc), moved(plain, {1, 3, 8, 10}, true)) << "an NHWC model is calibrated with NCHW arrays";
    EXPECT_EQ(values(kNhwc, {.toolkit1 = true}), moved(plain, {1, 3, 8, 10}, true));
    write_array<int32_t>("x.npy", dims({1, 8, 10, 3}));
    EXPECT_EQ(values(kNchw), moved(plain, {1, 8, 10, 3}, false));
    EXPECT_EQ(values(kNhwc), plain);
    EXPECT_EQ(values(kNhwc, {.toolkit1 = true}), plain);
  }
  // Both readings fit: NCHW for Toolkit2, H,W,C for Toolkit1.
  const ModelInput cube{"cube", {1, 3, 3, 3}, ir::Layout::NCHW, false};
  write_array<int32_t>("x.npy", {1, 3, 3, 3});
  plain.resize(27);
  EXPECT_EQ(values(cube), plain);
  EXPECT_EQ(values(cube, {.toolkit1 = true}), moved(plain, {1, 3, 3, 3}, false));
  // Grey in the form of Toolkit1, and rows and columns alone.
  plain.resize(20);
  write_array<int32_t>("x.npy", {4, 5, 1});
  EXPECT_EQ(values({"g", {1, 1, 4, 5}, ir::Layout::NCHW, false}, {.toolkit1 = true}), plain);
  write_array<int32_t>("x.npy", {4, 5});
  EXPECT_EQ(values({"g", {1, 4, 5, 1}, ir::Layout::NHWC, false}), plain);
  // The model's own batch.
  write_array<int32_t>("x.npy", {1, 2, 2, 5});
  std::vector<int64_t> twice = plain;
  twice.insert(twice.end(), plain.begin(), plain.end());
  EXPECT_EQ(values({"b", {2, 2, 2, 5}, ir::Layout::NCHW, false}), twice);
  // Other ranks.
  EXPECT_EQ(values({"v", {2, 2, 5}}), plain);
  write_array<int32_t>("x.npy", {20});
  EXPECT_EQ(values({"v", {1, 20}}), plain);
}

TEST_F(DatasetTest, ArraysKeepTheirType) {
  const auto type_of = [&] { return first("x.npy", {{"v", {1, 6}}}).value()[0].dtype(); };
  write_array<double>("x.npy", {1, 6});
  EXPECT_EQ(type_of(), DType::Float64);
  write_array<float>("x.npy", {1, 6});
  EXPECT_EQ(type_of(), DType::Float32);
  write_array<int64_t>("x.npy", {1, 6});
  EXPECT_EQ(type_of(), DType::Int64);
  write_array<uint16_t>("x.npy", {1, 6});
  EXPECT_EQ(type_of(), DType::UInt16);
}

TEST_F(DatasetTest, ErrorsNameListLineFileExpectedFound) {
  copy("jpg_420.jpg", "a.jpg");
  write_array<float>("x.npy", {1, 3, 9, 9});
  write("noise.jpg", "not a picture");
  write("cut.png", std::string("\x89PNG\r\n\x1a\n", 8));
  const auto problem = [&](const std::string& text, std::vector<ModelInput> inputs) {
    return first(text, std::move(inputs)).status().to_string();
  };
  const ModelInput vector{"mask", {1, 20}};

  EXPECT_EQ(problem("\nx.npy", {kNchw}),
            folder.file("list.txt") + " line 2: " + folder.file("x.npy") +
                ": the array does not fit input 'images'; expected [1,3,8,10] (NCHW) or [1,8,10,3] (NHWC), found [1,3,9,9].");
  EXPECT_TRUE(has(problem("a.jpg", {vector}),
                  "a picture cannot feed input 'mask'; expected an input with 1 or 3 channels, rows and columns, found [1,20]"));
  EXPECT_TRUE(
      has(problem("noise.jpg", {kNchw}), "noise.jpg: unknown kind of file; expected the content of a jpg, png, bmp or npy file"));
  EXPECT_TRUE(has(problem("cut.png", {kNchw}), "line 1: " + folder.file("cut.png") + ": damaged or unsupported png"));
  EXPECT_TRUE(has(problem("\n\n", {kNchw}), "there is no valid data"));
  EXPECT_TRUE(has(problem("a.jpg", {kNchw, vector}),
                  "line 1: the line does not have a file for each input; expected 2 ('images', 'mask'), found 1: a.jpg"));
  EXPECT_TRUE(has(problem("a.jpg", {{"dynamic", {1, 3, -1, 10}}}), "input 'dynamic' needs a fixed shape"));
  ASSERT_TRUE(write_npy(folder.file("empty.npy"), ir::TensorData::zeros(DType::Float32, {3, 0, 5})));
  EXPECT_EQ(problem("empty.npy", {{"without elements", {3, 0, 5}}}), "ok");
  EXPECT_TRUE(has(Dataset::open(folder.file("none.txt"), {kNchw}).status().to_string(), "none.txt' does not exist"));
  EXPECT_TRUE(has(Dataset::open(folder.file("."), {kNchw}).status().to_string(), "is a folder"));
  EXPECT_TRUE(has(Dataset::open("/dev/null", {kNchw}).status().to_string(), "'/dev/null' is a device, not a regular file"));
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(has(Dataset::open(folder.file("pipe"), {kNchw}).status().to_string(), "pipe' is a pipe, not a regular file"));
  EXPECT_TRUE(has(problem("/dev/null", {kNchw}), "line 1: '/dev/null' is a device, not a regular file"));
  EXPECT_TRUE(has(Dataset::open(folder.file("x.npy"), {kNchw}).status().to_string(), "is not a text"));

  const std::string several = problem("a.jpg\nmissing.jpg\na b c\nother.npy", {kNchw});
  EXPECT_TRUE(has(several, "line 2: file 'missing.jpg' does not exist; expected it in '")) << several;
  EXPECT_TRUE(has(several, "line 3: the line does not have a file for each input; expected 1 ('images'), found 3: a b c"));
  EXPECT_TRUE(has(several, "line 4: file 'other.npy'"));
  std::string many;
  for (int i = 0; i < 50; ++i) many += "missing.jpg\n";
  EXPECT_TRUE(has(problem(many, {kNchw}), "30 more problems"));
}

TEST_F(DatasetTest, Toolkit1SkipsMissingFiles) {
  copy("jpg_420.jpg", "a.jpg");
  std::vector<std::string> lines;
  const LogLevel before = log_level();
  set_log_level(LogLevel::Info);
  set_log_sink([&](LogLevel, std::string_view, std::string_view line) { lines.emplace_back(line); });
  const auto dataset = Dataset::open(write("list.txt", "missing.jpg\n\na.jpg\n"), {kNchw}, {.toolkit1 = true});
  const auto none = Dataset::open(write("list.txt", "missing.jpg\n"), {kNchw}, {.toolkit1 = true});
  set_log_sink({});
  set_log_level(before);
  ASSERT_TRUE(dataset);
  EXPECT_EQ(dataset->size(), 1u);
  EXPECT_FALSE(none);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "Can not find file: missing.jpg. This line will be ignored!");
  EXPECT_EQ(lines[1], "1 blank line(s) in dataset file. Ignored!!!");
}

TEST_F(DatasetTest, OneSampleFromFiles) {
  copy("jpg_420.jpg", "a.jpg");
  write_array<float>("x.npy", {20});
  const std::vector<ModelInput> inputs{kNhwc, {"mask", {1, 20}}};
  const auto dataset = Dataset::of_files({folder.file("a.jpg"), folder.file("x.npy")}, inputs);
  ASSERT_TRUE(dataset) << dataset.status().to_string();
  EXPECT_EQ(dataset->size(), 1u);
  EXPECT_EQ(dataset->describe(0), "a.jpg, x.npy");
  EXPECT_TRUE(dataset->sample(0));
  EXPECT_FALSE(Dataset::of_files({folder.file("a.jpg")}, inputs));
  EXPECT_FALSE(Dataset::of_files({folder.file("a.jpg"), folder.file("missing.npy")}, inputs));
}

TEST_F(DatasetTest, ThreadsShareAList) {
  copy("jpg_420.jpg", "a.jpg");
  copy("png_rgb16.png", "b.png");
  copy("bmp_8_runs.bmp", "c.bmp");
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "a.jpg\nb.png\nc.bmp\n";
  const auto dataset = Dataset::open(write("list.txt", lines), {kNchw});
  ASSERT_TRUE(dataset);
  std::vector<ir::TensorData> expected;
  for (size_t i = 0; i < 3; ++i) expected.push_back(dataset->sample(i).value()[0]);
  std::atomic<size_t> next{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (size_t i; (i = next++) < dataset->size();) {
        const auto sample = dataset->sample(i);
        if (!sample || !ir::identical(sample->at(0).view(), expected[i % 3].view())) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace orknn::data
