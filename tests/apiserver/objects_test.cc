// Create, get, update, patch and delete through the engine.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

std::string map_path(const std::string& name) {
  return std::string(kMaps) + "/" + name;
}

TEST(Objects, CreateSetsServerMetadataAndIgnoresTheClients) {
  TestServer server;
  const Answer made = server.post(
      kMaps,
      R"({"metadata":{"name":"a","uid":"x","creationTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":5},"data":{"k":"v"}})");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(made.string_at({"kind"}), "ConfigMap");
  EXPECT_EQ(made.string_at({"apiVersion"}), "v1");
  EXPECT_EQ(made.string_at({"metadata", "namespace"}), "default");
  EXPECT_EQ(made.string_at({"metadata", "uid"}).size(), 36U);
  EXPECT_EQ(made.string_at({"metadata", "creationTimestamp"}), "2026-01-01T00:00:00Z");
  EXPECT_EQ(made.body.at({"metadata", "deletionGracePeriodSeconds"}), nullptr);
  EXPECT_EQ(server.get(map_path("a")).text, made.text);
}

TEST(Objects, CreatingTwiceIsAlreadyExists) {
  TestServer server;
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  const Answer again = server.post(kMaps, R"({"metadata":{"name":"a"}})");
  EXPECT_EQ(again.code, 409);
  EXPECT_EQ(again.string_at({"reason"}), "AlreadyExists");
  EXPECT_EQ(again.string_at({"message"}), "configmaps \"a\" already exists");
}

TEST(Objects, PutWithAStaleVersionConflicts) {
  TestServer server;
  const Answer made = server.post(kMaps, R"({"metadata":{"name":"a"},"data":{"k":"1"}})");
  api::Json document = made.body;
  document.make({"data", "k"}) = "2";
  ASSERT_EQ(server.put(map_path("a"), api::to_text(document)).code, 200);
  document.make({"data", "k"}) = "3";
  const Answer stale = server.put(map_path("a"), api::to_text(document));
  EXPECT_EQ(stale.code, 409);
  EXPECT_EQ(stale.string_at({"reason"}), "Conflict");
  EXPECT_EQ(server.get(map_path("a")).string_at({"data", "k"}), "2");
}

TEST(Objects, AnUpdateThatChangesNothingWritesNothing) {
  TestServer server;
  const Answer made = server.post(kMaps, R"({"metadata":{"name":"a"},"data":{"k":"1"}})");
  const std::string version = made.string_at({"metadata", "resourceVersion"});
  EXPECT_EQ(server.put(map_path("a"), made.text).string_at({"metadata", "resourceVersion"}), version);
  EXPECT_EQ(server.merge(map_path("a"), R"({"data":{"k":"1"}})").string_at({"metadata", "resourceVersion"}), version);
  EXPECT_EQ(server.strategic(map_path("a"), "{}").string_at({"metadata", "resourceVersion"}), version);
}

TEST(Objects, DeleteAnswersStatusAndIsGone) {
  TestServer server;
  const Answer made = server.post(kMaps, R"({"metadata":{"name":"a"}})");
  const Answer gone = server.remove(map_path("a"));
  EXPECT_EQ(gone.code, 200);
  EXPECT_EQ(gone.string_at({"status"}), "Success");
  EXPECT_EQ(gone.string_at({"details", "uid"}), made.string_at({"metadata", "uid"}));
  EXPECT_EQ(server.get(map_path("a")).code, 404);
  EXPECT_EQ(server.remove(map_path("a")).code, 404);
}

TEST(Objects, FinalizersHoldADeletionBack) {
  TestServer server;
  server.post(kMaps, R"({"metadata":{"name":"a","finalizers":["x.io/f"]}})");
  EXPECT_NE(server.remove(map_path("a")).string_at({"metadata", "deletionTimestamp"}), "");
  EXPECT_EQ(server.merge(map_path("a"), R"({"metadata":{"finalizers":["x.io/f","x.io/g"]}})").code, 422);
  EXPECT_EQ(server.post(kMaps, R"({"metadata":{"name":"a"}})").code, 409);
  EXPECT_EQ(server.merge(map_path("a"), R"({"metadata":{"finalizers":null}})").code, 200);
  EXPECT_EQ(server.get(map_path("a")).code, 404);
}

TEST(Objects, PatchesOfDifferentKeysNeverConflict) {
  TestServer server;
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  // Sent together: all see the same version, and all but one conflict and are retried.
  std::vector<std::shared_ptr<TestSink>> sinks;
  for (int i = 0; i < 30; ++i) {
    sinks.push_back(std::make_shared<TestSink>());
    server.server().handle({api::Method::kPatch,
                            map_path("a"),
                            {{"content-type", "application/merge-patch+json"}},
                            "{\"data\":{\"k" + std::to_string(i) + "\":\"v\"}}"},
                           server.user, sinks.back(), server.now());
  }
  server.run_until_idle();
  for (const auto& sink : sinks) EXPECT_EQ(sink->response->status, 200);
  EXPECT_EQ(server.get(map_path("a")).body.find("data")->if_object()->size(), 30U);
}

TEST(Objects, DryRunStoresNothing) {
  TestServer server;
  EXPECT_EQ(server.post(std::string(kMaps) + "?dryRun=All", R"({"metadata":{"name":"a"}})").code, 201);
  EXPECT_EQ(server.get(map_path("a")).code, 404);
  EXPECT_EQ(server.post(std::string(kMaps) + "?dryRun=yes", R"({"metadata":{"name":"a"}})").code, 422);
}

}  // namespace

}  // namespace spillway::apiserver
