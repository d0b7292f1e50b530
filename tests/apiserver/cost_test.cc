// Limits of one request: causes, values, answers. Counts, not times.
#include "api/exchange/status.h"
#include "api/json/document_bounds.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

const std::string kPods = "/api/v1/namespaces/default/pods";

std::string many(std::size_t count, std::string_view one) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) out += ',';
    out += one;
  }
  return out;
}

std::string pod_of(std::size_t containers) {
  return R"({"metadata":{"name":"p"},"spec":{"containers":[)" + many(containers, "{}") + "]}}";
}

TEST(Cost, AMillionEmptyContainersAreRefusedBeforeTheyAreValidated) {
  TestServer server;
  const Answer answer = server.post(kPods, pod_of(950'000));
  EXPECT_EQ(answer.code, 413);
  EXPECT_LT(answer.text.size(), 1U << 10U);
}

TEST(Cost, AMillionEmptyContainersAsProtobuf) {
  TestServer server;
  // Unknown{typeMeta{v1, Pod}, raw = Pod{spec{containers…}}}, each container two bytes.
  std::string spec;
  for (int i = 0; i < 1'000'000; ++i) spec += std::string("\x12\x00", 2);
  const auto field = [](char tag, const std::string& bytes) {
    std::string out(1, tag);
    std::size_t size = bytes.size();
    for (; size >= 0x80; size >>= 7) out += static_cast<char>(static_cast<unsigned char>(size | 0x80));
    return out + static_cast<char>(size) + bytes;
  };
  const std::string body = std::string("k8s\0", 4) + field('\x0a', field('\x0a', "v1") + field('\x12', "Pod")) +
                           field('\x12', field('\x12', spec));
  const Answer answer =
      server.call(api::Method::kPost, kPods, body, {{"content-type", "application/vnd.kubernetes.protobuf"}});
  EXPECT_EQ(answer.code, 413);
  EXPECT_LT(answer.text.size(), 1U << 10U);
}

TEST(Cost, ErrorsAreListedUpToABound) {
  TestServer server;
  server.post("/api/v1/namespaces/default/serviceaccounts", R"({"metadata":{"name":"default"}})");
  const Answer answer = server.post(kPods, pod_of(1'000));
  EXPECT_EQ(answer.code, 422);
  EXPECT_EQ(answer.body.at({"details", "causes"})->if_array()->size(), api::kCausesMax);
  EXPECT_LT(answer.text.size(), 16U << 10U);
}

TEST(Cost, WarningsOfAnAnswerAreBounded) {
  TestServer server;
  std::string members;
  for (int i = 0; i < 2'000; ++i) members += ",\"unknown" + std::to_string(i) + "\":1";
  const Answer answer =
      server.post("/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"c"})" + members + "}");
  EXPECT_EQ(answer.code, 201);
  std::size_t bytes = 0;
  for (const auto& [name, value] : answer.headers) {
    if (name == "Warning") bytes += value.size();
  }
  EXPECT_GT(bytes, 1'000U);
  EXPECT_LT(bytes, 8U << 10U);
}

/// Warnings that are too long together are all sent, each in part.
TEST(Cost, LongWarningsAreCut) {
  TestServer server;
  std::string members;
  for (int i = 0; i < 10; ++i) members += ",\"" + std::to_string(i) + std::string(800, 'x') + "\":1";
  const Answer answer =
      server.post("/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"c"})" + members + "}");
  EXPECT_EQ(answer.code, 201);
  int reported = 0;
  for (const auto& [name, value] : answer.headers) {
    if (name != "Warning") continue;
    EXPECT_TRUE(value.starts_with("299 - \"unknown field \\\"" + std::to_string(reported++))) << value;
    EXPECT_TRUE(value.ends_with("xxx...\"")) << value;
    EXPECT_LT(value.size(), 300U);
  }
  EXPECT_EQ(reported, 10);
}

constexpr int kMapCount = 600;

/// Config maps of 4 KiB; the last one by name is "z".
void fill(TestServer& server) {
  const std::string text(4'000, 'x');
  const auto create = [&](const std::string& name) {
    server.post(kMaps, R"({"metadata":{"name":")" + name + R"("},"data":{"k":")" + text + "\"}}");
  };
  for (int i = 1; i < kMapCount; ++i) create("m" + std::to_string(i));
  create("z");
}

/// As send(), but only the turn that takes the request has run.
std::shared_ptr<TestSink> begin(TestServer& server, std::string target, std::string accept = {}) {
  auto sink = std::make_shared<TestSink>();
  api::HeaderList headers;
  if (!accept.empty()) headers.emplace_back("accept", std::move(accept));
  server.server().handle({api::Method::kGet, std::move(target), std::move(headers), {}}, server.user, sink,
                         server.now());
  return sink;
}

api::Json body_of(const TestSink& sink) {
  return api::parse_json(sink.response->body).value();
}

TEST(Slices, ALongListIsWrittenInSlicesAndShowsOneRevision) {
  TestServer server;
  fill(server);
  const auto list = begin(server, kMaps);
  EXPECT_FALSE(list->answered()) << "600 objects of 4 KiB are more than a slice";
  const Answer changed = server.put(kMaps + "/z", R"({"metadata":{"name":"z"},"data":{"k":"changed"}})");
  server.run_until_idle();
  ASSERT_TRUE(list->answered());
  const api::Json shown = body_of(*list);
  const api::Json::Array& items = *shown.find("items")->if_array();
  ASSERT_EQ(items.size(), static_cast<std::size_t>(kMapCount));
  EXPECT_EQ(items.back().string_at({"data", "k"}).size(), 4'000U);
  EXPECT_LT(std::stoi(std::string(shown.string_at({"metadata", "resourceVersion"}))),
            std::stoi(changed.string_at({"metadata", "resourceVersion"})));
}

TEST(Slices, ATableCostsMoreSlicesThanACopy) {
  TestServer server;
  fill(server);
  server.slices = 0;
  server.get(kMaps);
  const int copied = std::exchange(server.slices, 0);
  const Answer table = server.get(kMaps, "application/json;as=Table;v=v1;g=meta.k8s.io");
  EXPECT_EQ(table.body.find("rows")->if_array()->size(), static_cast<std::size_t>(kMapCount));
  EXPECT_GT(copied, 2);
  EXPECT_GT(server.slices, 4 * copied);
}

TEST(Slices, AShortListDoesNotWaitForALongOne) {
  TestServer server;
  fill(server);
  const auto table = begin(server, kMaps, "application/json;as=Table;v=v1;g=meta.k8s.io");
  const auto small = begin(server, "/api/v1/namespaces");
  EXPECT_FALSE(table->answered());
  for (int wake_ups = 0; !small->answered() && wake_ups < 3; ++wake_ups) server.server().on_wakeup(server.now());
  EXPECT_TRUE(small->answered());
  EXPECT_FALSE(table->answered());
  server.run_until_idle();
  EXPECT_TRUE(table->answered());
}

TEST(Slices, WhoHasLeftIsNotWrittenFor) {
  TestServer server;
  fill(server);
  auto sink = std::make_shared<TestSink>();
  const RequestId id = server.server().handle({api::Method::kGet, kMaps, {}, {}}, server.user, sink, server.now());
  server.server().abandon(id);
  server.slices = 0;
  server.run_until_idle();
  EXPECT_LE(server.slices, 1);
  EXPECT_FALSE(sink->answered());
}

TEST(Slices, LongListsWaitForEachOther) {
  TestServer server;
  const std::string text(500, 'x');
  for (int i = 0; i < 1'001; ++i) {
    server.post(kMaps, R"({"metadata":{"name":"m)" + std::to_string(i) + R"("},"data":{"k":")" + text + "\"}}");
  }
  std::vector<std::shared_ptr<TestSink>> lists;
  for (int i = 0; i < 40; ++i) lists.push_back(begin(server, kMaps));
  server.run_until_idle();
  for (const auto& list : lists) {
    ASSERT_TRUE(list->answered());
    EXPECT_EQ(list->response->status, 200);
  }
  EXPECT_EQ(body_of(*lists.back()).find("items")->if_array()->size(), 1'001U);
}

TEST(Slices, AWatchStartsInSlicesAndMissesNothing) {
  TestServer server;
  fill(server);
  const auto watch = begin(server, kMaps +
                                       "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
                                       "allowWatchBookmarks=true");
  EXPECT_LT(watch->events().size(), static_cast<std::size_t>(kMapCount));
  server.put(kMaps + "/z", R"({"metadata":{"name":"z"},"data":{"k":"changed"}})");
  server.remove(kMaps + "/m1");
  server.run_until_idle();
  const std::vector<api::Json> events = watch->events();
  ASSERT_EQ(events.size(), kMapCount + 3U);  // the bookmark, then the changes made meanwhile
  EXPECT_EQ(events[kMapCount].string_at({"type"}), "BOOKMARK");
  EXPECT_EQ(events[kMapCount + 1U].string_at({"type"}), "MODIFIED");
  EXPECT_EQ(events[kMapCount + 1U].string_at({"object", "metadata", "name"}), "z");
  EXPECT_EQ(events[kMapCount + 2U].string_at({"type"}), "DELETED");
  server.put(kMaps + "/z", R"({"metadata":{"name":"z"},"data":{"k":"again"}})");
  EXPECT_EQ(watch->events().size(), kMapCount + 4U) << "caught up";
}

TEST(Slices, DeletingACollectionAnswersWithAllOfIt) {
  TestServer server;
  fill(server);
  const Answer gone = server.remove(kMaps);
  EXPECT_EQ(gone.code, 200);
  EXPECT_EQ(gone.body.find("items")->if_array()->size(), static_cast<std::size_t>(kMapCount));
}

}  // namespace

}  // namespace spillway::apiserver
