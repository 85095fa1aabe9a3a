#include "remote/wire.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "remote/discovery.h"
#include "remote/messages.h"

namespace orknn::remote {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto b = std::as_bytes(std::span(text));
  return {b.begin(), b.end()};
}

SharedKey key_of(const std::string& text) {
  auto key = SharedKey::from_text(text);
  EXPECT_TRUE(key) << key.status().to_string();
  return *key;
}

// All frames of a stream; an error text at the end when it is damaged.
std::vector<std::string> frames_of(FrameReader& reader, std::span<const std::byte> stream, size_t piece) {
  std::vector<std::string> found;
  while (!stream.empty()) {
    std::span<const std::byte> part = stream.first(std::min(piece, stream.size()));
    stream = stream.subspan(part.size());
    while (!part.empty()) {
      auto frame = reader.read(part);
      if (!frame) {
        found.push_back("error: " + frame.status().to_string());
        return found;
      }
      if (*frame) found.emplace_back(reinterpret_cast<const char*>((*frame)->payload.data()), (*frame)->payload.size());
    }
  }
  return found;
}

std::vector<std::byte> stream_of(FrameWriter& writer, const std::vector<std::string>& texts) {
  std::vector<std::byte> stream;
  for (const std::string& text : texts) writer.write(Type::Part, bytes_of(text), stream);
  return stream;
}

const std::vector<std::string> kTexts = {"one", "", std::string(1000, 'x'), "four"};

TEST(Wire, FramesArriveInAnyPieces) {
  for (const bool sealed : {false, true})
    for (const size_t piece : {1, 7, 40, 41, 100000}) {
      FrameWriter writer;
      FrameReader reader(4096);
      if (sealed) {
        const Random a = make_random(), b = make_random();
        writer.use(Cipher(key_of("0123456789abcdef"), a, b, Direction::ToServer));
        reader.use(Cipher(key_of("0123456789abcdef\n"), a, b, Direction::ToServer));
      }
      EXPECT_EQ(frames_of(reader, stream_of(writer, kTexts), piece), kTexts) << sealed << " " << piece;
      EXPECT_FALSE(reader.is_inside_frame());
    }
}

TEST(Wire, EveryChangedByteIsNoticed) {
  for (const bool sealed : {false, true}) {
    const Random a = make_random(), b = make_random();
    FrameWriter writer;
    if (sealed) writer.use(Cipher(key_of("0123456789abcdef"), a, b, Direction::ToServer));
    const std::vector<std::byte> stream = stream_of(writer, {"hello", "world"});
    for (size_t i = 0; i < stream.size(); ++i)
      for (const int bit : {0, 7}) {
        std::vector<std::byte> changed = stream;
        changed[i] ^= static_cast<std::byte>(1 << bit);
        FrameReader reader(4096);
        if (sealed) reader.use(Cipher(key_of("0123456789abcdef"), a, b, Direction::ToServer));
        const std::vector<std::string> found = frames_of(reader, changed, changed.size());
        ASSERT_FALSE(found.empty());
        EXPECT_TRUE(found.back().starts_with("error: ")) << "byte " << i << " bit " << bit;
      }
  }
}

TEST(Wire, ALyingLengthAllocatesNothing) {
  FrameWriter writer;
  std::vector<std::byte> stream;
  const std::vector<std::byte> large(100000);
  writer.write(Type::Run, large, stream);
  FrameReader small(1000);
  EXPECT_NE(frames_of(small, std::span(stream).first(sizeof(FrameHeader)), 1000).back().find("too large"), std::string::npos);
}

TEST(Wire, OtherKeysDirectionsAndOrdersAreRefused) {
  const Random a = make_random(), b = make_random();
  const SharedKey key = key_of("0123456789abcdef");
  FrameWriter writer;
  writer.use(Cipher(key, a, b, Direction::ToServer));
  const std::vector<std::byte> stream = stream_of(writer, {"secret"});
  for (const Cipher& other : {Cipher(key_of("another key of 16"), a, b, Direction::ToServer),
                              Cipher(key, b, a, Direction::ToServer), Cipher(key, a, b, Direction::ToClient)}) {
    FrameReader reader(4096);
    reader.use(other);
    EXPECT_TRUE(frames_of(reader, stream, 4096).back().starts_with("error: "));
  }
  FrameReader plain(4096);
  EXPECT_TRUE(frames_of(plain, stream, 4096).back().starts_with("error: "));
  FrameReader twice(4096);
  twice.use(Cipher(key, a, b, Direction::ToServer));
  std::vector<std::byte> replayed = stream;
  replayed.insert(replayed.end(), stream.begin(), stream.end());
  EXPECT_NE(frames_of(twice, replayed, 4096).back().find("came twice"), std::string::npos);
  EXPECT_FALSE(SharedKey::from_text("short"));
}

