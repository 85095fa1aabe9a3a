// The decoders against checksums of OpenCV's results (tests/data/make_pictures.py), and against damaged files.
#include "data/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <random>

#include "failing_allocation.h"
#include "golden.h"
#include "mutation.h"
#include "temporary_folder.h"
#include "test_paths.h"

namespace orknn::data {
namespace {

const std::string kFolder = std::string(tests::kSourceFolder) + "/tests/data/pictures/";

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Result<Picture> decode(std::string_view bytes, Colour colour) { return decode_picture(tests::exact_copy(bytes), colour); }

// Every fixture by name.
std::vector<std::pair<std::string, std::string>> fixtures() {
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    result.emplace_back(entry.path().filename().string(), content(entry.path().string()));
  std::sort(result.begin(), result.end());
  return result;
}

// Checksums of png chunks, made right again so that damage gets past them.
void mend_png(std::string& bytes) {
  for (size_t at = 8; at + 12 <= bytes.size();) {
    uint32_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<uint8_t>(bytes[at + i]);
    if (length > bytes.size() - at - 12) return;
    const auto* start = reinterpret_cast<const uint8_t*>(bytes.data()) + at + 4;
    const auto crc = static_cast<uint32_t>(std::stoul(tests::crc32({start, length + 4}), nullptr, 16));
    for (size_t i = 0; i < 4; ++i) bytes[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += 12 + length;
  }
}

TEST(Picture, EqualsOpenCv) {
  const auto lines = tests::golden_lines("pictures.golden");
  ASSERT_GT(lines.size(), 200u);
  for (const auto& line : lines) {
    const std::string what = line[0] + " " + line[1];
    const auto picture = read_picture(kFolder + line[0], line[1] == "grey" ? Colour::Grey : Colour::Rgb);
    if (line[2] == "refused") {
      EXPECT_FALSE(picture) << what;
      continue;
    }
    ASSERT_TRUE(picture) << what << ": " << picture.status().to_string();
    EXPECT_EQ(picture->height, std::stoll(line[2])) << what;
    EXPECT_EQ(picture->width, std::stoll(line[3])) << what;
    EXPECT_EQ(picture->channels, line[1] == "grey" ? 1 : 3) << what;
    EXPECT_EQ(tests::crc32(picture->pixels), line[4]) << what;
  }
}

TEST(Picture, ContentDecidesNotTheName) {
  tests::TemporaryFolder folder;
  std::filesystem::copy_file(kFolder + "png_rgb8.png", folder.file("really_a_png.jpg"));
  EXPECT_TRUE(read_picture(folder.file("really_a_png.jpg"), Colour::Rgb));
}

TEST(Picture, CutOffJpgIsReadWithARemark) {
  const auto whole = read_picture(kFolder + "jpg_420.jpg", Colour::Rgb), cut = read_picture(kFolder + "jpg_cut.jpg", Colour::Rgb);
  ASSERT_TRUE(whole && cut);
  EXPECT_EQ(whole->remark, "");
  EXPECT_NE(cut->remark.find("Premature end"), std::string::npos) << cut->remark;
}

// Files that are fine are not called damaged, and no part of them is left out.
TEST(Picture, MemoryThatRunsOutIsNotDamage) {
  for (const std::string name : {"png_rgb8.png", "png_exif6.png", "png_grey8_interlaced.png"}) {
    const std::string bytes = content(kFolder + name);
    const auto whole = decode(bytes, Colour::Rgb);
    ASSERT_TRUE(whole) << name << whole.status().to_string();
    int64_t refused = 0;
    for (int64_t number = 0;; ++number) {
      Result<Picture> picture = Status::error(Code::OutOfMemory, "an exception");
      int64_t counted = 0;
      try {
        const tests::FailingAllocation failure(number);
        picture = decode(bytes, Colour::Rgb);
        counted = failure.counted();
      } catch (const std::bad_alloc&) {
        counted = number + 1;
      }
      if (picture) {
        EXPECT_EQ(picture->pixels, whole->pixels) << name << ", allocation " << number;
      } else {
        ++refused;
        EXPECT_EQ(picture.status().code(), Code::OutOfMemory) << name << ": " << picture.status().to_string();
      }
      if (counted <= number) break;  // there are no more
    }
    EXPECT_GT(refused, 3) << name;
  }
  ASSERT_EQ(setenv("JPEGMEM", "1", 1), 0);  // thousands of bytes that libjpeg takes
  std::string jpg = content(kFolder + "jpg_progressive.jpg");
  jpg.replace(jpg.find("\xff\xc2") + 5, 2, std::string("\x20\x00", 2));  // 8192 rows
  const auto large = decode(jpg, Colour::Rgb);
  unsetenv("JPEGMEM");
  EXPECT_EQ(large.status().code(), Code::OutOfMemory) << large.status().to_string();
}

TEST(Picture, ErrorsNameFileAndProblem) {
  tests::TemporaryFolder folder;
  const auto problem = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder.file(name), std::ios::binary) << bytes;
    return read_picture(folder.file(name), Colour::Rgb).status().to_string();
  };
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != text.npos; };
  EXPECT_TRUE(has(problem("a.png", content(kFolder + "png_rgb8.png").substr(0, 60)),
                  "a.png: damaged or unsupported png: the file is cut off"));
  EXPECT_TRUE(has(problem("a.bmp", content(kFolder + "bmp_24.bmp").substr(0, 200)),
                  "a.bmp: damaged or unsupported bmp: the file is cut off"));
  EXPECT_TRUE(has(problem("a.jpg", "\xff\xd8\xff"), "a.jpg: damaged or unsupported jpg: "));
  EXPECT_TRUE(has(problem("a.gif", "GIF89a"), "a.gif: not a jpg, png or bmp file"));
  EXPECT_TRUE(has(problem("empty.jpg", ""), "empty.jpg: not a jpg, png or bmp file"));
  EXPECT_TRUE(has(read_picture(folder.file("missing.jpg"), Colour::Rgb).status().to_string(), "missing.jpg"));
}

