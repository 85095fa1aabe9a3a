#include "silicon/image.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "format/bytes.h"
#include "ir/index_of.h"
#include "ops/facts.h"
#include "ops/support/movement_plans.h"

namespace orknn::silicon {
namespace {
using namespace ir;

constexpr uint64_t kAlignment = 64;
uint64_t aligned_up(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// No layer programs more than whole groups of depthwise channels.
uint64_t most_bytes(const Cube& c) {
  return static_cast<uint64_t>(Cube{c.height, c.width, round_up(c.channels, 64), c.precision}.bytes());
}

bool same_form(const Cube& a, TensorOrder a_order, const Cube& b, TensorOrder b_order) {
  return a_order == b_order && a.height == b.height && a.width == b.width && a.channels == b.channels;
}

// Makes the image of one Program.
class ImageMaker {
 public:
  ImageMaker(const format::Program& program, const OpSet& ops)
      : program_(program), ops_(ops), cube_of_(program.graph.tensor_count(), -1) {}

  Result<Image> make() {
    lowered_.resize(program_.tasks.size());
    ThreadPool::shared().parallel_for(static_cast<int64_t>(lowered_.size()), 1, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) lowered_[i] = lower(program_, node(i), ops_);
    });
    for (LoweredNode& l : lowered_)
      if (l.has_streams()) claim(l);
    image_.steps.resize(lowered_.size());
    for (size_t i = 0; i < lowered_.size(); ++i)
      if (!lowered_[i].has_streams()) join_or_cut(i);
    place_features();
    place_operands();
    if (image_.operand_base() + image_.operand_bytes > uint64_t{1} << 32)
      return unsupported("the buffers need more than the 4 GiB that the unit addresses");
    for (size_t i = 0; i < lowered_.size(); ++i) ORKNN_TRY(emit(i));
    const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(operands_));
    image_.operands = *kept;
    image_.keeper = kept;
    return std::move(image_);
  }

 private:
  const Node& node(size_t step) const { return program_.graph.node(program_.tasks[step].node); }
  PlacedCube* cube_of(TensorId t) { return cube_of_[index_of(t)] < 0 ? nullptr : &image_.cubes[position_of(t)]; }
  size_t position_of(TensorId t) const { return static_cast<size_t>(cube_of_[index_of(t)]); }

  PlacedCube& reserve(TensorId t, const Cube& cube, TensorOrder order, uint64_t bytes, int64_t rows = 0) {
    if (cube_of_[index_of(t)] < 0) {
      cube_of_[index_of(t)] = static_cast<int32_t>(image_.cubes.size());
      image_.cubes.push_back({.tensor = t, .cube = cube, .order = order, .rows = rows});
    }
    PlacedCube& c = image_.cubes[position_of(t)];
    c.bytes = std::max(c.bytes, bytes);
    return c;
  }

  // Reserves the memory of a layer's tensors. A tensor has one form; a layer that wants another is left to the CPU.
  void claim(LoweredNode& l) {
    const auto* conv = std::get_if<ConvLayer>(&l.layer);
    for (const LoweredTensor* t : {&l.input, &l.output, &l.operand}) {
      if (!t->tensor || (l.ends_on_host() && t == &l.output)) continue;
      const PlacedCube* c = cube_of(t->tensor);
      if (!c || same_form(c->cube, c->order, t->cube, t->order)) continue;
      l.reason = "tensor '" + program_.graph.tensor(t->tensor).name + "' has another layout in memory";
      return;
    }
    const auto bytes_of_cube = [](const LoweredTensor& t) { return static_cast<uint64_t>(t.cube.bytes()); };
    PlacedCube& input = reserve(l.input.tensor, l.input.cube, l.input.order,
                                conv ? static_cast<uint64_t>(conv->input_bytes()) : bytes_of_cube(l.input), l.input.rows);
    if (conv) input.fill = static_cast<int8_t>(conv->in_zero_point);
    if (!l.ends_on_host())
      reserve(l.output.tensor, l.output.cube, l.output.order,
              conv ? static_cast<uint64_t>(conv->output_bytes()) : bytes_of_cube(l.output), l.output.rows);
    if (l.operand.tensor)  // read with as many channels as the output is written
      reserve(l.operand.tensor, l.operand.cube, l.operand.order,
              conv ? static_cast<uint64_t>(conv->output_bytes()) : bytes_of_cube(l.operand), l.operand.rows);
  }

