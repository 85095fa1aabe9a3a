#include <algorithm>

#include "format/container.h"
#include "format/program_code.h"
#include "format/rknn_file.h"
#include "format/verify.h"
#include "format/viewer_part.h"
#include "ir/mapped_constants.h"

namespace orknn::format {
namespace {
constexpr std::byte kZeros[kFileAlignment] = {};

std::span<const std::byte> padding(uint64_t bytes) { return {kZeros, static_cast<size_t>(aligned(bytes) - bytes)}; }

// Header, flatbuffer and JSON: what viewers read.
std::vector<std::byte> make_front(const Model& model, uint64_t weight_bytes) {
  std::vector<std::byte> flatbuffer = make_viewer_flatbuffer(model, weight_bytes);
  // A viewer that compares the payload size with the file position needs at least header + 8 bytes of it.
  flatbuffer.resize(std::max<uint64_t>(aligned(flatbuffer.size()), 2 * kFileAlignment));
  const std::string json = make_viewer_json(model);
  ByteWriter out;
  out.raw(kMagic);
  out.put(uint32_t{0});
  out.put(kContainerVersion);
  out.put(static_cast<uint64_t>(flatbuffer.size()));
  out.bytes().resize(kHeaderBytes);
  out.raw(flatbuffer.data(), flatbuffer.size());
  out.put(static_cast<uint64_t>(json.size()));
  out.raw(json);
  out.pad();
  return std::move(out.bytes());
}

uint64_t checksum_of(std::span<const std::byte> bytes) {
  RangeChecksum sum;
  sum.add(bytes);
  return sum.finish();
}

// Calls `write` with the section's bytes in order, gaps filled with zeros, in parts small enough for `done` to show that it goes
// on.
template <class Write>
Status write_weights(const WeightCollector& weights, const BytesDone& done, Write write) {
  constexpr size_t kPartBytes = size_t{16} << 20;
  for (const WeightCollector::Piece& piece : weights.pieces()) {
    for (size_t at = 0; at < piece.bytes.size(); at += kPartBytes) {
      const auto part = piece.bytes.subspan(at, std::min(kPartBytes, piece.bytes.size() - at));
      ORKNN_TRY(write(part));
      if (done) done(part.size());
    }
    if (const auto gap = padding(piece.bytes.size()); !gap.empty()) ORKNN_TRY(write(gap));
  }
  return {};
}
}  // namespace

Status write_rknn(const Model& model, FileWriter& out, const BytesDone& done) {
  WeightCollector weights(done);
  std::vector<std::vector<std::byte>> bodies;  // all sections but the weights
  std::vector<Section> sections;
  const auto add_section = [&](SectionKind kind, ByteWriter& body) {
    body.pad();
    sections.push_back({kind, 0, body.bytes().size(), checksum_of(body.bytes())});
    bodies.push_back(std::move(body.bytes()));
  };
  ByteWriter facts;
  encode_model_facts(model, facts);
  add_section(SectionKind::ModelFacts, facts);
  for (const Program& program : model.programs) {
    if (Status s = verify(program); !s) return s.stage("export");
    ByteWriter body;
    encode_program(program, weights, body);
    add_section(SectionKind::Program, body);
  }
  RangeChecksum weight_sum;
  ORKNN_TRY(write_weights(weights, done, [&](std::span<const std::byte> bytes) {
    weight_sum.add(bytes);
    return Status();
  }));
  sections.push_back({SectionKind::Weights, 0, weights.section_bytes(), weight_sum.finish()});

  const std::vector<std::byte> front = make_front(model, weights.section_bytes());
  uint64_t position = front.size() + aligned(kTrailerHeaderBytes + sections.size() * kSectionEntryBytes);
  for (Section& s : sections) {
    s.offset = position;
    position += s.bytes;
  }
  ByteWriter trailer;
  trailer.raw(kTrailerMagic);
  trailer.put(kTrailerVersion);
  trailer.put(static_cast<uint32_t>(sections.size()));
  trailer.put(position);  // length of the whole file
  trailer.put(checksum_of(front));
  trailer.bytes().resize(kTrailerHeaderBytes);
  for (const Section& s : sections) {
    trailer.put(s.kind);
    trailer.put(uint32_t{0});
    trailer.put(s.offset);
    trailer.put(s.bytes);
    trailer.put(s.checksum);
  }
  trailer.pad();
  const uint64_t sum = checksum64(trailer.bytes());
  std::memcpy(trailer.bytes().data() + kTrailerChecksumOffset, &sum, sizeof sum);

  ORKNN_TRY(out.write(front));
  ORKNN_TRY(out.write(trailer.bytes()));
  for (const std::vector<std::byte>& body : bodies) ORKNN_TRY(out.write(body));
  ORKNN_TRY(write_weights(weights, done, [&](std::span<const std::byte> bytes) { return out.write(bytes); }));
  // Weights may lie in a file that was shortened meanwhile.
  for (const Program& program : model.programs) ORKNN_TRY(ir::check_mapped_files(program.graph));
  return {};
}

Status write_rknn(const Model& model, const std::string& path, const BytesDone& done) {
  return write_file_atomically(path, [&](FileWriter& out) { return write_rknn(model, out, done); });
}

Result<std::vector<std::byte>> write_rknn_to_memory(const Model& model) {
  struct MemoryWriter final : FileWriter {
    std::vector<std::byte> bytes;
    Status write(std::span<const std::byte> piece) override {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      return {};
    }
  } out;
  ORKNN_TRY(write_rknn(model, out));
  return std::move(out.bytes);
}

void place_weights(Model& model, const BytesDone& done) {
  WeightCollector weights(done);
  for (Program& program : model.programs) {
    collect_weights(program, weights);
    for (size_t i = 0; i < program.buffers.size(); ++i) program.buffers[i] = stored_buffer(program, i, weights);
  }
  model.weight_bytes = weights.section_bytes();
}

}  // namespace orknn::format
