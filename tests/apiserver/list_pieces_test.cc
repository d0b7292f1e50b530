// Lists that go out in pieces: the bytes are those of the whole answer, one revision is shown, and a client that takes
// nothing costs little and not for long.
#include "api/exchange/paced_sink.h"
#include "apiserver/server_fixture.h"
#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace spillway::apiserver {
namespace {

constexpr std::size_t kMebibyte = 1U << 20U;

/// Takes pieces as an HTTP connection does; its client reads when the test says so, or at once.
class PiecesSink final : public api::PacedSink {
 public:
  void on_response(api::Response answer) override { response = std::move(answer); }

  void on_stream(api::Response answer) override { head = std::move(answer); }

  void on_pieces(api::Response answer) override {
    head = std::move(answer);
    in_pieces = true;
  }

  bool write(std::shared_ptr<const std::string> chunk) override {
    if (full) return false;
    largest = std::max(largest, chunk->size());
    ++pieces;
    text += *chunk;
    if (!reads) waiting += chunk->size();
    most_waiting = std::max(most_waiting, waiting);
    return true;
  }

  void on_end() override { ended = true; }

  void on_cut() override { was_cut = true; }

  std::size_t waiting_bytes() const override { return waiting; }

  bool takes_pieces() const override { return true; }

  void when_below(std::size_t bytes, std::function<void()> act) override {
    if (waiting <= bytes) return act();
    below = bytes;
    room = std::move(act);
  }

  /// The client takes all that waits.
  void read() {
    waiting = 0;
    if (const auto act = std::exchange(room, nullptr)) act();
  }

  /// The answer's body, whole or from its pieces.
  const std::string& body() const { return response ? response->body : text; }

  bool done() const { return response.has_value() || ended; }

  std::optional<api::Response> response;
  api::Response head;
  std::string text;
  std::size_t pieces = 0;
  std::size_t largest = 0;
  std::size_t waiting = 0;
  std::size_t most_waiting = 0;
  std::size_t below = 0;
  std::function<void()> room;
  bool reads = true;
  bool full = false;
  bool in_pieces = false;
  bool ended = false;
  bool was_cut = false;
};

const std::string kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";
const std::string kPartial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const std::string kProtobuf = "application/vnd.kubernetes.protobuf";
const std::string kPartialProtobuf = kProtobuf + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

struct Asked {
  RequestId id{};
  std::shared_ptr<PiecesSink> sink;
};

/// Sends a request, and runs the turn that takes it.
Asked ask(TestServer& server, std::string target, const std::string& accept, bool reads = true) {
  auto sink = std::make_shared<PiecesSink>();
  sink->reads = reads;
  api::HeaderList headers;
  if (!accept.empty()) headers.emplace_back("accept", accept);
  const RequestId id = server.server().handle({api::Method::kGet, std::move(target), std::move(headers), {}},
                                              server.user, sink, server.now());
  return {id, std::move(sink)};
}

std::string map_text(const std::string& name, std::size_t bytes, const std::string& app) {
  return R"({"metadata":{"name":")" + name + R"(","labels":{"app":")" + app +
         R"("},"annotations":{"a":"}\"]{"}},"data":{"k":")" + std::string(bytes, 'x') + "\"}}";
}

void put_map(TestServer& server, const std::string& name, std::size_t bytes, const std::string& app = "a") {
  const std::string text = map_text(name, bytes, app);
  if (server.put(kMaps + "/" + name, text).code == 404) server.post(kMaps, text);
}

/// Creates more objects than fit into one piece.
void fill(TestServer& server, int count = 600, std::size_t bytes = 4'000) {
  for (int i = 0; i < count; ++i) server.post(kMaps, map_text("m" + std::to_string(i), bytes, i % 3 == 0 ? "a" : "b"));
}