  // --- concatenation and slices by addressing ---------------------------------------------------------------------------------

  std::optional<Cube> picture(TensorId t) const {
    const Tensor& tensor = program_.graph.tensor(t);
    const std::optional<Dims> d = tensor.shape ? to_dims(*tensor.shape) : std::nullopt;
    if (tensor.dtype != DType::Int8 && tensor.dtype != DType::Float16) return std::nullopt;
    if (!d || d->size() != 4 || (*d)[0] != 1 || element_count(*d) == 0) return std::nullopt;
    return Cube{(*d)[2], (*d)[3], (*d)[1], tensor.dtype == DType::Int8 ? Precision::Int8 : Precision::Half};
  }
  // Whether the tensor may lie inside of another one's cube: it is no part yet and nothing writes or reads more than its planes,
  // unless it is the last part and the other cube may grow by so much.
  bool can_be_part(TensorId t, const Cube& cube, const Cube& outer, int64_t first_channel, bool may_grow) {
    if (program_.graph.constant(t)) return false;
    const PlacedCube* c = cube_of(t);
    if (!c) return true;
    if (c->inside >= 0 || !same_form(c->cube, c->order, cube, TensorOrder::Chw)) return false;
    if (c->bytes == static_cast<uint64_t>(cube.bytes())) return true;
    return may_grow && first_channel + cube.channels == outer.channels &&
           part_offset(outer, first_channel) + c->bytes <= most_bytes(outer);
  }
  static uint64_t part_offset(const Cube& outer, int64_t first_channel) {
    return static_cast<uint64_t>(first_channel / outer.lanes() * outer.plane_bytes());
  }
  struct Part {
    TensorId tensor;
    Cube cube;
    int64_t first_channel = 0;
  };
  // Puts parts into the planes of `whole`. False where that is not possible, and nothing has changed.
  bool put_inside(TensorId whole, const std::vector<Part>& parts) {
    const std::optional<Cube> outer = picture(whole);
    if (!outer || program_.graph.constant(whole)) return false;
    if (const PlacedCube* c = cube_of(whole); c && !same_form(c->cube, c->order, *outer, TensorOrder::Chw)) return false;
    bool used = cube_of(whole) != nullptr;
    const bool may_grow = !used || cube_of(whole)->inside < 0;
    std::vector<TensorId> seen;
    for (const Part& p : parts) {
      const bool whole_planes = p.first_channel % outer->lanes() == 0 &&
                                (p.cube.channels % outer->lanes() == 0 || p.first_channel + p.cube.channels == outer->channels);
      if (!whole_planes || !can_be_part(p.tensor, p.cube, *outer, p.first_channel, may_grow) ||
          std::ranges::find(seen, p.tensor) != seen.end())
        return false;
      seen.push_back(p.tensor);
      used = used || cube_of(p.tensor);
    }
    if (!used) return false;  // no stream touches any of them
    reserve(whole, *outer, TensorOrder::Chw, static_cast<uint64_t>(outer->bytes()));
    for (const Part& p : parts) {
      PlacedCube& c = reserve(p.tensor, p.cube, TensorOrder::Chw, static_cast<uint64_t>(p.cube.bytes()));
      c.inside = static_cast<int32_t>(position_of(whole));
      c.offset = part_offset(*outer, p.first_channel);
      const uint64_t end = c.offset + c.bytes;
      PlacedCube& around = *cube_of(whole);
      around.bytes = std::max(around.bytes, end);
    }
    return true;
  }

  void join_or_cut(size_t step) {
    const Node& n = node(step);
    const OpDef* def = ops_.find(n.op);
    if (!def || !n.tail.empty()) return;
    const NodeReader attributes(n, *def);
    if (def->parts != Parts::None || n.op == "Slice")
      lowered_[step].reason = "its parts are no planes that a layer can write or read alone";
    if (def->parts == Parts::Joined && is_channel_axis(attributes.get_int("axis")))
      join(step);
    else if (def->parts == Parts::Divided && is_channel_axis(attributes.get_int("axis")))
      cut(step, 0);
    else if (n.op == "Slice")
      slice(step);
  }
  static bool is_channel_axis(int64_t axis) { return axis == 1 || axis == -3; }

