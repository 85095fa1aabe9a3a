#include "remote/messages.h"

#include <algorithm>
#include <cstring>

#include "format/bytes.h"

namespace orknn::remote {
namespace {
using format::ByteReader;
using format::ByteWriter;

Status malformed(const char* what) { return invalid_argument(std::string("the message ") + what + " is malformed"); }

// The value when everything was there and nothing follows.
template <class T>
Result<T> whole(const ByteReader& in, T value, const char* what) {
  if (in.failed() || in.left() != 0) return malformed(what);
  return value;
}

template <size_t N>
void put(ByteWriter& out, const std::array<std::byte, N>& bytes) {
  out.raw(bytes.data(), N);
}

template <size_t N>
void get(ByteReader& in, std::array<std::byte, N>& bytes) {
  if (in.left() < N) return in.fail();
  std::memcpy(bytes.data(), in.rest().data(), N);
  in.skip(N);
}

constexpr size_t kMaxRank = 16, kMaxTensors = 4096;

void put_tensors(ByteWriter& out, std::span<const ir::TensorView> tensors, const std::vector<uint64_t>& shared_offsets) {
  const bool shared = !shared_offsets.empty();
  out.put<uint8_t>(shared);
  out.count(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    out.put(static_cast<uint8_t>(tensors[i].dtype));
    out.put(static_cast<uint8_t>(tensors[i].dims.size()));
    for (const int64_t d : tensors[i].dims) out.put(d);
    out.put<uint64_t>(tensors[i].bytes());
    out.put<uint64_t>(shared ? shared_offsets[i] : 0);
  }
  if (shared) return;
  for (const ir::TensorView& t : tensors) out.raw(t.data, t.bytes());
}

bool get_place(ByteReader& in, TensorPlace& place) {
  place.dtype = static_cast<DType>(in.get<uint8_t>());
  const auto rank = in.get<uint8_t>();
  if (rank > kMaxRank) return false;
  for (uint8_t d = 0; d < rank; ++d) place.dims.push_back(in.get<int64_t>());
  place.bytes = in.get<uint64_t>();
  place.offset = in.get<uint64_t>();
  if (in.failed() || dtype_bytes(place.dtype) == 0) return false;
  const Result<int64_t> count = ir::checked_element_count(place.dims);
  return count && static_cast<uint64_t>(*count) * dtype_bytes(place.dtype) == place.bytes;
}

// `in` stands inside of `payload`, which ends with the tensors.
Status get_tensors(ByteReader& in, std::span<const std::byte> payload, Tensors& tensors, const char* what) {
  const auto shared = in.get<uint8_t>();
  const uint32_t count = in.count(18);  // bytes of the smallest description
  if (in.failed() || shared > 1 || count > kMaxTensors) return malformed(what);
  tensors.shared = shared != 0;
  tensors.places.clear();
  for (uint32_t i = 0; i < count; ++i) {
    TensorPlace place;
    if (!get_place(in, place)) return malformed(what);
    tensors.places.push_back(std::move(place));
  }
  if (!tensors.shared)
    for (TensorPlace& place : tensors.places) {
      if (place.bytes > in.left()) return malformed(what);
      place.offset = payload.size() - in.left();
      in.skip(static_cast<size_t>(place.bytes));
    }
  return in.failed() || in.left() != 0 ? malformed(what) : Status();
}
}  // namespace

Bytes Hello::encode() const {
  ByteWriter out;
  out.put(version);
  put(out, random);
  return std::move(out.bytes());
}
Result<Hello> Hello::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Hello m;
  m.version = in.get<uint16_t>();
  get(in, m.random);
  // Later versions may say more after this.
  if (in.failed()) return malformed("Hello");
  return m;
}

Bytes Welcome::encode() const {
  ByteWriter out;
  out.put(version);
  out.put<uint8_t>(wants_key);
  put(out, random);
  return std::move(out.bytes());
}
Result<Welcome> Welcome::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Welcome m;
  m.version = in.get<uint16_t>();
  m.wants_key = in.get<uint8_t>() != 0;
  get(in, m.random);
  if (in.failed()) return malformed("Welcome");
  return m;
}

