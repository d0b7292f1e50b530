// Answers in protobuf say what answers in JSON say: objects, lists, metadata alone, events of watches, refusals.
#include "api/schema/protobuf.h"
#include "api/schema/protobuf_writer.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace spillway::apiserver {
namespace {

constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";
constexpr std::string_view kPartial = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

std::string type_of(const api::HeaderList& headers) {
  for (const auto& [name, value] : headers) {
    if (name == "Content-Type") return value;
  }
  return {};
}

/// `document` encoded in protobuf.
std::string in_protobuf(const api::Json& document) {
  const api::Type* type = api::protobuf_type(document.string_at({"apiVersion"}), document.string_at({"kind"}));
  EXPECT_NE(type, nullptr) << api::to_text(document);
  return type != nullptr ? api::write_protobuf(*type, document) : std::string();
}

class ProtobufAnswers : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b", "c"}) {
      const Answer made = server.post(
          kMaps, fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"w":"{}"}}}},"data":{{"k":"v"}}}})", name, name));
      ASSERT_EQ(made.code, 201) << made.text;
    }
  }

  /// Sends the request twice: the protobuf answer must encode the JSON one.
  void expect_same(const std::string& target, std::string_view protobuf, const std::string& json) {
    const Answer plain = server.get(target, json);
    const Answer binary = server.get(target, std::string(protobuf));
    EXPECT_EQ(binary.code, plain.code) << target;
    EXPECT_EQ(type_of(binary.headers), kProtobuf) << target;
    EXPECT_EQ(binary.text, in_protobuf(plain.body)) << target;
  }

  TestServer server;
};

TEST_F(ProtobufAnswers, ObjectsListsAndRefusals) {
  expect_same(kMaps + "/a", kProtobuf, "application/json");
  expect_same(kMaps, kProtobuf, "application/json");
  expect_same(kMaps + "?labelSelector=w%3Dnone", kProtobuf, "application/json");
  expect_same(kMaps + "/none", kProtobuf, "application/json");
  expect_same("/apis/rbac.authorization.k8s.io/v1/clusterroles", kProtobuf, "application/json");
}

/// Items that one list has encoded serve the next ones: the row of the page /debug/memory.
TEST_F(ProtobufAnswers, ItemsAreSharedByLists) {
  const auto kept = [this] {
    const std::string page = server.get("/debug/memory").text;
    const std::size_t at = page.find("\nlists: items in protobuf ");
    EXPECT_NE(at, std::string::npos) << page;
    return std::atoi(page.c_str() + at + 25);
  };
  const std::string all = "/api/v1/configmaps";
  const int before = kept();
  expect_same(all, kProtobuf, "application/json");
  const int after = kept();
  EXPECT_GE(after, before + 3);
  expect_same(all, kProtobuf, "application/json");
  expect_same(kMaps + "?labelSelector=w+in+(a,b)", kProtobuf, "application/json");
  expect_same(kMaps + "?limit=2", kProtobuf, "application/json");
  expect_same(kMaps, kPartial, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
  EXPECT_EQ(kept(), after) << "nothing was encoded again";

  server.put(kMaps + "/b", R"({"metadata":{"name":"b"},"data":{"k":"other"}})");
  server.remove(kMaps + "/c");
  expect_same(all, kProtobuf, "application/json");
  EXPECT_EQ(kept(), after + 1) << "the new revision";
  server.advance(seconds(10));
  EXPECT_EQ(kept(), 0) << "some seconds later";
  expect_same(all, kProtobuf, "application/json");
}

TEST_F(ProtobufAnswers, SharedItemsShowNothingThatAUserMayNotSee) {
  const std::string roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/role";
  ASSERT_EQ(server.post("/api/v1/namespaces", R"({"metadata":{"name":"secret"}})").code, 201);
  ASSERT_EQ(server.post("/api/v1/namespaces/secret/configmaps", R"({"metadata":{"name":"hidden"}})").code, 201);
  ASSERT_EQ(
      server
          .post(roles + "s",
                R"({"metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]}]})")
          .code,
      201);
  ASSERT_EQ(
      server
          .post(roles + "bindings",
                R"({"metadata":{"name":"r"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role",)"
                R"("name":"r"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}]})")
          .code,
      201);
  expect_same("/api/v1/configmaps", kProtobuf, "application/json");
  server.user = {"ann", {}, {"system:authenticated"}};
  expect_same(kMaps, kProtobuf, "application/json");
  EXPECT_EQ(server.get(kMaps, std::string(kProtobuf)).text.find("hidden"), std::string::npos);
  EXPECT_EQ(server.get("/api/v1/configmaps", std::string(kProtobuf)).code, 403);
}

TEST_F(ProtobufAnswers, MetadataAlone) {
  const std::string json = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  expect_same(kMaps + "/a", kPartial, json);
  expect_same(kMaps, kPartial, json);
}

