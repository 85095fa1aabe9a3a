// Clients and a server in one process: the same results as without, whatever happens to connections.
#include "server/server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "base/log.h"
#include "capi_models.h"
#include "remote/device.h"
#include "remote/discovery.h"
#include "rknn_matmul_api.h"
#include "runtime/remote_device.h"
#include "server/status_page.h"
#include "temporary_folder.h"

namespace orknn::server {
namespace {
using namespace remote;
using tests::chain_model;

const platform::Platform& chip() { return **platform::get("rk3588"); }

SharedKey test_key() { return *SharedKey::from_text("a key that both ends know"); }

// A session fed with numbers made from `seed`.
std::unique_ptr<runtime::Session> make_session(const format::Model& model, unsigned seed) {
  auto session = runtime::Session::open(std::make_shared<const format::Model>(model));
  EXPECT_TRUE(session) << session.status().to_string();
  std::mt19937 random(seed);
  for (size_t i = 0; i < (*session)->inputs().size(); ++i) {
    const ir::Dims dims = (*session)->inputs()[i].dims;
    std::vector<float> values(static_cast<size_t>(ir::element_count(dims)));
    for (float& v : values) v = static_cast<float>(random() % 1000) / 500 - 1;
    runtime::InputData data;
    data.dtype = DType::Float32;
    data.data = values.data();
    data.bytes = values.size() * 4;
    data.dims = dims;
    EXPECT_TRUE((*session)->set_input(i, data));
  }
  return std::move(*session);
}

std::vector<ir::TensorData> results(runtime::Session& session) {
  std::vector<ir::TensorData> out;
  const Status s = session.run();
  EXPECT_TRUE(s) << s.to_string();
  if (s)
    for (size_t i = 0; i < session.outputs().size(); ++i) out.push_back(session.output(i));
  return out;
}

void expect_same(const std::vector<ir::TensorData>& a, const std::vector<ir::TensorData>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(ir::identical(a[i].view(), b[i].view()));
}

struct Running {
  explicit Running(Limits limits = {}, SharedKey key = {}, bool tcp = false) : board(chip(), "test", limits), key(key) {
    Address address;
    if (tcp)
      address = {.host = "127.0.0.1", .port = 0, .path = {}};
    else
      address.path = folder.file("s.sock");
    auto started = Server::start(board, {address}, key);
    EXPECT_TRUE(started) << started.status().to_string();
    server = std::move(*started);
  }
  Result<std::unique_ptr<Device>> connect(DeviceOptions options = {}) const {
    options.key = key;
    return Device::connect(server->addresses()[0], options);
  }
  tests::TemporaryFolder folder;
  Board board;
  SharedKey key;
  std::unique_ptr<Server> server;
};

TEST(Server, ResultsAreThoseOfThisProcess) {
  for (const int64_t elements : {16, 100000})  // in the message, and in shared memory
    for (const bool tcp : {false, true})
      for (const bool sealed : {false, true}) {
        const Running running({}, sealed ? test_key() : SharedKey{}, tcp);
        const format::Model model = chain_model(4, elements);
        for (unsigned seed = 0; seed < 3; ++seed) {
          auto here = make_session(model, seed), there = make_session(model, seed);
          auto device = running.connect();
          ASSERT_TRUE(device) << device.status().to_string();
          EXPECT_EQ((*device)->facts().platform, "rk3588");
          const Status s = there->use_device(std::move(*device));
          ASSERT_TRUE(s) << s.to_string();
          for (int repeat = 0; repeat < 3; ++repeat) expect_same(results(*there), results(*here));
          auto twin = there->duplicate();
          ASSERT_TRUE(twin) << twin.status().to_string();
        }
        EXPECT_EQ(running.board.models().size(), 1u);  // uploaded once
        EXPECT_EQ(running.board.runs(), 9u);
      }
}

format::Model sum_model(int64_t elements) {
  const std::string type = "float32[" + std::to_string(elements) + "]";
  return tests::capi_model("graph \"g\" (%a: " + type + ", %b: " + type + ") -> (%y) {\n  %c: " + type +
                           " = Neg(%a)\n  %y: " + type + " = Add(%c, %b)\n}");
}

void set_all(runtime::Session& session, size_t input, float value) {
  const ir::Dims dims = session.inputs()[input].dims;
  const std::vector<float> values(static_cast<size_t>(ir::element_count(dims)), value);
  runtime::InputData data{.dtype = DType::Float32, .layout = ir::Layout::Undefined, .pass_through = false};
  data.data = values.data();
  data.bytes = values.size() * 4;
  data.dims = dims;
  EXPECT_TRUE(session.set_input(input, data));
}

// From the second run on inputs are converted to where the server reads them; those that are not set again stay what they are, on
// a new connection, too.
TEST(Server, InputsStayWhatTheyAre) {
  for (const int64_t elements : {16, 100000}) {
    Running running;
    const auto session = make_session(sum_model(elements), 1);
    auto device = running.connect();
    ASSERT_TRUE(device) << device.status().to_string();
    ASSERT_TRUE(session->use_device(std::move(*device)));
    const auto result = [&] {
      const std::vector<ir::TensorData> all = results(*session);
      return all.empty() ? 0.0f : all[0].as<float>()[elements - 1];
    };
    set_all(*session, 0, 1);
    set_all(*session, 1, 10);
    EXPECT_EQ(result(), 9);
    set_all(*session, 0, 2);
    EXPECT_EQ(result(), 8);
    set_all(*session, 1, 20);
    EXPECT_EQ(result(), 18);
    EXPECT_EQ(result(), 18);
    const Address address = running.server->addresses()[0];
    running.server.reset();
    EXPECT_FALSE(session->run());
    auto again = Server::start(running.board, {address}, {});
    ASSERT_TRUE(again) << again.status().to_string();
    EXPECT_EQ(result(), 18);
    set_all(*session, 0, 5);
    EXPECT_EQ(result(), 15);
  }
}

// Convolutions: inputs are read and results written in the client's memory.
format::Model maps_model() {
  const std::string shape = "int8[1,20,40,50]", conv = ", %v) {multiplier = [20000], shift = [16], low = -128, high = 127}\n";
  return tests::capi_model("graph \"g\" (%x: " + shape + ") -> (%y) {\n  %v: int8[20,20,1,1] = const splat -2\n  %a: " + shape +
                           " = \"int:Conv\"(%x" + conv + "  %y: " + shape + " = \"int:Conv\"(%a" + conv + "}");
}

// Contexts of several models use the memory of a core one after the other.
TEST(Server, ContextsThatShareMemoryDoNotMixResults) {
  Running running;
  const std::vector<format::Model> models = {chain_model(3, 100000), sum_model(50000), chain_model(5, 20), sum_model(200000),
                                             maps_model()};
  std::vector<std::unique_ptr<runtime::Session>> sessions;
  for (const format::Model& model : models) {
    sessions.push_back(make_session(model, 7));
    auto device = running.connect();
    ASSERT_TRUE(device) << device.status().to_string();
    ASSERT_TRUE(sessions.back()->use_device(std::move(*device)));
  }
  for (int round = 0; round < 3; ++round)
    for (size_t i = 0; i < models.size(); ++i) expect_same(results(*sessions[i]), results(*make_session(models[i], 7)));
}

TEST(Server, ModelsLargerThanAMessageComeInParts) {
  for (const bool sealed : {false, true}) {
    const Running running({.message_bytes = 2048}, sealed ? test_key() : SharedKey{});
    const format::Model model = chain_model(100, 16);
    ASSERT_GT(format::write_rknn_to_memory(model)->size(), 3 * 2048u);
    auto here = make_session(model, 1), there = make_session(model, 1);
    const Status s = there->use_device(std::move(*running.connect()));
    ASSERT_TRUE(s) << s.to_string();
    expect_same(results(*there), results(*here));
  }
}

TEST(Server, MeasuresTheModel) {
  const Running running;
  auto session = make_session(chain_model(4, 64), 1);
  ASSERT_TRUE(session->use_device(std::move(*running.connect())));
  const auto measured = session->device()->measure(1);
  ASSERT_TRUE(measured) << measured.status().to_string();
  EXPECT_EQ(measured->internal_bytes, session->memory().internal_bytes);
  EXPECT_FALSE(measured->table.empty());
}

TEST(Server, WithoutTheKeyThereIsNothing) {
  const Running running({}, test_key());
  DeviceOptions options;
  options.timeout = std::chrono::milliseconds(2000);
  auto none = Device::connect(running.server->addresses()[0], options);
  ASSERT_FALSE(none);
  EXPECT_NE(none.status().to_string().find("wants a key"), std::string::npos);
  options.key = *SharedKey::from_text("some other key of enough bytes");
  auto other = Device::connect(running.server->addresses()[0], options);
  ASSERT_FALSE(other);
  EXPECT_NE(other.status().to_string().find("is the key in ORKNN_DEVICE_KEY the one of the server?"), std::string::npos)
      << other.status().to_string();
  Board board(chip(), "open", {});
  const auto refused = Server::start(board, {{.host = "0.0.0.0", .port = 0, .path = {}}}, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.status().to_string().find("needs a key"), std::string::npos);
}

TEST(Server, ModelsThatDoNotFitAreRefused) {
  const Running running({.model_bytes = 20000, .models = 2});
  auto session = make_session(chain_model(2, 16, "rk3566"), 0);
  Status s = session->use_device(std::move(*running.connect()));
  ASSERT_FALSE(s);
  EXPECT_NE(s.to_string().find("does not run on this board"), std::string::npos);
  EXPECT_EQ(running.board.models().size(), 0u);
  auto device = running.connect();
  s = (*device)->load([] { return std::vector<std::byte>(30000); });
  EXPECT_NE(s.to_string().find("no room"), std::string::npos);
  s = (*device)->load([] { return std::vector<std::byte>(300); });
  EXPECT_FALSE(s);  // no model at all
  // The connection is still good.
  EXPECT_TRUE((*device)->load([] { return *format::write_rknn_to_memory(chain_model(1, 16)); }));
}

TEST(Server, ModelsWithoutUsersGiveWay) {
  const Running running({.models = 2});
  for (int steps = 1; steps <= 5; ++steps) {
    auto session = make_session(chain_model(steps, 16), 0);
    auto device = running.connect();
    const Status s = session->use_device(std::move(*device));
    ASSERT_TRUE(s) << s.to_string();
    results(*session);
    session.reset();
    while (!running.server->clients().empty()) std::this_thread::yield();
  }
  EXPECT_EQ(running.board.models().size(), 2u);
}

Digest digest_of(int number) { return blake2b(std::as_bytes(std::span(&number, 1))); }

// What has arrived takes room, not what was announced.
TEST(Server, ModelsOnTheirWayTakeRoom) {
  Board board(chip(), "small", {.model_bytes = 1000, .models = 2});
  EXPECT_FALSE(board.reserve(digest_of(9), 1001)) << "larger than all room";
  auto first = board.reserve(digest_of(1), 600), second = board.reserve(digest_of(2), 600);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(board.fill(*first, 100));
  ASSERT_TRUE(board.fill(*first, 600));
  EXPECT_TRUE(board.fill(*second, 400));
  EXPECT_FALSE(board.fill(*second, 401));
  EXPECT_FALSE(board.reserve(digest_of(3), 0)) << "too many";
  auto same = board.reserve(digest_of(1), 600);
  ASSERT_TRUE(same);
  EXPECT_TRUE(board.fill(*same, 600)) << "two clients bring one model";
  *first = nullptr;
  EXPECT_FALSE(board.fill(*second, 401)) << "one of the two is still on its way";
  *same = nullptr;
  EXPECT_TRUE(board.fill(*second, 600));
  auto third = board.reserve(digest_of(3), 400), fourth = board.reserve(digest_of(4), 0);
  ASSERT_TRUE(third && fourth);
  EXPECT_TRUE(board.fill(*third, 400));
  const Status many = board.fill(*fourth, 0);
  EXPECT_NE(many.to_string().find("--max-models"), std::string::npos) << many.to_string();
}

// A client of the protocol without a connection: frames in, types of the replies out.
class Speaker {
 public:
  explicit Speaker(Board& board) : session_(board, {}) {
    say(Type::Hello, Hello{kProtocolVersion, {}}.encode());
    say(Type::Login, Login{"test"}.encode());
    reader_.set_limit(1 << 20);
  }
  std::vector<Type> say(Type type, std::span<const std::byte> payload) {
    std::vector<std::byte> stream, out;
    writer_.write(type, payload, stream);
    is_connected_ = session_.receive(stream, out);
    std::vector<Type> replies;
    std::span<const std::byte> rest = out;
    for (auto frame = reader_.read(rest); frame && *frame; frame = reader_.read(rest)) replies.push_back((*frame)->type);
    return replies;
  }
  std::vector<Type> say_part(size_t bytes) { return say(Type::Part, std::vector<std::byte>(bytes)); }
  bool is_connected() const { return is_connected_; }
  void close() { session_.close(); }