// A header may claim any size; nothing of the kind is allocated.
TEST(Picture, SizesThatTheFileCannotHoldAreRefused) {
  std::string png = content(kFolder + "png_grey8.png"), jpg = content(kFolder + "jpg_grey.jpg"),
              bmp = content(kFolder + "bmp_8_runs.bmp");
  png.replace(16, 8, std::string("\x00\x00\x7f\xff\x00\x00\x7f\xff", 8));
  mend_png(png);
  EXPECT_NE(decode(png, Colour::Rgb).status().to_string().find("32767 x 32767 pixels cannot come from"), std::string::npos);
  jpg.replace(jpg.find("\xff\xc0") + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_NE(decode(jpg, Colour::Grey).status().to_string().find("65500 x 65500"), std::string::npos);
  bmp.replace(18, 8, std::string("\xff\x7f\x00\x00\xff\x7f\x00\x00", 8));
  EXPECT_NE(decode(bmp, Colour::Grey).status().to_string().find("32767 x 32767 pixels cannot come from"), std::string::npos);
}

TEST(PictureMutation, PrefixesAreRefusedOrRead) {
  for (const auto& [name, bytes] : fixtures())
    for (size_t length = 0; length < bytes.size(); length += 1 + length / 64) {
      const auto picture = decode(std::string_view(bytes).substr(0, length), Colour::Grey);
      if (name.starts_with("jpg")) continue;  // libjpeg fills up what is missing
      EXPECT_TRUE(!picture || length + 16 > bytes.size()) << name << " cut at " << length;
    }
}

TEST(PictureMutation, DamageDoesNoHarm) {
  const int count = tests::mutation_count(4000);
  const auto samples = fixtures();
  std::mt19937 random(20250301);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    std::string bytes = samples[static_cast<size_t>(i) % samples.size()].second;
    for (size_t step = 1 + below(4); step > 0 && !bytes.empty(); --step) {
      const size_t at = below(below(2) ? bytes.size() : std::min<size_t>(bytes.size(), 80));  // headers twice as often
      switch (below(6)) {
        case 0: bytes.resize(at); break;
        case 1:
        case 2: bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8)); break;
        case 3: bytes[at] = static_cast<char>(random()); break;
        case 4: bytes.erase(at, 1 + below(8)); break;
        default: bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(32))); break;
      }
    }
    if (bytes.starts_with("\x89PNG")) mend_png(bytes);
    const auto picture = decode(bytes, i % 2 ? Colour::Grey : Colour::Rgb);
    if (!picture) continue;
    ++accepted;
    ASSERT_EQ(picture->pixels.size(), static_cast<size_t>(picture->height * picture->width * picture->channels));
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, count);
}

}  // namespace
}  // namespace orknn::data