TEST(ListPieces, AreTheBytesOfTheWholeAnswer) {
  TestServer server;
  Rng rng(7);
  for (int i = 0; i < 400; ++i) {
    const std::size_t bytes = rng.below(10) == 0 ? rng.below(40'000) : rng.below(2'000);
    put_map(server, "m" + std::to_string(rng.below(1'000)), bytes, rng.below(2) == 0 ? "a" : "b");
  }
  std::size_t in_pieces = 0;
  const std::vector<std::string> forms{"", kTable, kPartial, kProtobuf, kPartialProtobuf};
  const std::vector<std::string> queries{"",
                                         "?labelSelector=app%3Da",
                                         "?labelSelector=app%3Dnone",
                                         "?limit=1",
                                         "?limit=250",
                                         "?limit=100&labelSelector=app%3Db",
                                         "?pretty=1",
                                         "?limit=3&pretty=1",
                                         "?fieldSelector=metadata.name%3Dm1"};
  for (const std::string& path :
       {kMaps, std::string("/api/v1/configmaps"), std::string("/api/v1/namespaces/none/configmaps")}) {
    for (const std::string& query : queries) {
      for (const std::string& accept : forms) {
        SCOPED_TRACE(path + query + " " + accept);
        const Asked asked = ask(server, path + query, accept);
        server.run_until_idle();
        ASSERT_TRUE(asked.sink->done());
        const Answer whole = server.get(path + query, accept);
        ASSERT_EQ(asked.sink->body(), whole.text);
        if (query.find("pretty") == std::string::npos) {
          EXPECT_EQ(asked.sink->in_pieces, whole.text.size() > 128U << 10U);
        }
        in_pieces += asked.sink->in_pieces ? 1 : 0;
      }
    }
  }
  EXPECT_GT(in_pieces, 10U);
}

TEST(ListPieces, ShowOneRevisionWhileWritesGoOn) {
  TestServer server;
  fill(server);
  Rng rng(11);
  for (const std::string& accept : {std::string(), kPartial, kProtobuf, kTable}) {
    for (const std::string& query : {std::string(), std::string("?limit=550"), std::string("?labelSelector=app%3Da")}) {
      SCOPED_TRACE(query + " " + accept);
      const std::string before = server.get(kMaps + query, accept).text;
      const Asked asked = ask(server, kMaps + query, accept, false);
      for (int round = 0; round < 60 && !asked.sink->done(); ++round) {
        const std::string name = "m" + std::to_string(rng.below(700));
        if (rng.below(3) == 0) {
          server.call(api::Method::kDelete, kMaps + "/" + name, "");
        } else {
          put_map(server, name, rng.below(4'000), rng.below(2) == 0 ? "a" : "b");
        }
        asked.sink->read();
        server.run_until_idle();
      }
      ASSERT_TRUE(asked.sink->done());
      EXPECT_EQ(asked.sink->body(), before);
    }
  }
}

/// Pages of one list show the objects at its beginning, whatever was written since.
TEST(ListPieces, PagesShowTheRevisionOfTheFirst) {
  TestServer server;
  fill(server, 300, 10);
  const api::Json all = server.get(kMaps).body;
  Rng rng(3);
  api::Json::Array items;
  std::string token;
  do {
    const Asked asked = ask(server, kMaps + "?limit=37" + (token.empty() ? "" : "&continue=" + token), "");
    server.run_until_idle();
    const api::Json page = api::parse_json(asked.sink->body()).value();
    for (const api::Json& item : *page.find("items")->if_array()) items.push_back(item);
    token = api::percent_encode(page.string_at({"metadata", "continue"}));
    for (int i = 0; i < 30; ++i) {
      const std::string name = "m" + std::to_string(rng.below(400));
      if (rng.below(2) == 0) {
        server.call(api::Method::kDelete, kMaps + "/" + name, "");
      } else {
        put_map(server, name, rng.below(100));
      }
    }
  } while (!token.empty());
  EXPECT_EQ(*all.find("items"), api::Json(std::move(items)));
}

TEST(ListPieces, AClientThatTakesNothingHasOneMebibyteWaiting) {
  TestServer server;
  fill(server);
  const Asked asked = ask(server, kMaps, "", false);
  server.run_until_idle();
  EXPECT_FALSE(asked.sink->done());
  EXPECT_GE(asked.sink->waiting, kMebibyte);
  EXPECT_LT(asked.sink->most_waiting, kMebibyte + (kMebibyte / 2));
  EXPECT_LE(asked.sink->largest, (256U << 10U) + 8'000);
  asked.sink->read();
  server.run_until_idle();
  EXPECT_GT(asked.sink->text.size(), kMebibyte * 2) << "it goes on once there is room";
}

TEST(ListPieces, WhoTakesTooLongIsCut) {
  TestServer server;
  fill(server);
  const Asked asked = ask(server, kMaps, "", false);
  server.run_until_idle();
  server.advance(seconds(61));
  EXPECT_TRUE(asked.sink->was_cut);
  EXPECT_FALSE(asked.sink->ended);
  EXPECT_FALSE(asked.sink->response.has_value()) << "no second answer";
}

TEST(ListPieces, ADisconnectedClientGivesItsPlaceBack) {
  TestServer server;
  fill(server);
  std::vector<Asked> asked;
  for (int i = 0; i < 17; ++i) asked.push_back(ask(server, kMaps, "", false));
  server.run_until_idle();
  EXPECT_GT(asked[15].sink->pieces, 0U);
  EXPECT_EQ(asked[16].sink->pieces, 0U) << "one client has sixteen places";
  server.server().abandon(asked[3].id);
  server.run_until_idle();
  EXPECT_GT(asked[16].sink->pieces, 0U);
}

TEST(ListPieces, WhereOthersWaitTheSlowestIsCutAfterFiveSeconds) {
  TestServer server;
  fill(server);
  std::vector<Asked> asked;
  for (int i = 0; i < 16; ++i) {
    asked.push_back(ask(server, kMaps, "", false));
    server.run_until_idle();
    server.advance(milliseconds(10));
  }
  asked[0].sink->read();  // no longer the longest waiting one
  server.run_until_idle();
  const Asked late = ask(server, kMaps, "");
  server.run_until_idle();
  EXPECT_FALSE(late.sink->done());
  server.advance(seconds(4));
  EXPECT_FALSE(late.sink->done());
  server.advance(seconds(2));
  EXPECT_TRUE(asked[1].sink->was_cut);
  EXPECT_FALSE(asked[0].sink->was_cut);
  EXPECT_FALSE(asked[2].sink->was_cut);
  EXPECT_TRUE(late.sink->done());
}

TEST(ListPieces, AConnectionThatIsFullCutsTheList) {
  TestServer server;
  fill(server);
  const Asked asked = ask(server, kMaps, "", false);
  asked.sink->full = true;
  asked.sink->read();
  server.run_until_idle();
  EXPECT_TRUE(asked.sink->was_cut);
}

TEST(ListPieces, ErrorsAreAnsweredBeforeAnything) {
  TestServer server;
  fill(server);
  for (const std::string& query :
       {std::string("?labelSelector=!!"), std::string("?fieldSelector=x%3Dy"), std::string("?continue=nonsense"),
        std::string("?limit=x"), std::string("?resourceVersion=999999")}) {
    const Asked asked = ask(server, kMaps + query, "");
    server.run_until_idle();
    server.advance(seconds(4));
    ASSERT_TRUE(asked.sink->response.has_value()) << query;
    EXPECT_GE(asked.sink->response->status, 400) << query;
    EXPECT_FALSE(asked.sink->in_pieces);
  }
}

/// The initial events of a watch keep pace with its client, and are complete.
TEST(ListPieces, TheStartOfAWatchKeepsPace) {
  TestServer server;
  fill(server);
  const Asked asked =
      ask(server, kMaps + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
          "", false);
  server.run_until_idle();
  EXPECT_LT(asked.sink->most_waiting, kMebibyte + (kMebibyte / 2));
  put_map(server, "m5", 10, "changed");
  put_map(server, "new", 10);
  for (int i = 0; i < 20; ++i) {
    asked.sink->read();
    server.run_until_idle();
  }
  const std::string& text = asked.sink->text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 600 + 1 + 2);
  const std::size_t marker = text.find("initial-events-end");
  ASSERT_NE(marker, std::string::npos);
  EXPECT_GT(text.find("\"changed\""), marker) << "the state is that of one revision; what came later comes behind it";
  EXPECT_NE(text.find("\"name\":\"new\""), std::string::npos);
}

TEST(ListPieces, AWatchWhoseStartIsNotTakenEnds) {
  TestServer server;
  fill(server);
  const Asked asked = ask(server, kMaps + "?watch=1", "", false);
  server.run_until_idle();
  server.advance(seconds(59));
  EXPECT_FALSE(asked.sink->ended);
  server.advance(seconds(2));
  EXPECT_TRUE(asked.sink->ended);
}

TEST(ListPieces, AWatchTenSecondsBehindEnds) {
  TestServer server;
  const Asked slow = ask(server, kMaps + "?watch=1", "", false);
  const Asked quick = ask(server, kMaps + "?watch=1", "", false);
  const Asked idle = ask(server, kMaps + "?watch=1&fieldSelector=metadata.name%3Dother", "", false);
  server.run_until_idle();
  for (int i = 0; i < 25; ++i) {
    put_map(server, "m" + std::to_string(i), 10);
    server.run_until_idle();
    quick.sink->read();
    server.advance(seconds(1));
    EXPECT_EQ(slow.sink->ended, i > 10) << i;
  }
  EXPECT_FALSE(quick.sink->ended);
  EXPECT_FALSE(idle.sink->ended);
}

TEST(ListPieces, AWatchWithFourMebibytesWaitingEnds) {
  TestServer server;
  const Asked slow = ask(server, kMaps + "?watch=1", "", false);
  server.run_until_idle();
  for (int i = 0; i < 50; ++i) {
    put_map(server, "m" + std::to_string(i), 100'000);
    EXPECT_EQ(slow.sink->ended, i > 40) << i;
    if (slow.sink->ended != (i > 40)) break;
  }
  EXPECT_LE(slow.sink->most_waiting, 4 * kMebibyte);
}

}  // namespace
}  // namespace spillway::apiserver