TEST_F(ProtobufAnswers, APageSaysWhereTheNextBegins) {
  const Answer plain = server.get(kMaps + "?limit=2", "application/json");
  const Answer binary = server.get(kMaps + "?limit=2", std::string(kProtobuf));
  ASSERT_FALSE(plain.string_at({"metadata", "continue"}).empty());
  EXPECT_EQ(binary.text, in_protobuf(plain.body));
}

TEST_F(ProtobufAnswers, ADocumentThatWasReadIsTheOneThatWasWritten) {
  const Answer binary = server.get(kMaps + "/a", std::string(kProtobuf));
  const auto read = api::read_protobuf(*api::find_kind("v1", "ConfigMap"), binary.text);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(api::to_text(*read), api::to_text(server.get(kMaps + "/a").body));
}

TEST_F(ProtobufAnswers, WritesAnswerAsTheirClientReads) {
  const Answer made =
      server.call(api::Method::kPost, kMaps, R"({"metadata":{"name":"d"}})", {{"accept", std::string(kProtobuf)}});
  EXPECT_EQ(made.code, 201);
  EXPECT_EQ(made.text, in_protobuf(server.get(kMaps + "/d").body));
  const Answer gone = server.call(api::Method::kDelete, kMaps + "/d", {}, {{"accept", std::string(kProtobuf)}});
  EXPECT_EQ(gone.code, 200);
  EXPECT_EQ(type_of(gone.headers), kProtobuf);
}

TEST_F(ProtobufAnswers, EventsOfAWatch) {
  const std::string target =
      kMaps + "?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
  const auto plain = server.send(api::Method::kGet, target, {}, {{"accept", "application/json"}});
  const auto binary = server.send(api::Method::kGet, target, {}, {{"accept", std::string(kProtobuf)}});
  server.merge(kMaps + "/b", R"({"data":{"k":"2"}})");
  server.remove(kMaps + "/c");
  ASSERT_TRUE(binary->response);
  EXPECT_EQ(type_of(binary->response->headers), api::kProtobufStreamType);
  std::string want;
  for (const api::Json& event : plain->events()) {
    want += api::protobuf_frame(event.string_at({"type"}), in_protobuf(*event.find("object")));
  }
  EXPECT_EQ(plain->events().size(), 6U);  // three, the marker, a change, a deletion
  EXPECT_EQ(binary->text, want);
}

TEST_F(ProtobufAnswers, AWatchThatIsTooLateGetsAnError) {
  const std::uint64_t head = server.store().revision().number();
  server.store().compact(store::Revision(head - 1), [](const Result<store::Revision>& done) { ASSERT_TRUE(done); });
  server.restart();
  const std::string target = kMaps + "?watch=1&resourceVersion=1";
  const auto plain = server.send(api::Method::kGet, target, {}, {{"accept", "application/json"}});
  const auto binary = server.send(api::Method::kGet, target, {}, {{"accept", std::string(kProtobuf)}});
  ASSERT_EQ(plain->events().size(), 1U);
  EXPECT_EQ(plain->events().front().string_at({"type"}), "ERROR");
  EXPECT_EQ(binary->text, api::protobuf_frame("ERROR", in_protobuf(*plain->events().front().find("object"))));
}

TEST_F(ProtobufAnswers, TablesAndMetricsStayJson) {
  const Answer table = server.get(
      kMaps,
      "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1");
  EXPECT_EQ(type_of(table.headers), "application/json");
  EXPECT_EQ(table.string_at({"kind"}), "Table");
  const std::string metrics = "/apis/metrics.k8s.io/v1beta1/nodes";
  EXPECT_EQ(server.get(metrics, std::string(kProtobuf)).code, 406);
  EXPECT_EQ(type_of(server.get(metrics, std::string(kProtobuf) + ",application/json").headers), "application/json");
}

TEST_F(ProtobufAnswers, ARefusalIsWrittenAsItsClientReads) {
  server.user = {"nobody", {}, {"system:authenticated"}};
  const Answer plain = server.get(kMaps + "/a", "application/json");
  const Answer binary = server.get(kMaps + "/a", std::string(kProtobuf));
  EXPECT_EQ(binary.code, 403);
  EXPECT_EQ(binary.text, in_protobuf(plain.body));
}