  void join(size_t step) {
    const Node& n = node(step);
    std::vector<Part> parts;
    int64_t channel = 0;
    for (const TensorId t : n.inputs) {
      const std::optional<Cube> cube = t ? picture(t) : std::nullopt;
      if (!cube) return;
      parts.push_back({t, *cube, channel});
      channel += cube->channels;
    }
    if (!put_inside(n.output(), parts)) return;
    ImageStep& s = image_.steps[step];
    s.kind = ImageStep::Kind::Places;
    for (const Part& p : parts) s.inputs.push_back(static_cast<int32_t>(position_of(p.tensor)));
    s.output = static_cast<int32_t>(position_of(n.output()));
  }

  // The channels from `channel` on become the outputs, one after the other.
  void cut(size_t step, int64_t channel) {
    const Node& n = node(step);
    std::vector<Part> parts;
    for (const TensorId t : n.outputs) {
      const std::optional<Cube> cube = t ? picture(t) : std::nullopt;
      if (!cube) return;
      parts.push_back({t, *cube, channel});
      channel += cube->channels;
    }
    if (parts.empty() || !put_inside(n.input(0), parts)) return;
    ImageStep& s = image_.steps[step];
    s.kind = ImageStep::Kind::Places;
    s.inputs.push_back(static_cast<int32_t>(position_of(n.input(0))));
  }

  // A range of channels, every one of them and all of their pixels.
  void slice(size_t step) {
    const Node& n = node(step);
    const auto ints = [&](size_t input, std::vector<int64_t> otherwise) -> std::optional<std::vector<int64_t>> {
      if (!n.has_input(input)) return otherwise;
      const TensorData* value = program_.graph.constant(n.input(input));
      return value ? std::optional(to_ints(value->view())) : std::nullopt;
    };
    const std::optional<Cube> whole = picture(n.input(0)), part = picture(n.output());
    const auto starts = ints(1, {}), ends = ints(2, {});
    if (!whole || !part || !starts || !ends) return;
    const ops::ScratchDims all = ops::first_axes(starts->size());
    const auto axes = ints(3, {all.begin(), all.end()}), steps = ints(4, std::vector<int64_t>(starts->size(), 1));
    if (!axes || !steps || std::ranges::any_of(*steps, [](int64_t s) { return s != 1; })) return;
    if (part->height != whole->height || part->width != whole->width) return;
    const auto plan = ops::plan_slice(*to_dims(*program_.graph.tensor(n.input(0)).shape), *starts, *ends, *axes, *steps);
    if (plan) cut(step, plan->offset / (whole->height * whole->width));
  }

  // --- places -----------------------------------------------------------------------------------------------------------------

  void place_features() {
    for (size_t i = 0; i < lowered_.size(); ++i)
      if (lowered_[i].has_streams() && lowered_[i].ends_on_host()) {
        const auto& layer = std::get<ConvLayer>(lowered_[i].layer);
        image_.steps[i].output = static_cast<int32_t>(image_.cubes.size());
        image_.cubes.push_back({.cube = lowered_[i].output.cube,
                                .order = lowered_[i].output.order,
                                .rows = lowered_[i].output.rows,
                                .bytes = static_cast<uint64_t>(layer.output_bytes())});
      }
    for (PlacedCube& c : image_.cubes)
      if (c.inside < 0) {
        c.offset = image_.feature_bytes;
        image_.feature_bytes += aligned_up(c.bytes);
      }
    // Parts of parts: from their own offset to that in the buffer, outermost first.
    std::vector<bool> done(image_.cubes.size());
    for (size_t i = 0; i < image_.cubes.size(); ++i) resolve(i, done);
  }
  uint64_t resolve(size_t position, std::vector<bool>& done) {
    PlacedCube& c = image_.cubes[position];
    if (c.inside >= 0 && !done[position]) c.offset += resolve(static_cast<size_t>(c.inside), done);
    done[position] = true;
    return c.offset;
  }

