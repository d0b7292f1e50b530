// Objects of files in the cluster: their order, failures that are tried again, changes of other clients, and files that
// change, with the real API server.
#include "controllers/manifests/manifest_applier.h"

#include "controllers/test_cluster.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::controllers {
namespace {

using api::Json;
const std::string kMapPath = "/api/v1/namespaces/shop/configmaps/settings";

Manifest manifest(const std::string& text, std::string place = "a.yaml") {
  return {std::move(place), api::parse_json(text).value()};
}

Manifest shop() {
  return manifest(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}})");
}

Manifest settings(const std::string& value, std::string place = "a.yaml") {
  return manifest(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"},"data":{"k":")" +
          value + R"("}})",
      std::move(place));
}

/// The applier, which takes the objects of a folder in a step of its own.
class Folder final : public client::ApiEngine {
 public:
  std::string_view name() const override { return applier.name(); }

  void start(Now now) override { applier.start(now); }

  void on_api_event(const client::ApiEvent& event, Now now) override { applier.on_api_event(event, now); }

  void on_wakeup(Now now) override {
    if (read) applier.replace(*std::exchange(read, std::nullopt), now);
    applier.on_wakeup(now);
  }

  std::optional<Instant> next_wakeup() const override { return read ? Instant() : applier.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return applier.take_api_commands(); }

  ManifestApplier applier{Rng(1), telemetry::Log()};
  std::optional<std::vector<Manifest>> read;  // since the last step
};

class ManifestApplierTest : public ::testing::Test {
 protected:
  ManifestApplierTest() { cluster.run(folder); }

  ~ManifestApplierTest() override { cluster.stop(folder); }

  void files(std::vector<Manifest> manifests) {
    folder.read = std::move(manifests);
    cluster.advance(seconds(1));
  }

  std::string value() { return std::string(cluster.get(kMapPath).string_at({"data", "k"})); }

  TestCluster cluster;
  Folder folder;
  ManifestApplier& applier = folder.applier;
};

TEST_F(ManifestApplierTest, NamespacesPrecedeTheirObjects) {
  files({settings("1"), shop()});
  cluster.advance(seconds(1));
  EXPECT_EQ(value(), "1");
  EXPECT_EQ(applier.applied(), 2U);
}

TEST_F(ManifestApplierTest, AChangedFileChangesTheObject) {
  files({shop(), settings("1")});
  cluster.advance(seconds(1));
  files({shop(), settings("2")});
  EXPECT_EQ(value(), "2");
}

TEST_F(ManifestApplierTest, AChangeByAnotherClientLastsThirtySecondsAtMost) {
  files({shop(), settings("1")});
  cluster.advance(seconds(1));
  cluster.merge(kMapPath, api::parse_json(R"({"data":{"k":"mine","more":"kept"}})").value());
  cluster.advance(seconds(31));
  EXPECT_EQ(value(), "1");
  EXPECT_EQ(cluster.get(kMapPath).string_at({"data", "more"}), "kept");
}

TEST_F(ManifestApplierTest, ARemovedObjectIsRestored) {
  files({shop(), settings("1")});
  cluster.advance(seconds(1));
  cluster.remove(kMapPath);
  cluster.advance(seconds(31));
  EXPECT_EQ(value(), "1");
}

TEST_F(ManifestApplierTest, WhatNoFileAsksForStaysAndIsNotAppliedAgain) {
  files({shop(), settings("1")});
  cluster.advance(seconds(1));
  files({shop()});
  EXPECT_EQ(value(), "1");
  cluster.remove(kMapPath);
  cluster.advance(seconds(61));
  EXPECT_TRUE(cluster.get(kMapPath).is_null());
}

TEST_F(ManifestApplierTest, AnUnchangedObjectIsNotWritten) {
  files({shop(), settings("1")});
  cluster.advance(seconds(1));
  const std::string version(cluster.get(kMapPath).string_at({"metadata", "resourceVersion"}));
  cluster.advance(seconds(100));
  EXPECT_EQ(cluster.get(kMapPath).string_at({"metadata", "resourceVersion"}), version);
}

TEST_F(ManifestApplierTest, AKindThatIsDefinedLaterIsTriedAgain) {
  const Manifest custom = manifest(R"({"apiVersion":"e.io/v1","kind":"Tap","metadata":{"name":"t"},"spec":{"n":1}})");
  files({custom});
  EXPECT_EQ(applier.applied(), 0U);
  files({custom, manifest(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{"name":"taps.e.io"},"spec":{"group":"e.io","scope":"Namespaced",
    "names":{"plural":"taps","kind":"Tap","singular":"tap","listKind":"TapList"},
    "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
    "x-kubernetes-preserve-unknown-fields":true}}}]}})")});
  cluster.advance(seconds(31));
  EXPECT_EQ(applier.applied(), 2U);
  EXPECT_FALSE(cluster.get("/apis/e.io/v1/namespaces/default/taps/t").is_null());
}

TEST_F(ManifestApplierTest, ARefusedObjectHoldsUpNoOther) {
  files({shop(), manifest(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NO","namespace":"shop"}})"),
         settings("1")});
  cluster.advance(seconds(2));
  EXPECT_EQ(value(), "1");
  EXPECT_EQ(applier.applied(), 2U);
}

TEST_F(ManifestApplierTest, ServerErrorsAreTriedAgain) {
  cluster.fail(api::Method::kPatch, "configmaps/settings", 500, 3);
  files({shop(), settings("1")});
  cluster.advance(seconds(8));
  EXPECT_EQ(value(), "1");
}

TEST_F(ManifestApplierTest, OfTwoFilesWithOneObjectTheFirstCounts) {
  files({shop(), settings("1", "a.yaml"), settings("2", "b.yaml")});
  cluster.advance(seconds(31));
  EXPECT_EQ(value(), "1");
}

TEST_F(ManifestApplierTest, ANamespaceOfAnObjectThatHasNoneIsLeftOut) {
  files({manifest(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","namespace":"default"}})")});
  EXPECT_EQ(applier.applied(), 1U);
}

}  // namespace
}  // namespace spillway::controllers
