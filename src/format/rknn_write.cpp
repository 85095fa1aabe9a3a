#include <algorithm>

#include "format/coded_weights.h"
#include "format/container.h"
#include "format/left_out_weights.h"
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

// Where the first section begins.
uint64_t sections_begin(uint64_t front_bytes, size_t sections) {
  return front_bytes + aligned(kTrailerHeaderBytes + sections * kSectionEntryBytes);
}

// A file as far as it is known before the weights are summed up and written.
struct Draft {
  explicit Draft(const BytesDone& done) : weights(done) {}
  WeightCollector weights;
  std::vector<std::byte> front;
  std::vector<std::vector<std::byte>> encoded;     // what `bodies` refers to besides the model's own bytes
  std::vector<std::span<const std::byte>> bodies;  // all sections but the weights, unless these are coded
  std::vector<Section> sections;                   // the weights come last; without their checksum unless coded
  uint64_t file_bytes = 0;
};

// The constants of a model, those that it leaves out set apart.
void collect_weights(const Model& model, WeightCollector& weights) {
  if (model.leaves_out_weights)
    for (const Program& program : model.programs) leave_out_convolution_weights(program, weights);
  for (const Program& program : model.programs) collect_weights(program, weights);
}

Status fill(Draft& draft, const Model& model) {
  const auto add_bytes = [&](SectionKind kind, std::span<const std::byte> bytes) {
    draft.sections.push_back({kind, 0, bytes.size(), checksum_of(bytes)});
    draft.bodies.push_back(bytes);
  };
  const auto add_section = [&](SectionKind kind, ByteWriter& body) {
    body.pad();
    draft.encoded.push_back(std::move(body.bytes()));
    add_bytes(kind, draft.encoded.back());
  };
  if (model.leaves_out_weights)
    for (const Program& program : model.programs) leave_out_convolution_weights(program, draft.weights);
  ByteWriter facts;
  encode_model_facts(model, facts);
  add_section(SectionKind::ModelFacts, facts);
  for (const Program& program : model.programs) {
    if (Status s = verify(program); !s) return s.stage("export");
    ByteWriter body;
    encode_program(program, draft.weights, body);
    add_section(SectionKind::Program, body);
  }
  for (const StoredStreams& streams : model.streams) add_bytes(SectionKind::Streams, streams.bytes);
  if (!draft.weights.left_out().empty()) {
    ByteWriter body;
    encode_left_out(draft.weights, body);
    add_section(SectionKind::LeftOutWeights, body);
  }
  if (model.codes_weights) {
    ByteWriter body;
    body.bytes() = code_weights(draft.weights);
    add_section(SectionKind::CodedWeights, body);
  } else {
    draft.sections.push_back({SectionKind::Weights, 0, draft.weights.section_bytes(), 0});
  }
  draft.front = make_front(model, draft.weights.section_bytes());
  draft.file_bytes = sections_begin(draft.front.size(), draft.sections.size());
  for (Section& s : draft.sections) {
    s.offset = draft.file_bytes;
    draft.file_bytes += s.bytes;
  }
  return {};
}

std::vector<std::byte> make_trailer(const Draft& draft) {
  ByteWriter trailer;
  trailer.raw(kTrailerMagic);
  trailer.put(kTrailerVersion);
  trailer.put(static_cast<uint32_t>(draft.sections.size()));
  trailer.put(draft.file_bytes);
  trailer.put(checksum_of(draft.front));
  trailer.bytes().resize(kTrailerHeaderBytes);
  for (const Section& s : draft.sections) {
    trailer.put(s.kind);
    trailer.put(uint32_t{0});
    trailer.put(s.offset);
    trailer.put(s.bytes);
    trailer.put(s.checksum);
  }
  trailer.pad();
  const uint64_t sum = checksum64(trailer.bytes());
  std::memcpy(trailer.bytes().data() + kTrailerChecksumOffset, &sum, sizeof sum);
  return std::move(trailer.bytes());
}
}  // namespace

Status write_rknn(const Model& model, FileWriter& out, const BytesDone& done) {
  Draft draft(done);
  ORKNN_TRY(fill(draft, model));
  if (!model.codes_weights) {
    RangeChecksum weight_sum;
    ORKNN_TRY(write_weights(draft.weights, done, [&](std::span<const std::byte> bytes) {
      weight_sum.add(bytes);
      return Status();
    }));
    draft.sections.back().checksum = weight_sum.finish();
  }
  ORKNN_TRY(out.write(draft.front));
  ORKNN_TRY(out.write(make_trailer(draft)));
  for (const std::span<const std::byte> body : draft.bodies) ORKNN_TRY(out.write(body));
  if (!model.codes_weights)
    ORKNN_TRY(write_weights(draft.weights, done, [&](std::span<const std::byte> bytes) { return out.write(bytes); }));
  // Weights may lie in a file that was shortened meanwhile.
  for (const Program& program : model.programs) ORKNN_TRY(ir::check_mapped_files(program.graph));
  return {};
}

Status write_rknn(const Model& model, const std::string& path, const BytesDone& done) {
  return write_file_atomically(path, [&](FileWriter& out) { return write_rknn(model, out, done); });
}

uint64_t rknn_file_bytes(const Model& model) {
  std::vector<uint64_t> sections{model_facts_bytes(model)};
  for (const Program& program : model.programs) sections.push_back(program_bytes(program));
  for (const StoredStreams& streams : model.streams) sections.push_back(streams.bytes.size());
  uint64_t weight_bytes = model.weight_bytes;
  // How long a code is only coding tells, and what is left out only the weights themselves.
  if (weight_bytes == 0 || model.leaves_out_weights || model.codes_weights) {
    WeightCollector weights;
    collect_weights(model, weights);
    weight_bytes = weights.section_bytes();
    if (!weights.left_out().empty()) {
      ByteWriter list;
      encode_left_out(weights, list);
      sections.push_back(list.bytes().size());
    }
    sections.push_back(model.codes_weights ? code_weights(weights).size() : weight_bytes);
  } else {
    sections.push_back(weight_bytes);
  }
  uint64_t bytes = sections_begin(make_front(model, weight_bytes).size(), sections.size());
  for (uint64_t section : sections) bytes += aligned(section);
  return bytes;
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
  collect_weights(model, weights);
  for (Program& program : model.programs)
    for (size_t i = 0; i < program.buffers.size(); ++i) program.buffers[i] = stored_buffer(program, i, weights);
  model.weight_bytes = weights.section_bytes();
}

}  // namespace orknn::format