  ImageRange keep(std::span<const std::byte> bytes) {
    const ImageRange range{operands_.size(), bytes.size()};
    operands_.insert(operands_.end(), bytes.begin(), bytes.end());
    operands_.resize(aligned_up(operands_.size()));
    return range;
  }
  void place_operands() {
    for (size_t i = 0; i < lowered_.size(); ++i) {
      const LoweredNode& l = lowered_[i];
      ImageStep& s = image_.steps[i];
      if (!l.has_streams()) continue;
      if (!l.bias.empty()) s.bias = keep(l.bias);
      if (l.host) s.host_bias = keep(std::as_bytes(std::span(l.host->bias)));
    }
    image_.operand_bytes = operands_.size();
    for (size_t i = 0; i < lowered_.size(); ++i) {
      const LoweredNode& l = lowered_[i];
      if (!l.has_streams() || l.weights.plan.kernels == 0) continue;
      ImageStep& s = image_.steps[i];
      s.source = l.weights;
      s.weights = {image_.operand_bytes, l.weights.plan.bytes()};
      image_.operand_bytes += aligned_up(s.weights.bytes);
    }
  }

  // --- streams ----------------------------------------------------------------------------------------------------------------

  uint32_t address_of(TensorId t) {
    return t ? static_cast<uint32_t>(Image::kFeatureBase + image_.cubes[position_of(t)].offset) : 0;
  }
  uint32_t address_of(const ImageRange& range) const {
    return range.bytes ? static_cast<uint32_t>(image_.operand_base() + range.offset) : 0;
  }

  Status emit(size_t index) {
    const LoweredNode& l = lowered_[index];
    ImageStep& s = image_.steps[index];
    if (s.kind == ImageStep::Kind::Places) {
      s.reason = "needs no task: its parts lie where they belong";
      return {};
    }
    s.reason = l.reason;
    if (!l.has_streams()) return {};
    s.kind = l.ends_on_host() ? ImageStep::Kind::Sums : ImageStep::Kind::Streams;
    if (l.host) s.reason = "the CPU converts its sums";
    if (l.tail_on_host) s.reason = "the CPU applies what is fused with it to float32 results";
    s.inputs.push_back(static_cast<int32_t>(position_of(l.input.tensor)));
    if (l.operand.tensor) s.inputs.push_back(static_cast<int32_t>(position_of(l.operand.tensor)));
    if (!l.ends_on_host()) s.output = static_cast<int32_t>(position_of(l.output.tensor));
    const auto out = static_cast<uint32_t>(Image::kFeatureBase + image_.cubes[static_cast<size_t>(s.output)].offset);
    std::vector<Stream> streams;
    if (const auto* conv = std::get_if<ConvLayer>(&l.layer)) {
      ORKNN_TRY_ASSIGN(streams, conv_streams(*conv, {address_of(l.input.tensor), address_of(s.weights), address_of(s.bias), out,
                                                     address_of(l.operand.tensor)}));
    } else {
      ORKNN_TRY_ASSIGN(Stream stream, pool_stream(std::get<PoolLayer>(l.layer), address_of(l.input.tensor), out));
      streams.push_back(std::move(stream));
    }
    s.first_task = static_cast<uint32_t>(image_.tasks.size());
    s.tasks = static_cast<uint32_t>(streams.size());
    for (const Stream& stream : streams) {
      image_.tasks.push_back(
          {static_cast<uint32_t>(image_.words.size()), static_cast<uint32_t>(stream.size()), decode(stream.back()).value});
      image_.words.insert(image_.words.end(), stream.begin(), stream.end());
    }
    return {};
  }

  const format::Program& program_;
  const OpSet& ops_;
  std::vector<int32_t> cube_of_;  // per tensor; -1 = no stream touches it
  std::vector<LoweredNode> lowered_;
  std::vector<std::byte> operands_;
  Image image_;
};

// Registers that hold an address, and of which buffer. Zero stands for a reader that is off.
std::optional<BufferUse> addressed_by(uint16_t offset) {
  switch (offset) {
    case reg::CNA_DCOMP_ADDR0:
    case reg::RDMA_BS_BASE_ADDR: return BufferUse::Operands;
    case reg::CNA_FEATURE_DATA_ADDR:
    case reg::DPU_DST_BASE_ADDR:
    case reg::RDMA_SRC_BASE_ADDR:
    case reg::RDMA_EW_BASE_ADDR:
    case reg::PPU_DST_BASE_ADDR:
    case reg::PPU_RDMA_SRC_BASE_ADDR: return BufferUse::Features;
    default: return std::nullopt;
  }
}