Bytes Login::encode() const {
  ByteWriter out;
  out.text(client);
  return std::move(out.bytes());
}
Result<Login> Login::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Login m{in.text()};
  return whole(in, std::move(m), "Login");
}

Bytes Ready::encode() const {
  ByteWriter out;
  for (const std::string& text : {server_version, runtime_version, platform, board}) out.text(text);
  out.put(max_message_bytes);
  return std::move(out.bytes());
}
Result<Ready> Ready::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Ready m;
  for (std::string* text : {&m.server_version, &m.runtime_version, &m.platform, &m.board}) *text = in.text();
  m.max_message_bytes = in.get<uint64_t>();
  return whole(in, std::move(m), "Ready");
}

Bytes Offer::encode() const {
  ByteWriter out;
  put(out, digest);
  out.put(bytes);
  return std::move(out.bytes());
}
Result<Offer> Offer::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Offer m;
  get(in, m.digest);
  m.bytes = in.get<uint64_t>();
  return whole(in, m, "Offer");
}

Bytes Wanted::encode() const {
  ByteWriter out;
  out.put<uint8_t>(wanted);
  return std::move(out.bytes());
}
Result<Wanted> Wanted::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  return whole(in, Wanted{in.get<uint8_t>() != 0}, "Wanted");
}

Bytes Loaded::encode() const {
  ByteWriter out;
  for (const uint32_t n : {programs, inputs, outputs}) out.put(n);
  return std::move(out.bytes());
}
Result<Loaded> Loaded::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Loaded m;
  for (uint32_t* n : {&m.programs, &m.inputs, &m.outputs}) *n = in.get<uint32_t>();
  return whole(in, m, "Loaded");
}

namespace {
void put_run(ByteWriter& out, const Run& run) {
  for (const uint32_t n : {run.program, run.core_mask, run.priority, run.timeout_ms}) out.put(n);
  out.put(run.result_offset);
}

Run get_run(ByteReader& in) {
  Run m;
  for (uint32_t* n : {&m.program, &m.core_mask, &m.priority, &m.timeout_ms}) *n = in.get<uint32_t>();
  m.result_offset = in.get<uint64_t>();
  return m;
}
}  // namespace

Bytes Run::encode(const Run& run, std::span<const ir::TensorView> inputs, const std::vector<uint64_t>& shared_offsets) {
  ByteWriter out;
  put_run(out, run);
  put_tensors(out, inputs, shared_offsets);
  return std::move(out.bytes());
}
Result<Run> Run::decode(std::span<const std::byte> payload, Tensors& tensors) {
  ByteReader in(payload);
  const Run m = get_run(in);
  ORKNN_TRY(get_tensors(in, payload, tensors, "Run"));
  return m;
}

Bytes Trace::encode(const Trace& trace, std::span<const ir::TensorView> inputs, const std::vector<uint64_t>& shared_offsets) {
  ByteWriter out;
  put_run(out, trace.run);
  out.put(trace.first);
  put_tensors(out, inputs, shared_offsets);
  return std::move(out.bytes());
}
Result<Trace> Trace::decode(std::span<const std::byte> payload, Tensors& tensors) {
  ByteReader in(payload);
  Trace m{get_run(in)};
  m.first = in.get<uint32_t>();
  ORKNN_TRY(get_tensors(in, payload, tensors, "Trace"));
  return m;
}

Bytes Layer::encode(const Layer& layer, const ir::TensorView& value) {
  ByteWriter out;
  out.put(layer.tensor);
  out.put(layer.left);
  put_tensors(out, {&value, 1}, {});
  return std::move(out.bytes());
}
Result<Layer> Layer::decode(std::span<const std::byte> payload, Tensors& tensors) {
  ByteReader in(payload);
  Layer m;
  m.tensor = in.get<uint32_t>();
  m.left = in.get<uint32_t>();
  ORKNN_TRY(get_tensors(in, payload, tensors, "Layer"));
  if (tensors.shared || tensors.places.size() != 1) return malformed("Layer");
  return m;
}

