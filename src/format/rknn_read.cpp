#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "format/coded_weights.h"
#include "format/container.h"
#include "format/encrypted.h"
#include "format/left_out_weights.h"
#include "format/program_code.h"
#include "format/rknn_file.h"
#include "format/viewer_part.h"

namespace orknn::format {
namespace {
constexpr std::string_view kConvertHint = "convert the source model with OpenRKNN";

bool starts_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

bool contains(std::span<const std::byte> bytes, std::string_view text) {
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  return std::string_view(begin, bytes.size()).find(text) != std::string_view::npos;
}

template <class T>
T load(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Status truncated(uint64_t expected, uint64_t found) {
  return invalid_model("the file is cut off")
      .expected(std::to_string(expected) + " bytes")
      .found(std::to_string(found))
      .hint("copy or download it again");
}
Status damaged_file(std::string where) {
  return invalid_model("the file is damaged: " + std::move(where)).hint("copy it again, or export the model again");
}

// Says what a file is that OpenRKNN did not write.
Status check_kind(std::span<const std::byte> bytes) {
  if (bytes.empty()) return invalid_model("the file is empty");
  if (is_encrypted(bytes)) return unsupported("the model is encrypted twice").hint("encrypt the .rknn itself");
  if (starts_with(bytes, "RKNX"))
    return unsupported("this is a third-generation RKNX file, not a .rknn").hint(std::string(kConvertHint));
  if (starts_with(bytes, "VPMN") || (bytes.size() >= 8 && starts_with(bytes.subspan(4), kMagic)))
    return unsupported("this is a bare NPU network without the .rknn container").hint(std::string(kConvertHint));
  if (!starts_with(bytes, kMagic)) return invalid_model("this is not a .rknn file: it does not start with 'RKNN'");
  return {};
}

// Length of header, flatbuffer and JSON with their padding.
Result<uint64_t> check_front(std::span<const std::byte> bytes) {
  ORKNN_TRY(check_kind(bytes));
  if (bytes.size() < kHeaderBytes) return truncated(kHeaderBytes, bytes.size());
  const auto version = load<uint64_t>(bytes, 8), payload = load<uint64_t>(bytes, 16);
  if (version != kContainerVersion)
    return unsupported("format version " + std::to_string(version) + " is not supported")
        .expected(std::to_string(kContainerVersion))
        .hint(std::string(kConvertHint));
  if (load<uint32_t>(bytes, 4) != 0 ||
      !std::all_of(bytes.begin() + 24, bytes.begin() + kHeaderBytes, [](std::byte b) { return b == std::byte{0}; }))
    return damaged_file("the header");
  if (payload > bytes.size() - kHeaderBytes || bytes.size() - kHeaderBytes - payload < sizeof(uint64_t))
    return truncated(kHeaderBytes + payload, bytes.size());
  const uint64_t json_offset = kHeaderBytes + payload + sizeof(uint64_t),
                 json = load<uint64_t>(bytes, json_offset - sizeof(uint64_t));
  if (json > bytes.size() - json_offset) return truncated(json_offset + json, bytes.size());
  const uint64_t end = aligned(json_offset + json);
  if (end > bytes.size() || !starts_with(bytes.subspan(end), kTrailerMagic)) {
    if (!contains(bytes.subspan(kHeaderBytes, payload), kWriterMark))
      return unsupported("this .rknn was made by the vendor's toolkit; its register commands cannot be executed here")
          .hint(std::string(kConvertHint));
    return bytes.size() < end + kTrailerHeaderBytes ? truncated(end + kTrailerHeaderBytes, bytes.size())
                                                    : damaged_file("the section table");
  }
  return end;
}

// The section table, itself checked; sections follow each other without gaps to the end of the file.
Result<std::vector<Section>> check_table(std::span<const std::byte> bytes, uint64_t trailer) {
  if (bytes.size() - trailer < kTrailerHeaderBytes) return truncated(trailer + kTrailerHeaderBytes, bytes.size());
  const auto version = load<uint32_t>(bytes, trailer + 8), count = load<uint32_t>(bytes, trailer + 12);
  const auto file_bytes = load<uint64_t>(bytes, trailer + 16);
  if (count > kMaxSections) return damaged_file("the section table");
  const uint64_t table_bytes = aligned(kTrailerHeaderBytes + count * kSectionEntryBytes);
  if (bytes.size() - trailer < table_bytes) return truncated(trailer + table_bytes, bytes.size());
  std::vector<std::byte> table(bytes.begin() + static_cast<ptrdiff_t>(trailer),
                               bytes.begin() + static_cast<ptrdiff_t>(trailer + table_bytes));
  std::fill_n(table.begin() + kTrailerChecksumOffset, sizeof(uint64_t), std::byte{0});
  if (checksum64(table) != load<uint64_t>(bytes, trailer + kTrailerChecksumOffset)) return damaged_file("the section table");
  if (version < kArithmeticVersion)
    return unsupported("the file holds integer arithmetic of an older OpenRKNN, which rounded other than the chip does")
        .expected("section version " + std::to_string(kTrailerVersion))
        .found(std::to_string(version))
        .hint("convert the source model again");
  if (version != kTrailerVersion)
    return unsupported("the file was written by another version of OpenRKNN")
        .expected("section version " + std::to_string(kTrailerVersion))
        .found(std::to_string(version))
        .hint("use the same version for converting and running");
  if (file_bytes > bytes.size()) return truncated(file_bytes, bytes.size());
  if (file_bytes < bytes.size()) return damaged_file("there are bytes after its end");
  std::vector<Section> sections(count);
  uint64_t position = trailer + table_bytes;
  for (size_t i = 0; i < sections.size(); ++i) {
    const uint64_t entry = trailer + kTrailerHeaderBytes + i * kSectionEntryBytes;
    Section& s = sections[i];
    s = {load<SectionKind>(bytes, entry), load<uint64_t>(bytes, entry + 8), load<uint64_t>(bytes, entry + 16),
         load<uint64_t>(bytes, entry + 24)};
    if (s.offset != position || s.bytes % kFileAlignment != 0 || s.bytes > bytes.size() - position)
      return damaged_file("the section table");
    position += s.bytes;
  }
  if (position != bytes.size()) return damaged_file("the section table");
  return sections;
}

// Maps the pages of a range in one call instead of a fault for each few. Not needed for correctness: errors are ignored.
void map_pages(std::span<const std::byte> bytes) {
#ifdef MADV_POPULATE_READ
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data()) / page * page,
             end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
  (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);
#else
  (void)bytes;
#endif
}

// Checksums of several ranges of the file at once, on all threads.
bool ranges_intact(std::span<const std::byte> bytes, std::span<const Section> ranges, ThreadPool& pool) {
  struct Chunk {
    uint64_t offset, bytes;
  };
  std::vector<Chunk> chunks;
  for (const Section& r : ranges)
    for (uint64_t at = 0; at < r.bytes; at += kChunkBytes) chunks.push_back({r.offset + at, std::min(kChunkBytes, r.bytes - at)});
  std::vector<uint64_t> sums(chunks.size());
  pool.parallel_for(static_cast<int64_t>(chunks.size()), 4, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const auto chunk = bytes.subspan(chunks[i].offset, chunks[i].bytes);
      map_pages(chunk);
      sums[i] = checksum64(chunk);
    }
  });
  size_t next = 0;
  for (const Section& r : ranges) {
    const size_t n = (r.bytes + kChunkBytes - 1) / kChunkBytes;
    if (checksum64(std::as_bytes(std::span(sums).subspan(next, n))) != r.checksum) return false;
    next += n;
  }
  return true;
}