// --- the stored form
// ------------------------------------------------------------------------------------------------------------

// One more with each change of the form, or of the streams that the lint accepts: those of other versions are made anew.
constexpr uint32_t kImageVersion = 4;
constexpr size_t kCubeBytes = 59, kTaskBytes = 12, kStepBytes = 69;  // the least that one takes

Status damaged(const char* what) { return invalid_model(std::string("the stored command streams are damaged: ") + what); }

void put_range(const ImageRange& r, format::ByteWriter& out) {
  out.put(r.offset);
  out.put(r.bytes);
}
ImageRange get_range(format::ByteReader& in) {
  ImageRange r;
  r.offset = in.get<uint64_t>();
  r.bytes = in.get<uint64_t>();
  return r;
}

// The fields of a layer's weights in the order of the file.
template <class Field>
void visit_source(auto& w, Field&& field) {
  field(w.tensor.index);
  field(w.plan.precision);
  field(w.plan.depthwise);
  for (auto* number :
       {&w.plan.kernels, &w.plan.channels, &w.plan.height, &w.plan.width, &w.plan.block, &w.plan.zero_point, &w.plan.kernel_step,
        &w.plan.tap_step, &w.plan.channel_step, &w.plan.own_channels, &w.plan.kernels_together, &w.plan.value})
    field(*number);
}

bool is_inside(uint64_t offset, uint64_t bytes, uint64_t size) { return offset <= size && bytes <= size - offset; }

// Memory is allocated for cubes and operands alone, and for sums only where a layer has them.
Status check_memory(const Image& image, const format::Program& program) {
  uint64_t bytes = 0;
  for (const PlacedCube& c : image.cubes) bytes += aligned_up(c.bytes);
  if (image.feature_bytes > bytes) return damaged("more memory than cubes");
  bytes = image.operands.size();
  for (const ImageStep& s : image.steps) bytes += aligned_up(s.weights.bytes);
  if (image.operand_bytes > bytes) return damaged("more memory than operands");
  std::vector<bool> has_layer(image.cubes.size());
  for (size_t i = 0; i < image.steps.size(); ++i) {
    const ImageStep& s = image.steps[i];
    if (s.kind != ImageStep::Kind::Sums) continue;
    const PlacedCube& c = image.cubes[static_cast<size_t>(s.output)];
    const Tensor& out = program.graph.tensor(program.graph.node(program.tasks[i].node).output());
    const std::optional<Dims> dims = out.shape ? to_dims(*out.shape) : std::nullopt;
    const bool fits = c.cube.precision == Precision::Float ? out.dtype == DType::Float16 : dtype_bytes(out.dtype) == 1;
    if (!dims || !fits || element_count(*dims) != c.elements()) return damaged("the sums of a layer do not fit its result");
    has_layer[static_cast<size_t>(s.output)] = true;
  }
  for (size_t i = 0; i < image.cubes.size(); ++i)
    if (!image.cubes[i].tensor && !has_layer[i]) return damaged("sums without a layer");
  return {};
}

// A cube that is read from a file: of a tensor with as many elements of the same width, inside of the buffer.
Status check_cube(const PlacedCube& c, const Image& image, const format::Program& program) {
  constexpr int64_t kMost = 1 << 20;
  for (const int64_t extent : {c.cube.height, c.cube.width, c.cube.channels})
    if (extent < 1 || extent > kMost) return damaged("a cube");
  if (c.cube.precision > Precision::Float || c.order > TensorOrder::Chw) return damaged("a cube");
  if (c.rows < 0 || c.rows > c.cube.height) return damaged("a cube");
  if (c.cube.height * c.cube.width > kMost * 1024 || c.cube.height * c.cube.width * c.cube.planes() > INT32_MAX)
    return damaged("a cube");
  if (c.offset % kAtomBytes != 0 || !is_inside(c.offset, c.bytes, image.feature_bytes) ||
      static_cast<uint64_t>(c.cube.bytes()) > c.bytes)
    return damaged("a cube is outside of its buffer");
  if (c.bytes > most_bytes(c.cube)) return damaged("a cube takes more than its tensor");
  if (c.inside >= static_cast<int32_t>(image.cubes.size())) return damaged("a cube");
  if (c.inside >= 0) {
    const PlacedCube& outer = image.cubes[static_cast<size_t>(c.inside)];
    if (c.offset < outer.offset || !is_inside(c.offset - outer.offset, c.bytes, outer.bytes)) return damaged("a part of a cube");
  }
  if (!c.tensor) return {};
  if (c.tensor.index < 0 || index_of(c.tensor) >= program.graph.tensor_count()) return damaged("a cube has no tensor");
  const Tensor& t = program.graph.tensor(c.tensor);
  const std::optional<Dims> dims = t.shape ? to_dims(*t.shape) : std::nullopt;
  if (!dims || t.dtype != dtype_of_precision(c.cube.precision) || element_count(*dims) != c.elements())
    return damaged("a cube does not fit its tensor");
  return {};
}

