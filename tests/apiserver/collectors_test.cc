// The server's own work: garbage collection, namespaces, expiry of events.
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

std::string map_path(const std::string& name) {
  return std::string(kMaps) + "/" + name;
}

std::string make_owner(TestServer& server) {
  return server.post(kMaps, R"({"metadata":{"name":"owner"}})").string_at({"metadata", "uid"});
}

Answer make_dependent(TestServer& server, const std::string& name, const std::string& uid,
                      const std::string& more = {}) {
  return server.post(kMaps, R"({"metadata":{"name":")" + name +
                                R"(","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":")" +
                                uid + "\"" + more + "}]}}");
}

TEST(Garbage, BackgroundTakesTheDependents) {
  TestServer server;
  make_dependent(server, "kid", make_owner(server));
  EXPECT_EQ(server.get(map_path("kid")).code, 200);
  EXPECT_EQ(server.remove(map_path("owner") + "?propagationPolicy=Background").string_at({"kind"}), "Status");
  EXPECT_EQ(server.get(map_path("kid")).code, 404);
}

/// The worked exchange 24.5 of the contract.
TEST(Garbage, ForegroundTakesThemFirst) {
  TestServer server;
  const std::string uid = make_owner(server);
  make_dependent(server, "blocking", uid, R"(,"blockOwnerDeletion":true)");
  make_dependent(server, "plain", uid);
  const auto watch = server.watch(
      std::string(kMaps) + "?watch=1&resourceVersion=" + server.get(kMaps).string_at({"metadata", "resourceVersion"}));
  const Answer answer = server.remove(map_path("owner") + "?propagationPolicy=Foreground");
  EXPECT_EQ(answer.body.at({"metadata", "finalizers"})->if_array()->front().if_string()[0], "foregroundDeletion");
  EXPECT_EQ(watch->names(),
            (std::vector<std::string>{"MODIFIED:owner", "DELETED:blocking", "DELETED:plain", "DELETED:owner"}));
}

TEST(Garbage, OrphansLoseTheirReference) {
  TestServer server;
  make_dependent(server, "kid", make_owner(server));
  server.remove(map_path("owner"), R"({"propagationPolicy":"Orphan"})");
  EXPECT_EQ(server.get(map_path("owner")).code, 404);
  const Answer kid = server.get(map_path("kid"));
  EXPECT_EQ(kid.code, 200);
  EXPECT_EQ(kid.body.at({"metadata", "ownerReferences"}), nullptr);
}

TEST(Garbage, AnOwnerThatNeverWasIsGone) {
  TestServer server;
  make_dependent(server, "lost", "00000000-0000-4000-8000-000000000000");
  EXPECT_EQ(server.get(map_path("lost")).code, 404);
}

TEST(Garbage, ADeletedNodeTakesItsLeaseAlong) {
  TestServer server;
  const std::string uid = server.post("/api/v1/nodes", R"({"metadata":{"name":"n1"}})").string_at({"metadata", "uid"});
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  ASSERT_EQ(
      server
          .post(leases,
                R"({"metadata":{"name":"n1","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":")" +
                    uid + "\"}]}}")
          .code,
      201);
  server.remove("/api/v1/nodes/n1");
  EXPECT_EQ(server.get(leases + "/n1").code, 404);
}

std::string root_ca(TestServer& server, const std::string& ns) {
  return server.get("/api/v1/namespaces/" + ns + "/configmaps/kube-root-ca.crt").string_at({"data", "ca.crt"});
}

void change_root_ca(TestServer& server, const std::string& ns) {
  const std::string path = "/api/v1/namespaces/" + ns + "/configmaps/kube-root-ca.crt";
  ASSERT_EQ(server.merge(path, R"({"data":{"ca.crt":"another","more":"text"}})").code, 200);
}

TEST(RootCa, IsInEveryNamespaceAndIsRestored) {
  TestServer server(ApiServer::Controllers::kOwn, {}, "the authority");
  ASSERT_EQ(server.post("/api/v1/namespaces", R"({"metadata":{"name":"shop"}})").code, 201);
  for (const std::string ns : {"default", "kube-system", "shop"}) {
    EXPECT_EQ(root_ca(server, ns), "the authority") << ns;
    EXPECT_EQ(server.remove("/api/v1/namespaces/" + ns + "/configmaps/kube-root-ca.crt").code, 200);
    EXPECT_EQ(root_ca(server, ns), "the authority") << ns << ", deleted";
    change_root_ca(server, ns);
    const Answer map = server.get("/api/v1/namespaces/" + ns + "/configmaps/kube-root-ca.crt");
    EXPECT_EQ(api::to_text(*map.body.find("data")), R"({"ca.crt":"the authority"})") << ns << ", changed";
  }
}

const std::string kClientAuthorities = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";

TEST(ClientAuthorities, AreThoseThatTheServerTrusts) {
  TestServer server;
  EXPECT_EQ(server.get(kClientAuthorities).code, 404) << "no certificates are believed";
  server.server().set_client_ca("the first", server.now());
  server.run_until_idle();
  EXPECT_EQ(server.get(kClientAuthorities).string_at({"data", "client-ca-file"}), "the first");
  server.server().set_client_ca("the first\nthe second", server.now());
  server.run_until_idle();
  EXPECT_EQ(server.get(kClientAuthorities).string_at({"data", "client-ca-file"}), "the first\nthe second");
}