Result<Model> decode(std::span<const std::byte> bytes, std::span<const Section> sections, std::shared_ptr<const void> keeper,
                     const OutsideWeights& outside) {
  WeightSection weights;
  Model model;
  std::vector<StoredStreams> streams;
  size_t facts = 0, weight_sections = 0;
  std::map<uint64_t, ir::TensorData> left_out;
  bool codes_weights = false, leaves_out_weights = false;
  for (const Section& s : sections) {
    if (s.kind == SectionKind::Weights) {
      weights = {bytes.subspan(s.offset, s.bytes), keeper};
      ++weight_sections;
    } else if (s.kind == SectionKind::CodedWeights) {
      ORKNN_TRY_ASSIGN(weights, decode_weights(bytes.subspan(s.offset, s.bytes)));
      ++weight_sections;
      codes_weights = true;
    } else if (s.kind == SectionKind::LeftOutWeights) {
      if (leaves_out_weights) return damaged_file("a section is there twice");
      ORKNN_TRY_ASSIGN(left_out, find_left_out(bytes.subspan(s.offset, s.bytes), outside));
      leaves_out_weights = true;
    } else if (s.kind == SectionKind::Streams) {
      streams.push_back({bytes.subspan(s.offset, s.bytes), keeper});
    } else if (s.kind == SectionKind::ModelFacts) {
      ByteReader in(bytes.subspan(s.offset, s.bytes));
      ORKNN_TRY_ASSIGN(model, decode_model_facts(in));
      ++facts;
    } else if (s.kind != SectionKind::Program) {
      return damaged_file("a section of unknown kind");
    }
  }
  if (facts != 1 || weight_sections != 1) return damaged_file("a section is missing or there twice");
  weights.outside = std::move(left_out);
  for (const Section& s : sections) {
    if (s.kind != SectionKind::Program) continue;
    ByteReader in(bytes.subspan(s.offset, s.bytes));
    ORKNN_TRY_ASSIGN(Program program, decode_program(in, weights));
    model.programs.push_back(std::move(program));
  }
  if (model.programs.empty()) return damaged_file("it holds no program");
  if (!streams.empty() && streams.size() != model.programs.size())
    return damaged_file("command streams of a program are missing");
  model.streams = std::move(streams);
  model.weight_bytes = weights.bytes.size();
  model.codes_weights = codes_weights;
  model.leaves_out_weights = leaves_out_weights;
  return model;
}