bool is_one_of(const std::vector<TensorId>& tensors, TensorId t) { return t && std::ranges::find(tensors, t) != tensors.end(); }

// Weights that the file does not hold are packed from what the step says.
Status check_weights(const ImageStep& s, const Node& n, const format::Program& program, const Image& image) {
  if (s.weights.bytes == 0 || image.holds(s.weights)) return {};
  const LayerWeights& w = s.source;
  int64_t elements = INT64_MAX;
  if (w.tensor) {
    const TensorData* values = is_one_of(n.inputs, w.tensor) ? program.graph.constant(w.tensor) : nullptr;
    if (!values || values->dtype() != dtype_of_precision(w.plan.precision)) return damaged("a layer has no such weights");
    elements = values->count();
  }
  if (!w.plan.fits(elements) || w.plan.bytes() != s.weights.bytes || s.weights.offset < image.operands.size())
    return damaged("the weights of a layer");
  return {};
}

Status check_step(const ImageStep& s, const Node& n, const format::Program& program, const Image& image) {
  const auto cubes = static_cast<int32_t>(image.cubes.size());
  if (s.kind > ImageStep::Kind::Places || !is_inside(s.first_task, s.tasks, image.tasks.size())) return damaged("a layer");
  for (const ImageRange& r : {s.bias, s.host_bias})
    if (r.offset % kAlignment != 0 || !is_inside(r.offset, r.bytes, image.operands.size()))
      return damaged("operands are outside of their buffer");
  if (s.weights.offset % kAlignment != 0 || !is_inside(s.weights.offset, s.weights.bytes, image.operand_bytes))
    return damaged("weights are outside of their buffer");
  ORKNN_TRY(check_weights(s, n, program, image));
  if (s.kind == ImageStep::Kind::Cpu) return s.tasks == 0 ? Status() : damaged("a layer");
  for (const int32_t input : s.inputs)
    if (input < 0 || input >= cubes || !is_one_of(n.inputs, image.cubes[static_cast<size_t>(input)].tensor))
      return damaged("a layer reads what it does not have");
  if (s.output < -1 || s.output >= cubes) return damaged("a layer");
  const bool cuts = s.kind == ImageStep::Kind::Places && s.output < 0;
  if (s.kind == ImageStep::Kind::Places) {
    if (s.tasks != 0 || s.inputs.empty()) return damaged("a layer");
  } else if (s.tasks == 0) {
    return damaged("a layer has no streams");
  }
  if (cuts) return {};
  if (s.output < 0) return damaged("a layer has no result");
  const PlacedCube& out = image.cubes[static_cast<size_t>(s.output)];
  if (s.kind == ImageStep::Kind::Sums)
    return !out.tensor && ((out.cube.precision == Precision::Float && s.host_bias.bytes == 0) ||
                           (out.cube.precision == Precision::Int32 &&
                            s.host_bias.bytes == static_cast<uint64_t>(out.cube.channels) * sizeof(int32_t)))
               ? Status()
               : damaged("the sums of a layer");
  return out.tensor == n.output() ? Status() : damaged("a layer writes what it does not have");
}
}  // namespace

uint64_t Image::bytes_without_weights() const {
  uint64_t bytes = operands.size();
  for (const ImageStep& s : steps)
    if (s.weights.bytes) bytes = std::min(bytes, s.weights.offset);
  return bytes;
}