TEST(ClientAuthorities, AreCreatedAgainAndCorrected) {
  TestServer server;
  server.server().set_client_ca("the first", server.now());
  server.run_until_idle();
  ASSERT_EQ(server.remove(kClientAuthorities).code, 200);
  EXPECT_EQ(server.get(kClientAuthorities).string_at({"data", "client-ca-file"}), "the first");
  ASSERT_EQ(
      server.merge(kClientAuthorities, R"({"data":{"client-ca-file":"mine","requestheader-client-ca-file":"x"}})").code,
      200);
  const Answer map = server.get(kClientAuthorities);
  EXPECT_EQ(map.string_at({"data", "client-ca-file"}), "the first");
  EXPECT_EQ(map.string_at({"data", "requestheader-client-ca-file"}), "x") << "what is not ours stays";
}

TEST(RootCa, IsNotRestoredInATerminatingNamespace) {
  TestServer server(ApiServer::Controllers::kOwn, {}, "the authority");
  ASSERT_EQ(server.post("/api/v1/namespaces", R"({"metadata":{"name":"shop"}})").code, 201);
  server.remove("/api/v1/namespaces/shop");
  EXPECT_EQ(server.get("/api/v1/namespaces/shop").code, 404);
}

TEST(RootCa, AMapOfAnotherPublisherIsKept) {
  TestServer server(ApiServer::Controllers::kUnknown, {}, "the authority");
  EXPECT_EQ(root_ca(server, "default"), "the authority");
  change_root_ca(server, "default");
  EXPECT_EQ(root_ca(server, "default"), "another");
}

TEST(RootCa, IsNotPublishedWithoutACertificate) {
  TestServer server(ApiServer::Controllers::kOwn);
  EXPECT_EQ(server.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt").code, 404);
}

TEST(Namespaces, GetAServiceAccountAndEmptyThemselves) {
  TestServer server;
  ASSERT_EQ(server.post("/api/v1/namespaces", R"({"metadata":{"name":"shop"}})").code, 201);
  EXPECT_EQ(server.get("/api/v1/namespaces/shop/serviceaccounts/default").code, 200);
  const std::string maps = "/api/v1/namespaces/shop/configmaps";
  server.post(maps, R"({"metadata":{"name":"held","finalizers":["x.io/f"]}})");
  for (int i = 0; i < 300; ++i) server.post(maps, "{\"metadata\":{\"name\":\"m" + std::to_string(i) + "\"}}");
  EXPECT_EQ(server.remove("/api/v1/namespaces/shop").string_at({"status", "phase"}), "Terminating");
  const Answer late = server.post(maps, R"({"metadata":{"name":"late"}})");
  EXPECT_EQ(late.code, 403);
  EXPECT_NE(late.text.find("NamespaceTerminating"), std::string::npos);
  EXPECT_EQ(server.get(maps).body.find("items")->if_array()->size(), 1U);
  EXPECT_EQ(server.get("/api/v1/namespaces/shop").code, 200);
  server.merge(maps + "/held", R"({"metadata":{"finalizers":null}})");
  EXPECT_EQ(server.get("/api/v1/namespaces/shop").code, 404);
  EXPECT_EQ(server.get("/api/v1/namespaces/shop/serviceaccounts").body.find("items")->if_array()->size(), 0U);
}

TEST(Namespaces, LosePodsBeforeAnythingElse) {
  TestServer server;
  ASSERT_EQ(server.post("/api/v1/namespaces", R"({"metadata":{"name":"shop"}})").code, 201);
  const std::string shop = "/api/v1/namespaces/shop";
  ASSERT_EQ(server.post(shop + "/configmaps", R"({"metadata":{"name":"m"}})").code, 201);
  ASSERT_EQ(server
                .post(shop + "/pods", R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1",
      "containers":[{"name":"c","image":"i"}]}})")
                .code,
            201);
  server.remove(shop);
  EXPECT_FALSE(server.get(shop + "/pods/p").string_at({"metadata", "deletionTimestamp"}).empty());
  EXPECT_EQ(server.get(shop + "/configmaps/m").code, 200) << "a pod that ends may still read it";
  EXPECT_EQ(server.remove(shop + "/pods/p", R"({"gracePeriodSeconds":0})").code, 200);
  EXPECT_EQ(server.get(shop).code, 404);
}

TEST(Namespaces, TheOnesTheClusterNeedsStay) {
  TestServer server;
  for (const char* name : {"default", "kube-system", "kube-public"}) {
    EXPECT_EQ(server.remove(std::string("/api/v1/namespaces/") + name).code, 403) << name;
  }
}

TEST(Expiry, EventsLiveAnHour) {
  TestServer server;
  const std::string events = "/api/v1/namespaces/default/events";
  server.post(
      events,
      R"({"metadata":{"name":"e1"},"involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"R","type":"Normal"})");
  const auto watch = server.watch(events + "?watch=1&timeoutSeconds=7200");
  server.advance(minutes(30));
  server.post(
      events,
      R"({"metadata":{"name":"e2"},"involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"R","type":"Normal"})");
  server.advance(minutes(31));
  EXPECT_EQ(server.get(events + "/e1").code, 404);
  EXPECT_EQ(server.get(events + "/e2").code, 200);
  EXPECT_EQ(watch->names(), (std::vector<std::string>{"ADDED:e1", "ADDED:e2", "DELETED:e1"}));
}

TEST(Expiry, HistoryIsCompacted) {
  TestServer server;
  for (int i = 0; i < 10'100; ++i) {
    const auto value = std::make_shared<const std::string>(R"({"metadata":{"name":"a","namespace":"default"}})");
    server.store().write({"/registry/configmaps/default/a", value, std::nullopt}, [](auto) {});
  }
  server.run_until_idle();
  EXPECT_EQ(server.store().compacted(), store::Revision(0));
  server.advance(minutes(7));
  EXPECT_GT(server.store().compacted(), store::Revision(0));
  EXPECT_LE(server.store().compacted().number() + 10'000, server.store().revision().number());
}

}  // namespace

}  // namespace spillway::apiserver