Result<Model> read_aligned(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper, ThreadPool& pool,
                           const OutsideWeights& outside) {
  ORKNN_TRY_ASSIGN(const uint64_t trailer, check_front(bytes));
  ORKNN_TRY_ASSIGN(const std::vector<Section> sections, check_table(bytes, trailer));
  std::vector<Section> ranges = sections;
  ranges.push_back({{}, 0, trailer, load<uint64_t>(bytes, trailer + 24)});
  if (!ranges_intact(bytes, ranges, pool)) return damaged_file("its contents do not match their checksums");
  if (!is_viewer_flatbuffer(bytes.subspan(kHeaderBytes, load<uint64_t>(bytes, 16)))) return damaged_file("the graph for viewers");
  return decode(bytes, sections, std::move(keeper), outside);
}
}  // namespace

Result<Model> read_rknn(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper, ThreadPool& pool,
                        const OutsideWeights& outside) {
  if (is_encrypted(bytes)) {
    ORKNN_TRY_ASSIGN(const Decrypted plain, decrypt(bytes, passphrase_of_environment()));
    return read_aligned(plain.bytes, plain.keeper, pool, outside);
  }
  const bool is_aligned = reinterpret_cast<uintptr_t>(bytes.data()) % kFileAlignment == 0;
  if (keeper && is_aligned) return read_aligned(bytes, std::move(keeper), pool, outside);
  ORKNN_TRY(check_front(bytes).status());  // a foreign file is not worth copying
  constexpr std::align_val_t alignment{kFileAlignment};
  std::shared_ptr<std::byte> copy(static_cast<std::byte*>(::operator new(bytes.size(), alignment, std::nothrow)),
                                  [](std::byte* p) { ::operator delete(p, alignment); });
  if (!copy) return Status::error(Code::OutOfMemory, "no memory for the model (" + std::to_string(bytes.size()) + " bytes)");
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  const std::span<const std::byte> copied(copy.get(), bytes.size());
  return read_aligned(copied, std::move(copy), pool, outside);
}

Result<Model> read_rknn(const std::string& path, uint64_t offset, uint64_t bytes, ThreadPool& pool,
                        const OutsideWeights& outside) {
  auto file = MappedFile::open(path);
  if (!file) return Status(file.status()).stage("load_rknn");
  std::span<const std::byte> all = (*file)->bytes();
  if (offset > all.size() || bytes > all.size() - offset)
    return invalid_argument("the model is outside the file")
        .found("offset " + std::to_string(offset) + ", " + std::to_string(bytes) + " bytes in a file of " +
               std::to_string(all.size()))
        .model(path);
  all = all.subspan(offset, bytes ? bytes : all.size() - offset);
  // All of it is read for the checksums; only whole mappings start at a page.
  if (offset == 0 && !all.empty()) (void)::madvise(const_cast<std::byte*>(all.data()), all.size(), MADV_WILLNEED);
  auto model = read_rknn(all, *file, pool, outside);
  // Of a file that was shortened meanwhile only that is worth saying.
  Status problem = (*file)->check();
  if (problem && !model) problem = std::move(model).status();
  if (!problem) return problem.model(path).stage("load_rknn");
  return model;
}

Result<Model> read_rknn(const std::string& path, ThreadPool& pool) { return read_rknn(path, 0, 0, pool); }

}  // namespace orknn::format
