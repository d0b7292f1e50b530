// Long lists on the wire: all of an answer arrives whichever way it goes, one that is cut is seen to be, and a client
// that leaves in the middle leaves nothing behind.
#include "wire/cluster_fixture.h"
#include "wire/gzip_text.h"
#include "wire/http2_client.h"
#include "wire/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kConfigMaps = "/api/v1/namespaces/default/configmaps";
const api::UserInfo kAdmin{"admin", "", {"system:masters", "system:authenticated"}};

/// A client in the same process, which receives whole answers.
class WholeAnswer final : public api::ResponseSink {
 public:
  void on_response(api::Response response) override { arrived.put(std::move(response)); }

  void on_stream(api::Response) override { ADD_FAILURE() << "an answer that goes on"; }

  bool write(std::shared_ptr<const std::string>) override { return false; }

  void on_end() override {}

  Mailbox<api::Response> arrived;
};

api::Response ask_within(Cluster& cluster, api::Method method, const std::string& target, std::string body = {}) {
  auto sink = std::make_shared<WholeAnswer>();
  cluster.loops.run([&] {
    api::HeaderList headers;
    if (!body.empty()) headers.emplace_back("content-type", "application/json");
    cluster.endpoint->on_request({.request = {method, target, std::move(headers), std::move(body)},
                                  .user = std::make_shared<const api::UserInfo>(kAdmin)},
                                 sink);
  });
  return sink->arrived.take();
}

/// Creates ConfigMaps of this size with different contents.
void fill(Cluster& cluster, int count, std::size_t bytes) {
  for (int i = 0; i < count; ++i) {
    std::string text;
    while (text.size() < bytes) text += fmt::format("{}-{};", i, text.size() * 7919 % 10007);
    const std::string object = fmt::format(R"({{"metadata":{{"name":"m{}"}},"data":{{"k":"{}"}}}})", i, text);
    ASSERT_EQ(ask_within(cluster, api::Method::kPost, kConfigMaps, object).status, 201);
  }
}

/// 1.5 MB: several pieces.
void fill_some(Cluster& cluster) {
  fill(cluster, 300, 5'000);
}

std::string whole_list(Cluster& cluster) {
  const api::Response answer = ask_within(cluster, api::Method::kGet, kConfigMaps);
  EXPECT_EQ(answer.status, 200);
  EXPECT_GT(answer.body.size(), 1'000'000U);
  return answer.body;
}

TEST(LongLists, ArriveInChunks) {
  Cluster cluster;
  fill_some(cluster);
  const std::string whole = whole_list(cluster);
  TestClient client(cluster.http->port());
  for (int i = 0; i < 2; ++i) {  // and the connection continues
    client.send(get(kConfigMaps));
    const api::Response answer = client.answer();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("transfer-encoding"), "chunked");
    EXPECT_TRUE(answer.body == whole) << answer.body.size() << " bytes for " << whole.size();
  }
}

TEST(LongLists, ArriveCompressed) {
  Cluster cluster;
  fill_some(cluster);
  const std::string whole = whole_list(cluster);
  TestClient client(cluster.http->port());
  client.send(get(kConfigMaps, "Accept-Encoding: gzip\r\n"));
  const api::Response answer = client.answer();
  EXPECT_EQ(answer.header("transfer-encoding"), "chunked");
  EXPECT_EQ(answer.header("content-encoding"), "gzip");
  EXPECT_LT(answer.body.size(), whole.size() / 2);
  EXPECT_TRUE(gunzip(answer.body) == whole);
}

TEST(LongLists, ArriveOverHttp2) {
  const Trust trust;
  Cluster cluster(trust.serving());
  fill_some(cluster);
  const std::string whole = whole_list(cluster);
  Http2Client client(cluster.http->port(), *trust.client);
  ASSERT_EQ(client.protocol(), "h2");
  const std::int32_t plain = client.ask("GET", kConfigMaps);
  const std::int32_t packed = client.ask("GET", kConfigMaps, {{"accept-encoding", "gzip"}});
  EXPECT_EQ(client.answer(plain).code, 0U);
  EXPECT_EQ(client.answer(plain).fields.count("content-length"), 0U);
  EXPECT_TRUE(client.answer(plain).body == whole);
  EXPECT_EQ(client.answer(packed).code, 0U);
  EXPECT_EQ(client.answer(packed).fields["content-encoding"], "gzip");
  EXPECT_TRUE(gunzip(client.answer(packed).body) == whole);
}