TEST(Wire, TensorsComeBack) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const ir::Dims dims = {2, 3};
  const ir::TensorView view{DType::Float32, dims, values.data()};
  Tensors tensors;
  const Bytes payload = Run::encode({1, 2, 3, 4, 0}, std::span(&view, 1), {});
  const auto run = Run::decode(payload, tensors);
  ASSERT_TRUE(run) << run.status().to_string();
  EXPECT_EQ(run->program, 1u);
  ASSERT_EQ(tensors.places.size(), 1u);
  EXPECT_EQ(tensors.places[0].dims, dims);
  EXPECT_EQ(std::memcmp(payload.data() + tensors.places[0].offset, values.data(), 24), 0);
  for (size_t n = 0; n < payload.size(); ++n) EXPECT_FALSE(Run::decode(std::span(payload).first(n), tensors)) << n;
}

// A message with a tensor comes back whole, and cut anywhere it is an error.
template <class Message>
void expect_back(const Bytes& payload, const std::vector<float>& values, auto field, uint32_t expected) {
  Tensors tensors;
  const auto message = Message::decode(payload, tensors);
  ASSERT_TRUE(message) << message.status().to_string();
  EXPECT_EQ((*message).*field, expected);
  ASSERT_EQ(tensors.places.size(), 1u);
  EXPECT_EQ(std::memcmp(payload.data() + tensors.places[0].offset, values.data(), 24), 0);
  for (size_t n = 0; n < payload.size(); ++n) EXPECT_FALSE(Message::decode(std::span(payload).first(n), tensors)) << n;
}

TEST(Wire, LayersComeBack) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const ir::Dims dims = {2, 3};
  const ir::TensorView view{DType::Float32, dims, values.data()};
  expect_back<Trace>(Trace::encode({{1, 2, 3, 4, 0}, 5}, std::span(&view, 1), {}), values, &Trace::first, 5);
  expect_back<Layer>(Layer::encode({6, 7}, view), values, &Layer::left, 7);
  expect_back<Amend>(Amend::encode({8}, view), values, &Amend::tensor, 8);
  Tensors tensors;
  ASSERT_TRUE(Amend::decode(Amend::encode_none(), tensors));
  EXPECT_TRUE(tensors.places.empty());
  EXPECT_FALSE(Layer::decode(RunResult::encode({}, {}, {}), tensors));  // no tensor
}

TEST(Wire, DamagedMessagesAreErrors) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const ir::Dims dims = {2, 3};
  const ir::TensorView view{DType::Float32, dims, values.data()};
  const Bytes payload = RunResult::encode({7}, std::span(&view, 1), {});
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    Bytes changed = payload;
    changed[random() % changed.size()] = static_cast<std::byte>(random());
    Tensors tensors;
    if (!RunResult::decode(changed, tensors)) continue;
    if (tensors.shared) continue;
    for (const TensorPlace& p : tensors.places) ASSERT_LE(p.offset + p.bytes, changed.size());
  }
}

TEST(Wire, Addresses) {
  const auto text = [](const char* given) {
    const auto a = Address::parse(given);
    return a ? a->to_string() + (a->is_local() ? " local" : "") : "error";
  };
  EXPECT_EQ(text("192.168.1.5"), "192.168.1.5:8088");
  EXPECT_EQ(text("127.1.2.3:5"), "127.1.2.3:5 local");
  EXPECT_EQ(text("[::1]:77"), "[::1]:77 local");
  EXPECT_EQ(text("unix:/a/b"), "unix:/a/b local");
  EXPECT_EQ(text("127.0.0.1.evil.com:1"), "127.0.0.1.evil.com:1");
  EXPECT_EQ(text(":9"), ":9");
  for (const char* wrong : {"", "a:", "a:b", "a:99999", "a:-1", "unix:", "[::1", "[::1]x", "::1"})
    EXPECT_EQ(text(wrong), "error") << wrong;
}

TEST(Wire, ListsOfDevices) {
  const std::string stars(25, '*');
  EXPECT_EQ(device_block({}, false), stars + "\nNone devices connected.\n" + stars + "\n");
  EXPECT_EQ(device_block({{"515e9b401c060c0b", "XGOR2N4EZR"}, {}}, false),
            stars + "\nall device(s) with adb mode:\n515e9b401c060c0b\nXGOR2N4EZR\n" + stars + "\n");
  EXPECT_EQ(device_block({{"515e9b401c060c0b", "XGOR2N4EZR"}, {"TD018080000000225"}}, true),
            stars + "\nall device(s) with adb mode:\n['515e9b401c060c0b', 'XGOR2N4EZR']\n" + stars + "\n" + stars +
                "\nall device(s) with ntb mode:\n['TD018080000000225']\n" + stars + "\n");
}

}  // namespace
}  // namespace orknn::remote
