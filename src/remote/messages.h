// Payloads of frames, as values. Every decode() checks all lengths against the bytes that are there; an error leaves nothing
// behind.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/blake2b.h"
#include "base/dtype.h"
#include "base/status.h"
#include "ir/tensor_data.h"
#include "remote/cipher.h"

namespace orknn::remote {

using Bytes = std::vector<std::byte>;

struct Hello {
  uint16_t version = 0;
  Random random{};
  Bytes encode() const;
  static Result<Hello> decode(std::span<const std::byte> payload);
};

struct Welcome {
  uint16_t version = 0;  // of the server
  bool wants_key = false;
  Random random{};
  Bytes encode() const;
  static Result<Welcome> decode(std::span<const std::byte> payload);
};

struct Login {
  std::string client;  // for the server's log and status page
  Bytes encode() const;
  static Result<Login> decode(std::span<const std::byte> payload);
};

struct Ready {
  std::string server_version, runtime_version, platform, board;
  uint64_t max_message_bytes = 0;
  Bytes encode() const;
  static Result<Ready> decode(std::span<const std::byte> payload);
};

struct Offer {
  Digest digest{};  // of the model's bytes
  uint64_t bytes = 0;
  Bytes encode() const;
  static Result<Offer> decode(std::span<const std::byte> payload);
};

struct Wanted {
  bool wanted = false;  // false: the server has this model, Loaded follows
  Bytes encode() const;
  static Result<Wanted> decode(std::span<const std::byte> payload);
};

struct Loaded {
  uint32_t programs = 0, inputs = 0, outputs = 0;
  Bytes encode() const;
  static Result<Loaded> decode(std::span<const std::byte> payload);
};

// Where the contents of a tensor lie: in the message, or in memory that both ends share.
struct TensorPlace {
  DType dtype = DType::Undefined;
  ir::Dims dims;
  uint64_t bytes = 0;
  uint64_t offset = 0;  // in the payload, or in the shared memory
};

// A list of tensors: descriptions first, then, unless they are shared, the contents.
struct Tensors {
  bool shared = false;
  std::vector<TensorPlace> places;
};

struct Run {
  uint32_t program = 0, core_mask = 0, priority = 0;
  uint32_t timeout_ms = 0;     // 0 = none
  uint64_t result_offset = 0;  // where results may be put in shared memory
  static Bytes encode(const Run& run, std::span<const ir::TensorView> inputs, const std::vector<uint64_t>& shared_offsets);
  // `tensors` refers to `payload`.
  static Result<Run> decode(std::span<const std::byte> payload, Tensors& tensors);
};

struct RunResult {
  uint64_t microseconds = 0;  // that the run took on the device
  static Bytes encode(const RunResult& result, std::span<const ir::TensorView> outputs,
                      const std::vector<uint64_t>& shared_offsets);
  static Result<RunResult> decode(std::span<const std::byte> payload, Tensors& tensors);
};

// A run whose layers are wanted: every tensor as Layer, in the order in which they are computed, then Result. One reply holds as
// many as the server likes, at least one; the client asks again for the next.
struct Trace {
  Run run;
  uint32_t first = 0;  // layer that is wanted first, counted from 0
  static Bytes encode(const Trace& trace, std::span<const ir::TensorView> inputs, const std::vector<uint64_t>& shared_offsets);
  static Result<Trace> decode(std::span<const std::byte> payload, Tensors& tensors);
};

struct Layer {
  uint32_t tensor = 0;  // its number in the program's graph
  uint32_t left = 0;    // layers of the run that follow this one
  static Bytes encode(const Layer& layer, const ir::TensorView& value);
  // `tensors` has one place.
  static Result<Layer> decode(std::span<const std::byte> payload, Tensors& tensors);
};

// What layers are to hold in later Trace runs instead of what they computed.
struct Amend {
  uint32_t tensor = 0;
  static Bytes encode(const Amend& amend, const ir::TensorView& value);
  static Bytes encode_none();  // forget all
  // `tensors` has one place, or none.
  static Result<Amend> decode(std::span<const std::byte> payload, Tensors& tensors);
};

struct Share {
  uint64_t bytes = 0;  // of the memory whose descriptor comes along
  Bytes encode() const;
  static Result<Share> decode(std::span<const std::byte> payload);
};

struct Measure {
  uint32_t cores = 1;
  Bytes encode() const;
  static Result<Measure> decode(std::span<const std::byte> payload);
};

struct Measured {
  uint64_t weight_bytes = 0, internal_bytes = 0, other_bytes = 0;
  bool has_time = false;
  double microseconds = 0;  // of one run on the chip
  std::string table;        // per layer
  std::string why_no_time;
  Bytes encode() const;
  static Result<Measured> decode(std::span<const std::byte> payload);
};

struct Fetch {
  std::string path;  // below the folder of models that the server offers; File has its contents
  Bytes encode() const;
  static Result<Fetch> decode(std::span<const std::byte> payload);
};

struct Problem {
  Code code = Code::Fail;
  std::string text;
  Bytes encode() const;
  static Result<Problem> decode(std::span<const std::byte> payload);
  static Problem of(const Status& status) { return {status.code(), status.to_string()}; }
  Status status() const { return Status::error(code, text.ends_with('.') ? text.substr(0, text.size() - 1) : text); }
};

// Offsets, each a multiple of 64, for tensors one after the other from `begin`; `end` is where the last one ends.
std::vector<uint64_t> place_tensors(std::span<const ir::TensorView> tensors, uint64_t begin, uint64_t& end);
std::vector<uint64_t> place_tensors(std::span<const uint64_t> bytes, uint64_t begin, uint64_t& end);

}  // namespace orknn::remote
