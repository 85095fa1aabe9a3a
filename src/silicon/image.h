// Streams and operands of a Program as one value that a file can hold: everything a unit needs beside the Program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/program.h"
#include "ir/op_set.h"
#include "silicon/layout.h"
#include "silicon/lower.h"
#include "silicon/unit.h"

namespace orknn::silicon {

// A cube in the buffer of features.
struct PlacedCube {
  ir::TensorId tensor;  // none for sums that the CPU finishes
  Cube cube;
  TensorOrder order = TensorOrder::Chw;
  int64_t rows = 0;                // of the tensor where the cube has more; 0 = as many
  uint64_t offset = 0, bytes = 0;  // more than the cube where a layer programs more channels
  int8_t fill = 0;                 // of lanes without a channel
  // Position of the cube that this one is a part of, planes of a concatenation or of what is sliced; -1 for none.
  int32_t inside = -1;

  int64_t elements() const { return (rows ? rows : cube.height) * cube.width * cube.channels; }  // of the tensor
};

// Bytes of the buffer of operands.
struct ImageRange {
  uint64_t offset = 0, bytes = 0;
};

struct ImageTask {
  uint32_t first_word = 0, words = 0, enable = 0;
};

// What became of one task of the Program. Positions count Image::cubes, -1 is none.
struct ImageStep {
  enum class Kind : uint8_t {
    Cpu,
    Streams,
    Sums,    // streams compute int32 sums or float32 results, the CPU converts them
    Places,  // the result lies where it belongs as soon as its inputs do
  };
  Kind kind = Kind::Cpu;
  std::string reason;  // why the CPU computes it, or what it does after the streams
  uint32_t first_task = 0, tasks = 0;
  std::vector<int32_t> inputs;  // cubes that must be there before
  int32_t output = -1;          // of Sums: the sums
  LayerWeights source;          // of the weights
  ImageRange weights, bias;
  ImageRange host_bias;  // of Sums: an int32 per channel, for the CPU

  uint64_t packed_bytes() const { return weights.bytes + bias.bytes; }
};

struct Image {
  std::vector<PlacedCube> cubes;
  std::vector<ImageTask> tasks;
  std::vector<ImageStep> steps;  // one per task of the Program
  // Addresses in here are those of features at kFeatureBase and operands right after them, each on a page.
  std::vector<uint64_t> words;
  uint64_t feature_bytes = 0, operand_bytes = 0;
  // The buffer of operands from its start on, biases first: all of it, or up to the weights, which are packed when they are
  // needed (fill_operands).
  std::span<const std::byte> operands;
  std::shared_ptr<const void> keeper;  // of `operands`

  static constexpr uint64_t kFeatureBase = AddressSpace::kFirst;
  uint64_t operand_base() const { return kFeatureBase + AddressSpace::whole_pages(feature_bytes); }
  bool holds(const ImageRange& range) const { return range.offset + range.bytes <= operands.size(); }
  uint64_t bytes_without_weights() const;  // of `operands`
  bool holds_weights() const { return operands.size() == operand_bytes; }
  std::span<const uint64_t> words_of(const ImageTask& task) const {
    return std::span(words).subspan(task.first_word, task.words);
  }
};

// `program` is checked. What has no recipe is left to the CPU. The weights are not packed.
Result<Image> make_image(const format::Program& program, const ir::OpSet& ops);

// Fills a unit's buffer of operands, which holds `operand_bytes`; weights that the image lacks are packed from the constants of
// `program`.
void fill_operands(const Image& image, const format::Program& program, std::span<std::byte> to, ThreadPool& pool);

// What a file holds of an image.
enum class ImageParts : uint8_t {
  Streams,     // all but the weights: the Program has them
  AndWeights,  // packed ones too
};
// The same image gives the same bytes. Operands begin at a multiple of 64.
format::StoredStreams encode_image(const Image& image, const format::Program& program, ImageParts parts);
// Refers to the operands in `bytes`, which start at a multiple of 64. Lengths, positions and tensors of `program` are checked;
// what the streams do is the matter of whoever places them (map_image, lint).
Result<Image> decode_image(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper, const format::Program& program);

// Of a model's program: what its file holds, or made now where it holds none, or those of another version.
Result<Image> image_of(const format::Model& model, size_t program, const ir::OpSet& ops);

// Every cube and every layer's operands as memory of their own, so that the lint finds accesses that leave them.
Result<DeviceMemory> map_image(const Image& image, const UnitBuffer& features, const UnitBuffer& operands);
// The image's words for buffers at other addresses. `keeps_weights` false: no task reuses weights that an earlier one loaded.
std::vector<uint64_t> relocate(const Image& image, uint32_t features_at, uint32_t operands_at, bool keeps_weights = true);

}  // namespace orknn::silicon