Result<Image> make_image(const format::Program& program, const OpSet& ops) { return ImageMaker(program, ops).make(); }

void fill_operands(const Image& image, const format::Program& program, std::span<std::byte> to, ThreadPool& pool) {
  if (!image.operands.empty()) std::memcpy(to.data(), image.operands.data(), image.operands.size());
  for (const ImageStep& s : image.steps) {
    if (s.weights.bytes == 0 || image.holds(s.weights)) continue;
    const TensorData* values = s.source.tensor ? program.graph.constant(s.source.tensor) : nullptr;
    s.source.plan.pack(values ? values->data() : nullptr, to.subspan(s.weights.offset, s.weights.bytes), pool);
    const uint64_t end = s.weights.offset + s.weights.bytes, next = std::min<uint64_t>(aligned_up(end), image.operand_bytes);
    std::fill(to.begin() + static_cast<ptrdiff_t>(end), to.begin() + static_cast<ptrdiff_t>(next), std::byte{0});
  }
}

format::StoredStreams encode_image(const Image& image, const format::Program& program, ImageParts parts) {
  const uint64_t held = parts == ImageParts::AndWeights ? image.operand_bytes : image.bytes_without_weights();
  format::ByteWriter out;
  out.put(kImageVersion);
  out.put(image.feature_bytes);
  out.put(image.operand_bytes);
  out.put(held);
  out.count(image.cubes.size());
  for (const PlacedCube& c : image.cubes) {
    out.put(c.tensor.index);
    for (const int64_t extent : {c.cube.height, c.cube.width, c.cube.channels}) out.put(static_cast<uint64_t>(extent));
    out.put(c.rows);
    out.put(c.cube.precision);
    out.put(c.order);
    out.put(c.offset);
    out.put(c.bytes);
    out.put(c.fill);
    out.put(c.inside);
  }
  out.count(image.tasks.size());
  for (const ImageTask& t : image.tasks)
    for (const uint32_t value : {t.first_word, t.words, t.enable}) out.put(value);
  out.count(image.steps.size());
  for (const ImageStep& s : image.steps) {
    out.put(s.kind);
    out.text(s.reason);
    out.put(s.first_task);
    out.put(s.tasks);
    out.list(s.inputs);
    out.put(s.output);
    for (const ImageRange& r : {s.weights, s.bias, s.host_bias}) put_range(r, out);
    if (s.weights.bytes) visit_source(s.source, [&](const auto& value) { out.put(value); });
  }
  out.list(image.words);
  out.pad();
  // Weights are packed where the file takes them from.
  const size_t front = out.bytes().size();
  auto bytes = TensorData::allocate(DType::UInt8, {static_cast<int64_t>(front + held)});
  auto* to = static_cast<std::byte*>(bytes.mutable_data());
  std::memcpy(to, out.bytes().data(), front);
  if (parts == ImageParts::AndWeights)
    fill_operands(image, program, {to + front, held}, ThreadPool::shared());
  else if (held)
    std::memcpy(to + front, image.operands.data(), held);
  return {{to, front + held}, std::make_shared<const TensorData>(std::move(bytes))};
}

