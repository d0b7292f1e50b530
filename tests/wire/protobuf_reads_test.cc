// Reads of our own clients in protobuf, and their way with servers that cannot answer so.
#include "api/schema/protobuf.h"
#include "api/schema/protobuf_writer.h"
#include "client/api_client.h"
#include "wire/transport_engine.h"
#include "wire/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using client::OpenWatch;

/// The accept header of each request in turn.
void answers_in_protobuf(ServerRoom& room, std::vector<std::string>& accepted, const api::Json& object,
                         const std::string& watched) {
  room.run([&] {
    room.handler.on("/api/v1/namespaces/default/configmaps/a", [&, object](ScriptedHandler::Seen& seen) {
      accepted.emplace_back(seen.request.header("accept"));
      const api::Type& type = *api::protobuf_type("v1", object.string_at({"kind"}));
      const int status = object.string_at({"kind"}) == "Status" ? 403 : 200;
      seen.sink->on_response({.status = status,
                              .headers = {{"Content-Type", std::string(api::kProtobufContentType)}},
                              .body = api::write_protobuf(type, object),
                              .document = {}});
    });
    room.handler.on("/api/v1/configmaps", [&, watched](ScriptedHandler::Seen& seen) {
      accepted.emplace_back(seen.request.header("accept"));
      const std::string kind =
          accepted.back() == "application/json" ? "application/json" : std::string(api::kProtobufStreamType);
      seen.sink->on_stream({.status = 200, .headers = {{"Content-Type", kind}}, .body = {}, .document = {}});
      for (const char byte : watched) EXPECT_TRUE(seen.sink->write(shared(std::string(1, byte))));
      seen.sink->on_end();
    });
  });
}

api::Request read_of(std::string target) {
  api::Request request = request_of(std::move(target));
  request.headers = {{"accept", "application/json"}};
  return request;
}

const std::string kBoth = "application/vnd.kubernetes.protobuf, application/json";
const std::string kOneMap = "/api/v1/namespaces/default/configmaps/a";

using ProtobufReads = OverEach;

INSTANTIATE_TEST_SUITE_P(Protocols, ProtobufReads, over_each(), over_name);

TEST_P(ProtobufReads, ReadsAreInProtobufAndDeliveredAsDocuments) {
  ServerRoom room(serving());
  const api::Json map =
      api::parse_json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}})").value();
  const std::string bytes = api::write_protobuf(*api::protobuf_type("v1", "ConfigMap"), map);
  std::vector<std::string> accepted;
  answers_in_protobuf(room, accepted, map, api::protobuf_frame("ADDED", bytes) + api::protobuf_frame("DELETED", bytes));
  Engine engine(room.loops, {.endpoint = reach(room.port)});
  const auto answer = engine.call(read_of(kOneMap));
  ASSERT_TRUE(answer && answer->document);
  EXPECT_EQ(api::to_text(*answer->document), api::to_text(map));
  engine.execute(OpenWatch{2000, read_of("/api/v1/configmaps")});
  engine.wait(4);
  for (const auto& [index, type] : {std::pair(1, "ADDED"), std::pair(2, "DELETED")}) {
    const auto& frame = std::get<client::WatchFrame>(engine.log.events.at(static_cast<std::size_t>(index)));
    ASSERT_TRUE(frame.event);
    EXPECT_EQ(frame.event->type, type);
    EXPECT_EQ(api::to_text(*frame.event->object), api::to_text(map));
  }
  EXPECT_FALSE(engine.log.ended(3).error);
  EXPECT_THAT(accepted, ::testing::ElementsAre(kBoth, kBoth));
}

TEST_P(ProtobufReads, ARefusalInProtobufIsReadAsOne) {
  ServerRoom room(serving());
  const api::Json refusal =
      api::parse_json(
          R"({"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"no"})")
          .value();
  std::vector<std::string> accepted;
  answers_in_protobuf(room, accepted, refusal, {});
  Engine engine(room.loops, {.endpoint = reach(room.port)});
  const auto answer = engine.call(read_of(kOneMap));
  ASSERT_TRUE(answer);
  const Error error = client::error_of_answer(answer->status, answer->body);
  EXPECT_EQ(error.code, ErrorCode::kForbidden);
  EXPECT_EQ(error.message, "no");
}

/// A watch that cannot be read, is cut off, or is refused for its form: JSON from then on.
TEST_P(ProtobufReads, AServerThatCannotIsAskedForJson) {
  const api::Json map = api::parse_json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})").value();
  const std::string frame =
      api::protobuf_frame("ADDED", api::write_protobuf(*api::protobuf_type("v1", "ConfigMap"), map));
  for (const std::string& rude : {std::string("\0\0\0\3abc", 7), std::string("\xff\xff\xff\xff", 4),
                                  frame.substr(0, 4) + std::string(frame.size() - 4, 'x')}) {
    ServerRoom room(serving());
    std::vector<std::string> accepted;
    answers_in_protobuf(room, accepted, map, rude);
    Engine engine(room.loops, {.endpoint = reach(room.port)});
    engine.execute(OpenWatch{1, read_of("/api/v1/configmaps")});
    engine.wait(1);
    EXPECT_TRUE(engine.log.ended(0).error);
    EXPECT_TRUE(engine.call(read_of(kOneMap)));
    EXPECT_THAT(accepted, ::testing::ElementsAre(kBoth, "application/json"));
  }
  ServerRoom room(serving());
  std::vector<std::string> accepted;
  room.run([&] {
    room.handler.on("/api/v1/odd", [&](ScriptedHandler::Seen& seen) {
      accepted.emplace_back(seen.request.header("accept"));
      seen.sink->on_response({.status = 406, .headers = {}, .body = {}, .document = {}});
    });
  });
  Engine engine(room.loops, {.endpoint = reach(room.port)});
  EXPECT_EQ(engine.call(read_of("/api/v1/odd"))->status, 406);
  EXPECT_EQ(engine.call(read_of("/api/v1/odd"))->status, 406);
  EXPECT_THAT(accepted, ::testing::ElementsAre(kBoth, "application/json"));
}

TEST(ProtobufWish, OnlyReadsOfTheApiAreInProtobuf) {
  const DecodingWish wish(true);
  const auto accepted = [&](api::Method method, std::string target, std::string accept) {
    api::Request request{method, std::move(target), {{"accept", std::move(accept)}}, {}, {}};
    wish.apply(request);
    return std::string(request.header("accept"));
  };
  EXPECT_EQ(accepted(api::Method::kGet, "/api/v1/pods", "application/json"), kBoth);
  EXPECT_EQ(accepted(api::Method::kPost, "/api/v1/pods", "application/json"), "application/json");
  EXPECT_EQ(accepted(api::Method::kGet, "/configz", "application/json"), "application/json");
  EXPECT_EQ(accepted(api::Method::kGet, "/api/v1/pods", "text/plain"), "text/plain");
}

}  // namespace
}  // namespace spillway::wire