TEST(LongLists, EndWithTheConnectionInHttp10) {
  Cluster cluster;
  fill_some(cluster);
  const std::string whole = whole_list(cluster);
  TestClient client(cluster.http->port());
  client.send("GET " + kConfigMaps + " HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
  const api::Response answer = client.answer();
  EXPECT_EQ(answer.header("transfer-encoding"), "");
  EXPECT_EQ(answer.header("content-encoding"), "");
  EXPECT_TRUE(answer.body == whole) << answer.body.size() << " bytes for " << whole.size();
  EXPECT_EQ(client.problem(), "") << "not the end, but a failure";
}

/// Begins an answer, and cuts it.
void begin_and_cut(ServerRoom& room) {
  room.run([&] {
    room.handler.on("/list", [](ScriptedHandler::Seen& seen) {
      api::PacedSink& sink = *api::paced(*seen.sink);
      sink.on_pieces({200, {{"Content-Type", "application/json"}}, {}});
      EXPECT_TRUE(sink.write(shared(R"({"items":[)")));
      sink.on_cut();
    });
  });
}

TEST(LongLists, ACutIsNoEnd) {
  ServerRoom room;
  begin_and_cut(room);
  TestClient client(room.port);
  client.send(get("/list"));
  client.drain();
  EXPECT_THAT(client.received, Not(HasSubstr("\r\n0\r\n")));
}

TEST(LongLists, ACutIsAFailureInHttp10) {
  ServerRoom room;
  begin_and_cut(room);
  TestClient client(room.port);
  client.send("GET /list HTTP/1.0\r\n\r\n");
  client.drain();
  EXPECT_THAT(client.problem(), HasSubstr("reset"));
  TestClient next(room.port);
  next.send("GET /other HTTP/1.0\r\n\r\n");
  next.drain();
  EXPECT_EQ(next.problem(), "");
}

TEST(LongLists, ACutResetsAStream) {
  const Trust trust;
  ServerRoom room(trust.serving());
  begin_and_cut(room);
  Http2Client client(room.port, *trust.client);
  const Http2Client::Got& cut = client.get("/list");
  EXPECT_TRUE(cut.closed);
  EXPECT_EQ(cut.code, std::uint32_t{NGHTTP2_INTERNAL_ERROR});
  EXPECT_EQ(client.get("/other").status, 200) << "the others go on";
}

/// Lists of 16 MB, of which a client has not taken all.
class LeftLists : public ::testing::Test {
 protected:
  LeftLists() : cluster_(trust_.serving()) {
    fill(cluster_, 40, 400'000);
    before_ = in_flight();
  }

  std::size_t in_flight() {
    return cluster_.loops.run([&] { return cluster_.server->in_flight(); });
  }

  bool waits(std::string_view bytes) {
    return cluster_.metrics.text().find(fmt::format("\nspillway_http_waiting_bytes {}\n", bytes)) != std::string::npos;
  }

  template <typename Condition>
  static bool happens(const Condition& condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::yield();
    }
    return true;
  }

  void expect_held() {
    EXPECT_EQ(in_flight(), before_ + 1);
    EXPECT_TRUE(happens([&] { return !waits("0"); })) << "all has left";
  }

  void expect_freed() {
    EXPECT_TRUE(happens([&] { return in_flight() == before_; }));
    EXPECT_TRUE(happens([&] { return waits("0"); })) << cluster_.metrics.text();
  }

  Trust trust_;
  Cluster cluster_;
  std::size_t before_ = 0;
};

TEST_F(LeftLists, AreLetGoWithTheConnection) {
  {
    const auto http11 = TlsContext::make_client({.authority_pem = trust_.authority_pem, .identity = {}});
    TestClient client(cluster_.http->port(), http11->get());
    client.send(get(kConfigMaps));
    ASSERT_TRUE(client.receive_until(R"("items":[)"));
    expect_held();
  }
  expect_freed();
}

TEST_F(LeftLists, AreLetGoWithTheStream) {
  Http2Client client(cluster_.http->port(), *trust_.client);
  const std::int32_t list = client.ask("GET", kConfigMaps);
  client.hold(list);
  client.body_of(list, 1'000);
  expect_held();
  client.reset(list);
  client.ping_and_wait();
  expect_freed();
  EXPECT_EQ(client.get("/readyz").status, 200) << "the connection goes on";
}

}  // namespace
}  // namespace spillway::wire