Result<Image> decode_image(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper, const format::Program& program) {
  format::ByteReader in(bytes);
  if (in.get<uint32_t>() != kImageVersion)
    return unsupported("the command streams in the file are of another version").hint("export the model again");
  Image image;
  image.feature_bytes = in.get<uint64_t>();
  image.operand_bytes = in.get<uint64_t>();
  const auto held = in.get<uint64_t>();
  image.cubes.resize(in.count(kCubeBytes));
  for (PlacedCube& c : image.cubes) {
    c.tensor = TensorId{in.get<int32_t>()};
    for (int64_t* extent : {&c.cube.height, &c.cube.width, &c.cube.channels})
      *extent = static_cast<int64_t>(std::min<uint64_t>(in.get<uint64_t>(), INT32_MAX));
    c.rows = in.get<int64_t>();
    c.cube.precision = in.get<Precision>();
    c.order = in.get<TensorOrder>();
    c.offset = in.get<uint64_t>();
    c.bytes = in.get<uint64_t>();
    c.fill = in.get<int8_t>();
    c.inside = in.get<int32_t>();
  }
  image.tasks.resize(in.count(kTaskBytes));
  for (ImageTask& t : image.tasks)
    for (uint32_t* value : {&t.first_word, &t.words, &t.enable}) *value = in.get<uint32_t>();
  image.steps.resize(in.count(kStepBytes));
  for (ImageStep& s : image.steps) {
    s.kind = in.get<ImageStep::Kind>();
    s.reason = in.text();
    s.first_task = in.get<uint32_t>();
    s.tasks = in.get<uint32_t>();
    s.inputs = in.list<int32_t>();
    s.output = in.get<int32_t>();
    for (ImageRange* r : {&s.weights, &s.bias, &s.host_bias}) *r = get_range(in);
    if (s.weights.bytes)
      visit_source(s.source, [&](auto& value) {
        using T = std::remove_cvref_t<decltype(value)>;
        value = static_cast<T>(in.get<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>());
      });
  }
  image.words = in.list<uint64_t>();
  const uint64_t operands_at = format::aligned(bytes.size() - in.left());
  if (in.failed() || !is_inside(operands_at, held, bytes.size())) return damaged("they are cut off");
  if (held > image.operand_bytes || image.operand_bytes > uint64_t{1} << 32) return damaged("their operands");
  image.operands = bytes.subspan(operands_at, held);
  image.keeper = std::move(keeper);
  if (image.feature_bytes >= uint64_t{1} << 32 || image.operand_base() + image.operand_bytes > uint64_t{1} << 32)
    return damaged("more than 4 GiB of buffers");
  if (image.steps.size() != program.tasks.size()) return damaged("they are of another program");
  for (const ImageTask& t : image.tasks)
    if (!is_inside(t.first_word, t.words, image.words.size()) || t.words < kTailWords) return damaged("a task");
  for (const PlacedCube& c : image.cubes) ORKNN_TRY(check_cube(c, image, program));
  for (size_t i = 0; i < image.steps.size(); ++i)
    ORKNN_TRY(check_step(image.steps[i], program.graph.node(program.tasks[i].node), program, image));
  ORKNN_TRY(check_memory(image, program));
  return image;
}

Result<Image> image_of(const format::Model& model, size_t program, const OpSet& ops) {
  if (model.streams.empty()) return make_image(model.programs[program], ops);
  const format::StoredStreams& stored = model.streams[program];
  auto image = decode_image(stored.bytes, stored.keeper, model.programs[program]);
  if (!image && image.status().code() == Code::Unsupported) return make_image(model.programs[program], ops);
  return image;
}

Result<DeviceMemory> map_image(const Image& image, const UnitBuffer& features, const UnitBuffer& operands) {
  DeviceMemory memory;
  for (size_t i = 0; i < image.cubes.size(); ++i) {
    const PlacedCube& c = image.cubes[i];
    if (c.inside >= 0) continue;
    ORKNN_TRY(memory.map("cube " + std::to_string(i), static_cast<uint32_t>(features.address + c.offset),
                         features.bytes.subspan(c.offset, c.bytes)));
  }
  for (size_t i = 0; i < image.steps.size(); ++i)
    for (const ImageRange& r : {image.steps[i].weights, image.steps[i].bias})
      if (r.bytes)
        ORKNN_TRY(memory.map("operands of layer " + std::to_string(i), static_cast<uint32_t>(operands.address + r.offset),
                             operands.bytes.subspan(r.offset, r.bytes), DeviceMemory::Access::ReadOnly));
  return memory;
}

std::vector<uint64_t> relocate(const Image& image, uint32_t features_at, uint32_t operands_at, bool keeps_weights) {
  std::vector<uint64_t> words = image.words;
  for (uint64_t& word : words) {
    Command c = decode(word);
    const std::optional<BufferUse> use = addressed_by(c.offset);
    if (use && c.value != 0)
      c.value = static_cast<uint32_t>(*use == BufferUse::Features ? c.value - Image::kFeatureBase + features_at
                                                                  : c.value - image.operand_base() + operands_at);
    word = encode(c);
  }
  if (!keeps_weights) forget_kept_weights(words);
  return words;
}

}  // namespace orknn::silicon