/// A client of ours decodes both forms.
TEST_F(ProtobufAnswers, AreReadAsWhatJsonSays) {
  ASSERT_EQ(
      server
          .post("/api/v1/nodes", R"({"metadata":{"name":"n1"},"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}})")
          .code,
      201);
  ASSERT_EQ(server
                .post("/api/v1/namespaces/default/pods",
                      R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i",)"
                      R"("resources":{"requests":{"memory":"16Mi"}},"ports":[{"containerPort":80}]}]}})")
                .code,
            201);
  for (const std::string& target :
       {kMaps, kMaps + "/a", kMaps + "/none", kMaps + "?limit=2", std::string("/api/v1/nodes"),
        std::string("/api/v1/pods"), std::string("/api/v1/namespaces"),
        std::string("/apis/scheduling.k8s.io/v1/priorityclasses"), std::string("/apis/coordination.k8s.io/v1/leases"),
        std::string("/apis/rbac.authorization.k8s.io/v1/clusterroles")}) {
    const Answer plain = server.get(target, "application/json");
    const auto read = api::read_protobuf_answer(server.get(target, std::string(kProtobuf)).text);
    ASSERT_TRUE(read) << target << ": " << read.error().text();
    EXPECT_EQ(api::to_text(*read), api::to_text(plain.body)) << target;
  }
}

/// The lists of the stock components' informers.
TEST_F(ProtobufAnswers, KindsThatOnlyStockComponentsReadAreReadAsWell) {
  const std::string pods =
      R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}})";
  const std::string to_web = R"({"service":{"name":"web","port":{"number":80}}})";
  const std::string networking = "/apis/networking.k8s.io/v1";
  const std::string storage = "/apis/storage.k8s.io/v1";
  const std::string space = "/namespaces/default";
  const std::vector<std::pair<std::string, std::string>> objects{
      {networking + space + "/ingresses", R"("spec":{"rules":[{"host":"a.io","http":{"paths":[{"path":"/","pathType":)"
                                          R"("Exact","backend":)" +
                                              to_web + R"(}]}}],"tls":[{"hosts":["a.io"]}]})"},
      {networking + "/ingressclasses", R"("spec":{"controller":"a.io/b","parameters":{"kind":"K","name":"n"}})"},
      {networking + space + "/networkpolicies",
       R"("spec":{"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8"}}],"ports":[{"port":"http"},{"port":1,"endPort":9}]}]})"},
      {networking + "/servicecidrs", R"("spec":{"cidrs":["10.0.0.0/8","fd00::/64"]})"},
      {storage + "/volumeattachments",
       R"("spec":{"attacher":"a.io","nodeName":"n1","source":{"persistentVolumeName":"pv"}})"},
      {storage + "/volumeattributesclasses", R"("driverName":"csi.example.com","parameters":{"iops":"100"})"},
      {storage + space + "/csistoragecapacities", R"("storageClassName":"fast","capacity":"5Gi","nodeTopology":{})"},
      {"/api/v1" + space + "/podtemplates", pods},
      {"/api/v1" + space + "/replicationcontrollers", R"("spec":{"replicas":0,)" + pods + "}"}};
  for (const auto& [target, body] : objects) {
    const Answer made = server.post(target, R"({"metadata":{"name":"x"},)" + body + "}");
    ASSERT_EQ(made.code, 201) << target << made.text;
    for (const std::string& each : {target, target + "/x"}) {
      expect_same(each, kProtobuf, "application/json");
      const auto read = api::read_protobuf_answer(server.get(each, std::string(kProtobuf)).text);
      ASSERT_TRUE(read) << each << ": " << read.error().text();
      EXPECT_EQ(api::to_text(*read), api::to_text(server.get(each, "application/json").body)) << each;
    }
  }
}

TEST_F(ProtobufAnswers, EventsAreReadAsWhatJsonSays) {
  const std::string target =
      kMaps + "?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
  const auto plain = server.send(api::Method::kGet, target, {}, {{"accept", "application/json"}});
  const auto binary = server.send(api::Method::kGet, target, {}, {{"accept", std::string(kProtobuf)}});
  server.remove(kMaps + "/c");
  std::string_view left = binary->text;
  for (const api::Json& event : plain->events()) {
    ASSERT_GE(left.size(), 4U);
    const auto length =
        static_cast<std::size_t>(static_cast<unsigned char>(left[2]) << 8 | static_cast<unsigned char>(left[3]));
    const auto read = api::read_protobuf_event(left.substr(4, length));
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->type, event.string_at({"type"}));
    EXPECT_EQ(api::to_text(read->object), api::to_text(*event.find("object")));
    left.remove_prefix(4 + length);
  }
  EXPECT_TRUE(left.empty());
}

TEST_F(ProtobufAnswers, WhatIsCutOffIsNotTheAnswer) {
  const std::string list = server.get(kMaps, std::string(kProtobuf)).text;
  const api::Json whole = api::read_protobuf_answer(list).value();
  const std::size_t content = list.size() - 4;  // the envelope ends with two empty fields
  for (std::size_t size = 0; size < content; ++size) {
    const auto answer = api::read_protobuf_answer(std::string_view(list).substr(0, size));
    EXPECT_FALSE(answer && *answer == whole) << size;
  }
  EXPECT_FALSE(api::read_protobuf_answer(list + "x"));
  EXPECT_FALSE(api::read_protobuf_event(""));
  EXPECT_FALSE(api::read_protobuf_event(list));
}

}  // namespace
}  // namespace spillway::apiserver