 private:
  Session session_;
  FrameWriter writer_;
  FrameReader reader_{kMaxHandshakeBytes};
  bool is_connected_ = true;
};

TEST(Server, AModelWithoutRoomIsGivenUp) {
  Board board(chip(), "small", {.model_bytes = 1000, .models = 4});
  Speaker first(board), second(board);
  const std::vector<Type> wanted{Type::Wanted}, problem{Type::Problem}, nothing;
  EXPECT_EQ(first.say(Type::Offer, Offer{digest_of(1), 900}.encode()), wanted);
  EXPECT_EQ(second.say(Type::Offer, Offer{digest_of(2), 800}.encode()), wanted);
  EXPECT_EQ(first.say_part(600), nothing);
  EXPECT_EQ(second.say_part(300), nothing);
  EXPECT_EQ(second.say_part(300), problem) << "100 bytes are left";
  EXPECT_EQ(second.say_part(200), nothing) << "it was sent before the problem was known";
  EXPECT_TRUE(second.is_connected());
  EXPECT_EQ(first.say_part(299), nothing) << "the room of the other one is free again";
  EXPECT_EQ(second.say(Type::Offer, Offer{digest_of(2), 100}.encode()), wanted) << "the connection goes on";
  first.close();  // gives its room back
  EXPECT_EQ(second.say_part(99), nothing);
  EXPECT_EQ(second.say(Type::Offer, Offer{digest_of(2), 100}.encode()), problem) << "one model at a time";
  EXPECT_FALSE(second.is_connected());
}

TEST(Server, AnnouncedSizesTakeNoRoom) {
  Running running({.model_bytes = 20000, .models = 2});
  const auto load = [&](int steps) {
    auto device = running.connect();
    return device ? (*device)->load([=] { return *format::write_rknn_to_memory(chain_model(steps, 16)); }) : device.status();
  };
  ASSERT_TRUE(load(1));
  while (!running.server->clients().empty()) std::this_thread::yield();
  std::vector<std::unique_ptr<Speaker>> liars;
  for (int i = 0; i < 4; ++i) {
    liars.push_back(std::make_unique<Speaker>(running.board));
    EXPECT_EQ(liars.back()->say(Type::Offer, Offer{digest_of(i), 20000}.encode()), std::vector<Type>{Type::Wanted});
  }
  EXPECT_EQ(running.board.models().size(), 1u) << "nothing had to give way";
  const Status s = load(2);
  EXPECT_TRUE(s) << s.to_string();
  EXPECT_EQ(running.board.models().size(), 2u);
}

TEST(Server, UploadsThatDripAreGivenUp) {
  const Running running({.message_timeout = std::chrono::milliseconds(300), .upload_bytes_per_second = 1 << 20});
  const Deadline until = Clock::now() + std::chrono::seconds(60);
  auto socket = Socket::connect(running.server->addresses()[0], until);
  ASSERT_TRUE(socket);
  FrameWriter writer;
  const auto send = [&](Type type, std::span<const std::byte> payload) {
    std::vector<std::byte> bytes;
    writer.write(type, payload, bytes);
    return static_cast<bool>(socket->send(bytes, until));
  };
  ASSERT_TRUE(send(Type::Hello, Hello{kProtocolVersion, {}}.encode()));
  ASSERT_TRUE(send(Type::Login, Login{"test"}.encode()));
  ASSERT_TRUE(send(Type::Offer, Offer{digest_of(1), 1 << 30}.encode()));
  const std::vector<std::byte> drop(1);
  bool is_given_up = false;
  for (int i = 0; i < 100 && !is_given_up; ++i) {
    is_given_up = !send(Type::Part, drop);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(is_given_up);
}

TEST(Server, TooManyClientsAreSentAway) {
  const Running running({.clients = 2});
  auto a = running.connect(), b = running.connect();
  ASSERT_TRUE(a && b);
  auto c = running.connect();
  ASSERT_FALSE(c);
  EXPECT_NE(c.status().to_string().find("as many clients as it takes; expected at most 2"), std::string::npos)
      << c.status().to_string();
  // Somebody who only looks whether there is a server takes nobody's place.
  *b = nullptr;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(Socket::connect(running.server->addresses()[0], Clock::now() + std::chrono::seconds(5)));
  for (int i = 0; i < 500 && !(b = running.connect()); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(b) << b.status().to_string();
  a = running.connect();  // drops the first one only after the new one was refused
  *b = nullptr;
  for (int i = 0; i < 500 && running.server->clients().size() > 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(running.connect());
}

// The queue of a Unix socket holds few: who finds it full waits for a place.
TEST(Server, AFullQueueIsWaitedFor) {
  const tests::TemporaryFolder folder;
  const Address address{.host = {}, .port = 0, .path = folder.file("q.sock")};
  auto listening = ListeningSocket::open(address);
  ASSERT_TRUE(listening);
  std::vector<Socket> waiting;
  const auto until = [](int ms) { return Clock::now() + std::chrono::milliseconds(ms); };
  for (int i = 0; i < 1000; ++i) {
    auto one = Socket::connect(address, until(0));
    if (!one) break;
    waiting.push_back(std::move(*one));
  }
  ASSERT_LT(waiting.size(), 1000u) << "the queue has no end";
  EXPECT_FALSE(Socket::connect(address, until(50)));
  std::thread accepting([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(listening->accept(std::chrono::milliseconds(5000)));
  });
  EXPECT_TRUE(Socket::connect(address, until(10000)));
  accepting.join();
}

TEST(Server, AClientGetsAnErrorAndConnectsAgain) {
  auto running = std::make_unique<Running>();
  const Address address = running->server->addresses()[0];
  auto session = make_session(chain_model(3, 50000), 3), here = make_session(chain_model(3, 50000), 3);
  ASSERT_TRUE(session->use_device(std::move(*running->connect())));
  expect_same(results(*session), results(*here));
  running->server.reset();
  const auto begin = Clock::now();
  EXPECT_FALSE(session->run());
  EXPECT_FALSE(session->run());
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  Board fresh(chip(), "fresh", {});
  auto again = Server::start(fresh, {address}, {});
  ASSERT_TRUE(again) << again.status().to_string();
  expect_same(results(*session), results(*here));
}

TEST(Server, ManyClientsDoNotMixUpTheirResults) {
  const Running running;
  constexpr int kClients = 8;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int c = 0; c < kClients; ++c)
    threads.emplace_back([&, c] {
      const format::Model model = chain_model(1 + c % 3, 1000 + 20000 * (c % 2));
      auto here = make_session(model, static_cast<unsigned>(c)), there = make_session(model, static_cast<unsigned>(c));
      auto device = running.connect();
      if (!device || !there->use_device(std::move(*device))) return void(++wrong);
      there->choose_device_cores(c % 4 == 3 ? 7u : 0u, 0);
      const auto expected = results(*here);
      for (int i = 0; i < 20; ++i) {
        const auto found = results(*there);
        for (size_t k = 0; k < expected.size(); ++k)
          if (found.size() != expected.size() || !ir::identical(found[k].view(), expected[k].view())) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(running.board.runs(), 20u * kClients);
}

TEST(Server, ARunEndsAtItsDeadline) {
  const Running running;
  auto session = make_session(chain_model(4000, 1 << 20), 0);  // it takes seconds
  ASSERT_TRUE(session->use_device(std::move(*running.connect())));
  sim::RunHooks hooks;
  hooks.deadline = Clock::now() + std::chrono::milliseconds(20);
  EXPECT_FALSE(session->run(hooks));
  session->choose_device_cores(0x1000, 0);
  EXPECT_FALSE(session->run());  // no such cores
}

// Bytes of a client that says hello, uses a model that is on the board and asks for `runs` runs.
std::vector<std::byte> client_bytes(const std::vector<std::byte>& model, const ir::TensorView& input, int runs) {
  FrameWriter writer;
  std::vector<std::byte> stream;
  writer.write(Type::Hello, Hello{kProtocolVersion, {}}.encode(), stream);
  writer.write(Type::Login, Login{"test"}.encode(), stream);
  writer.write(Type::Offer, Offer{blake2b(model), model.size()}.encode(), stream);
  for (int i = 0; i < runs; ++i) writer.write(Type::Run, Run::encode({}, {&input, 1}, {}), stream);
  return stream;
}

TEST(Server, ARunEndsWhenItsClientIsGone) {
  Running running;
  const auto model = format::write_rknn_to_memory(chain_model(4000, 1 << 20));
  ASSERT_TRUE(model);
  ASSERT_TRUE(running.board.add(blake2b(*model), *model, *running.board.reserve(blake2b(*model), model->size())));
  const ir::TensorData x = ir::TensorData::zeros(DType::Float32, {1 << 20});
  const Deadline until = Clock::now() + std::chrono::seconds(60);
  {
    auto client = Socket::connect(running.server->addresses()[0], until);
    ASSERT_TRUE(client);
    ASSERT_TRUE(client->send(client_bytes(*model, x.view(), 1), until));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(running.board.runs(), 0u);  // it takes seconds
  }
  while (running.board.stopped() == 0 && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(running.board.stopped(), 1u);
  auto next = make_session(chain_model(4, 64), 1), here = make_session(chain_model(4, 64), 1);
  ASSERT_TRUE(next->use_device(std::move(*running.connect())));
  expect_same(results(*next), results(*here));  // the board is free
}

// Values of all layers, with layers 2 and 5 replaced when `amended`.
std::vector<std::pair<int, ir::TensorData>> layers_of(runtime::Session& session, bool amended) {
  std::vector<std::pair<int, ir::TensorData>> layers;
  sim::RunHooks hooks;
  hooks.observe = [&](ir::TensorId t, const ir::TensorView& v) { layers.emplace_back(t.index, ir::convert(v, v.dtype)); };
  const ir::Graph& g = session.program().graph;
  if (amended)
    hooks.amend = [&](ir::TensorId t, const ir::MutableTensorView& v) {
      if (t != g.find_tensor("t2") && t != g.find_tensor("t5")) return;
      for (int64_t i = 0; i < v.count(); ++i) static_cast<float*>(v.data)[i] = 0.25f * static_cast<float>(t.index);
    };
  const Status s = session.run(hooks);
  EXPECT_TRUE(s) << s.to_string();
  return layers;
}

TEST(Server, LayersAreThoseOfThisProcess) {
  for (const int64_t elements : {16, 100000}) {  // in one reply, and in several
    const Running running({.message_bytes = 1 << 20});
    const format::Model model = chain_model(8, elements);
    auto here = make_session(model, 3), there = make_session(model, 3);
    ASSERT_TRUE(there->use_device(std::move(*running.connect())));
    for (const bool amended : {false, true, false}) {
      const auto expected = layers_of(*here, amended), found = layers_of(*there, amended);
      ASSERT_EQ(found.size(), 9u);
      ASSERT_EQ(expected.size(), found.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(expected[i].first, found[i].first);
        EXPECT_TRUE(ir::identical(expected[i].second.view(), found[i].second.view())) << i;
      }
      EXPECT_TRUE(ir::identical(here->output(0).view(), there->output(0).view()));
    }
    expect_same(results(*there), results(*here));  // nothing stays replaced
  }
}

TEST(Server, ValuesForLayersAreLimited) {
  Board board(chip(), "small", {.message_bytes = 4096});
  Session session(board, {});
  FrameWriter writer;
  std::vector<std::byte> stream, out;
  writer.write(Type::Hello, Hello{kProtocolVersion, {}}.encode(), stream);
  writer.write(Type::Login, Login{"test"}.encode(), stream);
  const ir::TensorData value = ir::TensorData::zeros(DType::Float32, {256});
  for (const uint32_t tensor : {1, 2, 1, 1, 3, 4}) writer.write(Type::Amend, Amend::encode({tensor}, value.view()), stream);
  writer.write(Type::Amend, Amend::encode_none(), stream);
  writer.write(Type::Amend, Amend::encode({9}, value.view()), stream);
  EXPECT_TRUE(session.receive(stream, out));
  FrameReader reader(1 << 20);
  std::vector<Type> replies;
  for (std::span<const std::byte> rest = out; !rest.empty();) {
    auto frame = reader.read(rest);
    ASSERT_TRUE(frame);
    if (*frame) replies.push_back((*frame)->type);
  }
  const Type ok = Type::Amended;
  EXPECT_EQ(replies, (std::vector<Type>{Type::Welcome, Type::Ready, ok, ok, ok, ok, ok, Type::Problem, ok, ok}));
}

// Few bytes can describe much memory: the same place of shared memory again and again.
TEST(Server, InputsAreCopiedUpToTheSizeOfAMessage) {
  constexpr uint64_t kMemory = 1 << 16;
  Board board(chip(), "test", {.message_bytes = kMemory});
  Session session(board, {});
  const auto model = format::write_rknn_to_memory(chain_model(1, 8));
  ASSERT_TRUE(model);
  ASSERT_TRUE(board.add(blake2b(*model), *model, *board.reserve(blake2b(*model), model->size())));
  auto memory = SharedMemory::create(kMemory);
  ASSERT_TRUE(memory);
  session.attach(Descriptor(::dup(memory->fd())));
  const ir::Dims dims = {kMemory / 4};
  const ir::TensorView place{DType::Float32, dims, memory->bytes().data()};
  const std::vector<ir::TensorView> places(300, place);
  FrameWriter writer;
  std::vector<std::byte> stream, out;
  writer.write(Type::Hello, Hello{kProtocolVersion, {}}.encode(), stream);
  writer.write(Type::Login, Login{"test"}.encode(), stream);
  writer.write(Type::Offer, Offer{blake2b(*model), model->size()}.encode(), stream);
  writer.write(Type::Share, Share{kMemory}.encode(), stream);
  writer.write(Type::Run, Run::encode({}, places, std::vector<uint64_t>(places.size(), 0)), stream);
  EXPECT_TRUE(session.receive(stream, out));
  const std::string_view text(reinterpret_cast<const char*>(out.data()), out.size());
  EXPECT_NE(text.find("larger than one message"), std::string_view::npos);
}

// A client that changes its inputs and results while they are in use gets numbers that are worth nothing; the others get theirs.
TEST(Server, AClientThatChangesItsMemoryHarmsNobody) {
  Running running;
  const auto model = format::write_rknn_to_memory(maps_model());
  ASSERT_TRUE(model);
  const auto here = make_session(maps_model(), 1);
  const std::vector<ir::TensorData> expected = results(*here);
  auto there = make_session(maps_model(), 1);
  ASSERT_TRUE(there->use_device(std::move(*running.connect())));
  expect_same(results(*there), expected);

  constexpr uint64_t kMemory = 1 << 17;
  auto memory = SharedMemory::create(kMemory);
  ASSERT_TRUE(memory);
  std::atomic<bool> is_over{false};
  std::thread changes([&] {
    std::mt19937 random(1);
    while (!is_over) memory->bytes()[random() % kMemory] = static_cast<std::byte>(random());
  });
  std::thread client([&] {
    const Deadline until = Clock::now() + std::chrono::seconds(60);
    auto socket = Socket::connect(running.server->addresses()[0], until);
    ASSERT_TRUE(socket);
    const ir::Dims dims{1, 20, 40, 50};
    const ir::TensorView x{DType::Int8, dims, memory->bytes().data()};
    FrameWriter writer;
    std::vector<std::byte> stream;
    writer.write(Type::Hello, Hello{kProtocolVersion, {}}.encode(), stream);
    writer.write(Type::Login, Login{"test"}.encode(), stream);
    writer.write(Type::Offer, Offer{blake2b(*model), model->size()}.encode(), stream);
    writer.write(Type::Share, Share{kMemory}.encode(), stream);
    ASSERT_TRUE(socket->send(stream, until, memory->fd()));
    stream.clear();
    // Results after the input, over it, and where they do not fit.
    for (int i = 0; i < 60; ++i) {
      const uint64_t place = std::array<uint64_t, 3>{40000, 64, kMemory - 64}[static_cast<size_t>(i % 3)];
      writer.write(Type::Run, Run::encode({.result_offset = place}, {&x, 1}, {0}), stream);
    }
    ASSERT_TRUE(socket->send(stream, until));
    FrameReader reader(1 << 20);
    std::vector<std::byte> bytes(1 << 16);
    for (int replies = 0; replies < 60;) {
      const auto n = socket->receive(bytes, until);
      ASSERT_TRUE(n && *n > 0);
      for (std::span<const std::byte> rest(bytes.data(), *n); !rest.empty();) {
        auto frame = reader.read(rest);
        ASSERT_TRUE(frame) << frame.status().to_string();
        if (!*frame) continue;
        EXPECT_NE((*frame)->type, Type::Problem);
        replies += (*frame)->type == Type::Result;
      }
    }
  });
  for (int round = 0; round < 30; ++round) expect_same(results(*there), expected);
  client.join();
  is_over = true;
  changes.join();
  expect_same(results(*there), expected);
}

// A client that sends many requests and takes no reply gets no more made for it.
TEST(Server, RepliesDoNotPileUp) {
  Board board(chip(), "test", {});
  Session session(board, {});
  const auto bytes = format::write_rknn_to_memory(chain_model(1, 1 << 16));
  ASSERT_TRUE(bytes);
  ASSERT_TRUE(board.add(blake2b(*bytes), *bytes, *board.reserve(blake2b(*bytes), bytes->size())));
  const ir::TensorData x = ir::TensorData::zeros(DType::Float32, {1 << 16});
  const std::vector<std::byte> stream = client_bytes(*bytes, x.view(), 50);
  std::vector<std::byte> out;
  size_t largest = 0;
  int sent = 0;
  session.use({[&](std::vector<std::byte>& waiting) {
                 largest = std::max(largest, waiting.size());
                 waiting.clear();
                 return ++sent < 3;
               },
               nullptr});
  EXPECT_FALSE(session.receive(stream, out));
  EXPECT_EQ(sent, 3);
  EXPECT_LT(largest, size_t{2} << 20);
  EXPECT_LT(board.runs(), 20u);
}

// Any bytes: the session sends them away and lives on, and allocates no more than it was sent.
TEST(Server, SessionsSurviveAnyBytes) {
  Board board(chip(), "fuzzed", {.model_bytes = 1 << 20, .message_bytes = 1 << 20});
  FrameWriter writer;
  std::vector<std::byte> good;
  writer.write(Type::Hello, Hello{kProtocolVersion, make_random()}.encode(), good);
  writer.write(Type::Login, Login{"test"}.encode(), good);
  const std::vector<std::byte> model = *format::write_rknn_to_memory(chain_model(1, 8));
  writer.write(Type::Offer, Offer{blake2b(model), model.size()}.encode(), good);
  writer.write(Type::Part, model, good);
  const std::vector<float> values(8);
  const ir::Dims dims = {8};
  const ir::TensorView view{DType::Float32, dims, values.data()};
  writer.write(Type::Run, Run::encode({}, std::span(&view, 1), {}), good);
  writer.write(Type::Measure, Measure{1}.encode(), good);
  {
    Session session(board, {});
    std::vector<std::byte> out;
    EXPECT_TRUE(session.receive(good, out));
    EXPECT_TRUE(session.is_logged_in());
    FrameReader reader(1 << 20);
    std::vector<Type> types;
    for (std::span<const std::byte> rest = out; !rest.empty();) {
      const auto frame = reader.read(rest);
      ASSERT_TRUE(frame && *frame);
      types.push_back((*frame)->type);
    }
    EXPECT_EQ(types, (std::vector{Type::Welcome, Type::Ready, Type::Wanted, Type::Loaded, Type::Result, Type::Measured}));
  }
  set_log_sink([](LogLevel, std::string_view, std::string_view) {});
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> bytes = good;
    for (unsigned k = 0; k <= random() % 3; ++k) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    Session session(board, {});
    std::vector<std::byte> out;
    session.receive(bytes, out);
    EXPECT_LT(out.size(), size_t{1} << 20);
  }
  set_log_sink({});
}

TEST(Server, StrangersLearnNothing) {
  Board board(chip(), "hidden-name", {});
  Session session(board, test_key());
  FrameWriter writer;
  std::vector<std::byte> stream, out;
  writer.write(Type::Hello, Hello{kProtocolVersion, make_random()}.encode(), stream);
  writer.write(Type::Login, Login{"test"}.encode(), stream);
  EXPECT_FALSE(session.receive(stream, out));
  const std::string_view text(reinterpret_cast<const char*>(out.data()), out.size());
  EXPECT_EQ(text.find("hidden-name"), std::string_view::npos);
  EXPECT_EQ(text.find("rk3588"), std::string_view::npos);
}

TEST(Server, OtherVersionsAreToldSo) {
  Board board(chip(), "board", {});
  Session session(board, {});
  FrameWriter writer;
  std::vector<std::byte> stream, out;
  writer.write(Type::Hello, Hello{kProtocolVersion + 1, make_random()}.encode(), stream);
  EXPECT_FALSE(session.receive(stream, out));
  FrameReader reader(kMaxHandshakeBytes);
  std::span<const std::byte> rest = out;
  const auto frame = reader.read(rest);
  ASSERT_TRUE(frame && *frame);
  EXPECT_EQ(Welcome::decode((*frame)->payload)->version, kProtocolVersion);
}

TEST(Server, FilesOnTheBoard) {
  const tests::TemporaryFolder folder;
  ASSERT_TRUE(format::write_rknn(chain_model(1, 8), folder.file("m.rknn")));
  Board board(chip(), "board", {}, folder.file(""));
  EXPECT_TRUE(board.read_file("m.rknn"));
  for (const char* wrong : {"", "none.rknn", "../m.rknn", "x/../../m.rknn"}) EXPECT_FALSE(board.read_file(wrong)) << wrong;
}

TEST(Server, CProgramsRunOnTheDeviceOfTheirEnvironment) {
  const Running running;
  std::vector<std::byte> bytes = *format::write_rknn_to_memory(tests::int8_model(16, 32, 32));
  const auto run = [&] {
    rknn_context context = 0;
    EXPECT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr), RKNN_SUCC)
        << orknn_last_error();
    std::vector<uint8_t> picture(16 * 32 * 32);
    for (size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<uint8_t>(i * 31);
    rknn_input input{};
    input.buf = picture.data();
    input.size = static_cast<uint32_t>(picture.size());
    input.type = RKNN_TENSOR_UINT8;
    input.fmt = RKNN_TENSOR_NHWC;
    EXPECT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC);
    EXPECT_EQ(rknn_set_core_mask(context, RKNN_NPU_CORE_0_1), RKNN_SUCC);
    EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
    rknn_output output{};
    output.want_float = 1;
    EXPECT_EQ(rknn_outputs_get(context, 1, &output, nullptr), RKNN_SUCC);
    std::vector<float> values(output.size / 4);
    std::memcpy(values.data(), output.buf, output.size);
    rknn_outputs_release(context, 1, &output);
    rknn_destroy(context);
    return values;
  };
  const std::vector<float> here = run();
  EXPECT_EQ(running.board.runs(), 0u);
  ::setenv("ORKNN_DEVICE", running.server->addresses()[0].to_string().c_str(), 1);
  const std::vector<float> there = run();
  EXPECT_EQ(running.board.runs(), 1u);
  EXPECT_EQ(here, there);
  ::setenv("ORKNN_DEVICE", "127.0.0.1:1", 1);
  rknn_context context = 0;
  EXPECT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr), RKNN_ERR_DEVICE_UNAVAILABLE);
  ::unsetenv("ORKNN_DEVICE");
}

// ORKNN_REQUIRE_DEVICE=1: the only device with the chip, or an error; products of matrices have no device.
TEST(Server, CProgramsCanDemandADevice) {
  const Running running;
  const tests::TemporaryFolder devices;
  ::setenv("ORKNN_DEVICE_DIR", devices.file("d").c_str(), 1);
  ::setenv("ORKNN_REQUIRE_DEVICE", "1", 1);
  std::vector<std::byte> bytes = *format::write_rknn_to_memory(tests::int8_model(16, 32, 32));
  const auto init = [&] {
    rknn_context context = 0;
    const int code = rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr);
    if (code != RKNN_SUCC) return code;
    EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
    rknn_destroy(context);
    return code;
  };
  EXPECT_EQ(init(), RKNN_ERR_DEVICE_UNAVAILABLE);
  EXPECT_NE(std::string(orknn_last_error()).find("there is no rk3588 in reach"), std::string::npos) << orknn_last_error();
  {
    const auto announced =
        AnnouncedServer::publish({"board", std::string(chip().name), Mode::Adb, running.server->addresses()[0]});
    ASSERT_TRUE(announced);
    EXPECT_EQ(init(), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(running.board.runs(), 1u);
  }
  rknn_matmul_info info{};
  info.M = 4, info.K = 64, info.N = 32;
  info.type = RKNN_INT8_MM_INT8_TO_INT32;
  rknn_matmul_io_attr attr{};
  rknn_matmul_ctx product = 0;
  EXPECT_EQ(rknn_matmul_create(&product, &info, &attr), RKNN_ERR_DEVICE_UNAVAILABLE);
  ::unsetenv("ORKNN_REQUIRE_DEVICE");
  EXPECT_EQ(rknn_matmul_create(&product, &info, &attr), RKNN_SUCC);
  rknn_matmul_destroy(product);
  EXPECT_EQ(init(), RKNN_SUCC);
  EXPECT_EQ(running.board.runs(), 1u) << "without the demand it runs here";
  ::unsetenv("ORKNN_DEVICE_DIR");
}

TEST(Server, StatusPage) {
  const Running running;
  auto session = make_session(chain_model(1, 8), 0);
  ASSERT_TRUE(session->use_device(std::move(*running.connect())));
  results(*session);
  const std::string page = http_reply("GET / HTTP/1.1\r\n\r\n", running.board, *running.server, 1);
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_NE(page.find("rk3588"), std::string::npos);
  EXPECT_NE(page.find("the simulator"), std::string::npos);
  EXPECT_NE(http_reply("GET /status.json HTTP/1.1", running.board, *running.server, 1).find("\"runs\":1,"), std::string::npos);
  EXPECT_NE(http_reply("GET /status.json HTTP/1.1", running.board, *running.server, 1).find("\"engine\":\"simulator\""),
            std::string::npos);
  EXPECT_TRUE(http_reply("GET /x HTTP/1.1", running.board, *running.server, 1).starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(http_reply("POST / HTTP/1.1", running.board, *running.server, 1).starts_with("HTTP/1.1 405"));
  EXPECT_FALSE(StatusPage::start({.host = "0.0.0.0", .port = 0, .path = {}}, running.board, *running.server));
}

TEST(Server, IdleConnectionsDoNotDelayTheStatusPage) {
  const Running running;
  auto page =
      StatusPage::start({.host = "127.0.0.1", .port = 0, .path = {}}, running.board, *running.server, std::chrono::hours(1));
  ASSERT_TRUE(page);
  const Deadline until = Clock::now() + std::chrono::seconds(60);
  auto idle = Socket::connect((*page)->address(), until), client = Socket::connect((*page)->address(), until);
  ASSERT_TRUE(idle && client);
  const std::string request = "GET /status.json HTTP/1.1\r\n\r\n";
  ASSERT_TRUE(client->send(std::as_bytes(std::span(request).first(10)), until));
  ASSERT_TRUE(client->send(std::as_bytes(std::span(request).subspan(10)), until));
  std::byte reply[32];
  const auto received = client->receive(reply, until);
  ASSERT_TRUE(received && *received > 0) << "the page waits for the idle connection";
}

}  // namespace
}  // namespace orknn::server