Bytes Amend::encode(const Amend& amend, const ir::TensorView& value) {
  ByteWriter out;
  out.put(amend.tensor);
  put_tensors(out, {&value, 1}, {});
  return std::move(out.bytes());
}
Bytes Amend::encode_none() {
  ByteWriter out;
  out.put<uint32_t>(0);
  put_tensors(out, {}, {});
  return std::move(out.bytes());
}
Result<Amend> Amend::decode(std::span<const std::byte> payload, Tensors& tensors) {
  ByteReader in(payload);
  const Amend m{in.get<uint32_t>()};
  ORKNN_TRY(get_tensors(in, payload, tensors, "Amend"));
  if (tensors.shared || tensors.places.size() > 1) return malformed("Amend");
  return m;
}

Bytes RunResult::encode(const RunResult& result, std::span<const ir::TensorView> outputs,
                        const std::vector<uint64_t>& shared_offsets) {
  ByteWriter out;
  out.put(result.microseconds);
  put_tensors(out, outputs, shared_offsets);
  return std::move(out.bytes());
}
Result<RunResult> RunResult::decode(std::span<const std::byte> payload, Tensors& tensors) {
  ByteReader in(payload);
  const RunResult m{in.get<uint64_t>()};
  ORKNN_TRY(get_tensors(in, payload, tensors, "Result"));
  return m;
}

Bytes Share::encode() const {
  ByteWriter out;
  out.put(bytes);
  return std::move(out.bytes());
}
Result<Share> Share::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  return whole(in, Share{in.get<uint64_t>()}, "Share");
}

Bytes Measure::encode() const {
  ByteWriter out;
  out.put(cores);
  return std::move(out.bytes());
}
Result<Measure> Measure::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  return whole(in, Measure{in.get<uint32_t>()}, "Measure");
}

Bytes Measured::encode() const {
  ByteWriter out;
  for (const uint64_t n : {weight_bytes, internal_bytes, other_bytes}) out.put(n);
  out.put<uint8_t>(has_time);
  out.put(microseconds);
  out.text(table);
  out.text(why_no_time);
  return std::move(out.bytes());
}
Result<Measured> Measured::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Measured m;
  for (uint64_t* n : {&m.weight_bytes, &m.internal_bytes, &m.other_bytes}) *n = in.get<uint64_t>();
  m.has_time = in.get<uint8_t>() != 0;
  m.microseconds = in.get<double>();
  m.table = in.text();
  m.why_no_time = in.text();
  return whole(in, std::move(m), "Measured");
}

Bytes Fetch::encode() const {
  ByteWriter out;
  out.text(path);
  return std::move(out.bytes());
}
Result<Fetch> Fetch::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Fetch m{in.text()};
  return whole(in, std::move(m), "Fetch");
}

Bytes Problem::encode() const {
  ByteWriter out;
  out.put(static_cast<uint32_t>(code));
  out.text(text);
  return std::move(out.bytes());
}
Result<Problem> Problem::decode(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Problem m;
  const auto code = in.get<uint32_t>();
  m.code = code > 0 && code <= static_cast<uint32_t>(Code::Internal) ? static_cast<Code>(code) : Code::Fail;
  m.text = in.text();
  return whole(in, std::move(m), "Problem");
}

std::vector<uint64_t> place_tensors(std::span<const uint64_t> bytes, uint64_t begin, uint64_t& end) {
  std::vector<uint64_t> offsets;
  end = begin;
  for (const uint64_t b : bytes) {
    offsets.push_back(format::aligned(end));
    end = offsets.back() + b;
  }
  return offsets;
}

std::vector<uint64_t> place_tensors(std::span<const ir::TensorView> tensors, uint64_t begin, uint64_t& end) {
  std::vector<uint64_t> bytes;
  for (const ir::TensorView& t : tensors) bytes.push_back(t.bytes());
  return place_tensors(bytes, begin, end);
}

}  // namespace orknn::remote
