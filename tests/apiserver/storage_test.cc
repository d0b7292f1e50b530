// Values at rest as servers find them: JSON and protobuf, by any writer, and bytes that are no object at all.
#include "api/schema/protobuf.h"
#include "api/schema/protobuf_writer.h"
#include "apiserver/read/stored_form.h"
#include "apiserver/server_fixture.h"
#include "support/vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::apiserver {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string kKey = "/registry/configmaps/default/a";
const std::string kUrl = kMaps + "/a";
constexpr std::string_view kMagic("k8s\0", 4);

constexpr std::string_view kMap = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":)"
                                  R"("default","uid":"u-1","creationTimestamp":"2026-01-02T03:04:05Z"},)"
                                  R"("data":{"x":"1"}})";

std::string protobuf_of(std::string_view text) {
  const api::Json document = *api::parse_json(text);
  return api::write_protobuf(*api::find_kind(document.string_at({"apiVersion"}), document.string_at({"kind"})),
                             document);
}

/// A ConfigMap with field 99, which no version has yet. `raw` of the envelope is its second field.
std::string map_of_the_future() {
  const auto field = [](int tag, std::string_view bytes) {
    return std::string(1, static_cast<char>(tag)) + static_cast<char>(bytes.size()) + std::string(bytes);
  };
  const std::string meta = field(0x0a, "a") + field(0x1a, "default") + field(0x2a, "u-1");
  const std::string raw = field(0x0a, meta) + "\x9a\x06" + "\x03new";
  return std::string(kMagic) + field(0x0a, field(0x0a, "v1") + field(0x12, "ConfigMap")) + field(0x12, raw);
}

std::string warnings_of(const Answer& answer) {
  std::string all;
  for (const auto& [name, value] : answer.headers) {
    if (name == "Warning") all += value + "\n";
  }
  return all;
}

std::vector<std::string> names_in(const Answer& list) {
  std::vector<std::string> names;
  for (const api::Json& item : *list.body.at({"items"})->if_array()) {
    names.emplace_back(item.string_at({"metadata", "name"}));
  }
  return names;
}

class Storage : public ::testing::Test {
 protected:
  /// Stores bytes as another server of the same store would, before the server starts.
  void store_before_start(std::string bytes) {
    server.put_at_rest(kKey, std::move(bytes));
    server.restart();
  }

  double unreadable() const {
    telemetry::Registry& metrics = const_cast<TestServer&>(server).metrics();  // NOLINT: asked, not changed
    return metrics
        .gauge("spillway_storage_unreadable_values", "Values in the store that cannot be decoded and are not served")
        .value();
  }

  TestServer server;
};

TEST_F(Storage, WritesJsonUnlessConfiguredOrTheStoreHoldsProtobuf) {
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  EXPECT_THAT(server.at_rest(kKey), StartsWith("{"));
  server.storage.media_type = StorageMediaType::kProtobuf;
  server.restart();
  server.merge(kUrl, R"({"data":{"x":"1"}})");
  EXPECT_THAT(server.at_rest(kKey), StartsWith(kMagic));
  server.storage.media_type.reset();
  server.restart();
  server.merge(kUrl, R"({"data":{"x":"2"}})");
  EXPECT_THAT(server.at_rest(kKey), StartsWith("{")) << "most of what the store holds is JSON";
}

TEST_F(Storage, GoesOnInProtobufWhereTheStoreHoldsIt) {
  for (const std::string ns : {"default", "kube-system"}) {
    for (int i = 0; i < 60; ++i) {
      const std::string name = fmt::format("m{}", i);
      server.put_at_rest("/registry/configmaps/" + ns + "/" + name,
                         protobuf_of(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name +
                                     R"(","namespace":")" + ns + R"(","uid":"u"}})"));
    }
  }
  server.restart();
  server.post(kMaps, R"({"metadata":{"name":"a"}})");
  EXPECT_THAT(server.at_rest(kKey), StartsWith(kMagic));
}

TEST_F(Storage, ServesTheSameDocumentWhateverItsFormAtRest) {
  store_before_start(std::string(kMap));
  api::Json as_json = server.get(kUrl).body;
  store_before_start(protobuf_of(kMap));
  api::Json as_protobuf = server.get(kUrl).body;
  for (api::Json* document : {&as_json, &as_protobuf}) {
    EXPECT_NE(document->string_at({"metadata", "resourceVersion"}), "");
    document->erase({"metadata", "resourceVersion"});
  }
  EXPECT_EQ(api::to_text(as_protobuf), api::to_text(as_json));
  EXPECT_EQ(as_protobuf.string_at({"data", "x"}), "1");
}

TEST_F(Storage, WritesBackOnlyWhatWasChanged) {
  server.storage.media_type = StorageMediaType::kProtobuf;
  store_before_start(protobuf_of(kMap));
  const std::string before = server.at_rest(kKey);
  const Answer same = server.merge(kUrl, R"({"data":{"x":"1"}})");
  EXPECT_EQ(same.code, 200) << same.text;
  EXPECT_EQ(server.at_rest(kKey), before);
  ASSERT_EQ(server.merge(kUrl + "?fieldManager=m", R"({"data":{"x":"2"}})").code, 200);
  const auto written = api::read_protobuf(*api::find_kind("v1", "ConfigMap"), server.at_rest(kKey));
  ASSERT_TRUE(written) << written.error().text();
  EXPECT_EQ(written->string_at({"data", "x"}), "2");
  EXPECT_EQ(written->string_at({"metadata", "resourceVersion"}), "");
  EXPECT_EQ(written->string_at({"metadata", "uid"}), "u-1");
}

TEST_F(Storage, ObjectsOutliveARestartAsTheyWereAnswered) {
  server.storage.media_type = StorageMediaType::kProtobuf;
  server.restart();
  const std::string pods = "/api/v1/namespaces/default/pods";
  const Answer made = server.post(
      pods, R"({"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","resources":)"
            R"({"limits":{"cpu":"1500m"}},"livenessProbe":{"httpGet":{"port":"http"}},"env":[{"name":"E"}]}],)"
            R"("volumes":[{"name":"v","emptyDir":{}}],"tolerations":[{"operator":"Exists"}]}})");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_THAT(server.at_rest("/registry/pods/default/p"), StartsWith(kMagic));
  const Answer lease = server.post("/apis/coordination.k8s.io/v1/namespaces/default/leases",
                                   R"({"metadata":{"name":"l"},"spec":{"renewTime":"2026-01-02T03:04:05.678901Z"}})");
  ASSERT_EQ(lease.code, 201) << lease.text;
  server.restart();
  EXPECT_EQ(api::to_text(server.get(pods + "/p").body), api::to_text(made.body));
  EXPECT_EQ(api::to_text(server.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/l").body),
            api::to_text(lease.body));
}

struct BadValue {
  std::string bytes;
  std::string_view cause;
};

std::vector<BadValue> bad_values() {
  const std::string whole = protobuf_of(kMap);
  const std::string of_pod = protobuf_of(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}})");
  return {{"k8s:enc:aescbc:v1:key1:\x01\x02", "is encrypted, and this server has no key"},
          {"\xd9\xd9\xf7\xa1", "is CBOR, expected JSON or protobuf"},
          {"{", "is no JSON ("},
          {"[]", "is no JSON object, expected a ConfigMap"},
          {R"({"metadata":{"name":"a"}})", R"(is a "" of "", expected a ConfigMap of v1)"},
          {R"({"apiVersion":"v1","kind":"ConfigMap","metadata":7})", "metadata"},
          {R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":[]}})", "data"},
          {std::string(whole, 0, whole.size() / 2), "malformed protobuf: truncated"},
          {of_pod, "Pod"},
          {std::string(kMagic), "empty"},
          {"\x01", "is no JSON ("}};
}

TEST_F(Storage, OneValueThatCannotBeReadDoesNotStopTheServer) {
  server.post(kMaps, R"({"metadata":{"name":"b"}})");
  for (const BadValue& bad : bad_values()) {
    SCOPED_TRACE(bad.cause);
    store_before_start(bad.bytes);
    EXPECT_EQ(unreadable(), 1);
    const Answer got = server.get(kUrl);
    EXPECT_EQ(got.code, 500);
    EXPECT_THAT(got.string_at({"message"}),
                HasSubstr("StorageError: corrupt object, Code: 7, Key: " + kKey + ", ResourceVersion: 0"));
    EXPECT_THAT(got.string_at({"message"}), HasSubstr(bad.cause));
    const Answer list = server.get(kMaps);
    EXPECT_EQ(list.code, 200);
    EXPECT_EQ(names_in(list), std::vector<std::string>({"b"}));
    EXPECT_THAT(warnings_of(list), HasSubstr("cannot be decoded: " + kKey));
    const std::string paged = kMaps + "?limit=1";
    EXPECT_THAT(warnings_of(server.get(paged)), HasSubstr(kKey));
    EXPECT_EQ(server.post(kMaps, R"({"metadata":{"name":"a"}})").code, 500);
    EXPECT_EQ(server.put(kUrl, R"({"metadata":{"name":"a"}})").code, 500);
    EXPECT_EQ(server.merge(kUrl, R"({"data":{"x":"2"}})").code, 500);
    EXPECT_EQ(server.remove(kUrl).code, 500);
    EXPECT_EQ(server.at_rest(kKey), bad.bytes) << "it was touched";
    EXPECT_THAT(warnings_of(server.get("/api/v1/namespaces/kube-system/configmaps")), IsEmpty());
  }
}

/// A ConfigMap whose `raw` is these bytes.
std::string envelope_around(std::string_view raw) {
  std::string out = std::string(kMagic) + "\x0a\x0f\x0a\x02v1\x12\x09" + "ConfigMap" + "\x12";
  for (std::size_t left = raw.size();; left >>= 7U) {
    const auto low = static_cast<unsigned char>(left & 0x7fU);
    out += static_cast<char>(left >= 0x80 ? low | 0x80U : low);
    if (left < 0x80) break;
  }
  return out + std::string(raw);
}

std::string repeated(std::string_view unit, std::size_t times) {
  std::string all;
  all.reserve(unit.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += unit;
  return all;
}

/// metadata.managedFields[0].fieldsV1 with these bytes of JSON.
std::string with_fields(std::string_view json) {
  const auto field = [](char tag, std::string_view bytes) {
    std::string out(1, tag);
    for (std::size_t left = bytes.size();; left >>= 7U) {
      const auto low = static_cast<unsigned char>(left & 0x7fU);
      out += static_cast<char>(left >= 0x80 ? low | 0x80U : low);
      if (left < 0x80) break;
    }
    return out + std::string(bytes);
  };
  const std::string entry = field('\x3a', field('\x0a', json));
  return envelope_around(field('\x0a', "\x8a\x01" + field('\x0a', entry).substr(1)));
}

TEST_F(Storage, HostileValuesAreRefusedLikeOthers) {
  constexpr std::size_t kMany = 700'000;
  const std::string hostile[] = {
      envelope_around(repeated("\x9b\x06", kMany)),                 // groups in groups
      envelope_around(repeated(std::string("\x12\0", 2), kMany)),   // empty entries
      envelope_around("\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),  // a length beyond the end
      envelope_around(repeated("\xff", 11)),                        // a number without an end
      with_fields(repeated("[", kMany)),
      with_fields(repeated("{\"a\":", kMany / 6)),
      repeated("{\"a\":", kMany / 6),
      repeated("[", kMany),
  };
  for (const std::string& bytes : hostile) {
    SCOPED_TRACE(api::to_text(api::Json(bytes.substr(0, 24))));
    store_before_start(bytes);
    EXPECT_EQ(server.get(kUrl).code, 500);
    EXPECT_EQ(server.get(kMaps).code, 200);
    EXPECT_LT(server.get(kUrl).text.size(), 4'096U) << "the cause quotes the value";
    server.put_at_rest(kKey, std::string(kMap));
    EXPECT_EQ(server.get(kUrl).code, 200);
    server.put_at_rest(kKey, bytes);
    EXPECT_EQ(server.get(kUrl).code, 500);
  }
}

TEST_F(Storage, WatchersGetNoDeletionOfAnUnreadableObject) {
  server.post(kMaps, R"({"metadata":{"name":"a"},"data":{"x":"1"}})");
  const auto watch = server.watch(kMaps + "?watch=1");
  server.put_at_rest(kKey, "k8s:enc:secretbox:v1:key1:\x01");
  EXPECT_EQ(watch->names(), std::vector<std::string>({"ADDED:a"}));
  EXPECT_EQ(server.get(kUrl).code, 500);
  server.put_at_rest(kKey, std::string(kMap));
  EXPECT_EQ(watch->names(), std::vector<std::string>({"ADDED:a", "MODIFIED:a"}));
  EXPECT_EQ(server.get(kUrl).code, 200);
  EXPECT_EQ(unreadable(), 0);
  server.put_at_rest(kKey, "{");
  server.put_at_rest(kKey, {});
  EXPECT_EQ(watch->names(), std::vector<std::string>({"ADDED:a", "MODIFIED:a", "DELETED:a"}));
  EXPECT_EQ(server.get(kUrl).code, 404);
  EXPECT_EQ(server.post(kMaps, R"({"metadata":{"name":"a"}})").code, 201);
}

TEST_F(Storage, DependentsOfAnUnreadableOwnerStay) {
  const Answer owner = server.post(kMaps, R"({"metadata":{"name":"a"}})");
  const std::string dependent = R"({"metadata":{"name":"d","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap",)"
                                R"("name":"a","uid":")" +
                                owner.string_at({"metadata", "uid"}) + R"("}]}})";
  ASSERT_EQ(server.post(kMaps, dependent).code, 201);
  store_before_start("k8s:enc:aesgcm:v1:key1:\x01");
  server.advance(seconds(60));
  EXPECT_EQ(server.get(kMaps + "/d").code, 200);
}

TEST_F(Storage, ANamespaceWithAnUnreadableObjectDoesNotEnd) {
  ASSERT_EQ(server.post("/api/v1/namespaces", R"({"metadata":{"name":"n"}})").code, 201);
  server.put_at_rest("/registry/configmaps/n/a", "\x01");
  ASSERT_EQ(server.remove("/api/v1/namespaces/n").code, 200);
  server.advance(seconds(60));
  EXPECT_EQ(server.get("/api/v1/namespaces/n").string_at({"status", "phase"}), "Terminating");
  server.put_at_rest("/registry/configmaps/n/a", {});
  server.advance(seconds(60));
  EXPECT_EQ(server.get("/api/v1/namespaces/n").code, 404);
}

TEST_F(Storage, AClusterObjectThatCannotBeReadDoesNotStopTheStart) {
  server.put_at_rest("/registry/namespaces/kube-public", "\x01");
  server.put_at_rest("/registry/clusterroles/view", "\x01");
  server.restart();
  EXPECT_EQ(server.get("/api/v1/namespaces/kube-public").code, 500);
  EXPECT_EQ(server.get("/api/v1/namespaces/default").code, 200);
}

void expect_guarded(TestServer& server, std::string_view field) {
  const Answer got = server.get(kUrl);
  EXPECT_EQ(got.code, 200) << got.text;
  EXPECT_THAT(warnings_of(got), HasSubstr(field));
  const std::string before = server.at_rest(kKey);
  const Answer refused = server.merge(kUrl, R"({"data":{"x":"9"}})");
  EXPECT_EQ(refused.code, 500);
  EXPECT_THAT(refused.string_at({"message"}), HasSubstr("was stored by a newer version"));
  EXPECT_THAT(refused.string_at({"message"}), HasSubstr(field));
  EXPECT_EQ(server.at_rest(kKey), before);
}

TEST_F(Storage, FieldsThatAreNotKnownAreNotWrittenAway) {
  store_before_start(map_of_the_future());
  expect_guarded(server, "field 99 of core/v1.ConfigMap");
  store_before_start(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","uid":"u"},"novel":{"a":1}})");
  expect_guarded(server, "novel");
  EXPECT_EQ(server.get(kUrl).body.find("novel"), nullptr) << "documents are the same whatever their form at rest";
  server.storage.drop_unknown_fields = true;
  server.restart();
  EXPECT_EQ(server.merge(kUrl, R"({"data":{"x":"9"}})").code, 200);
  EXPECT_THAT(server.at_rest(kKey), ::testing::Not(HasSubstr("novel")));
  EXPECT_THAT(warnings_of(server.get(kUrl)), IsEmpty());
}

TEST_F(Storage, AnObjectWithUnknownFieldsCanBeDeleted) {
  store_before_start(map_of_the_future());
  EXPECT_EQ(server.remove(kUrl).code, 200);
  EXPECT_EQ(server.at_rest(kKey), "");
}

TEST_F(Storage, ValuesOfKindsThatAreNotServedAreNotTouched) {
  const std::string key = "/registry/storagemigration.k8s.io/storageversionmigrations/one";
  server.put_at_rest(key, "k8s\0anything");
  server.restart();
  server.advance(hours(2));
  EXPECT_EQ(server.at_rest(key), "k8s\0anything");
  EXPECT_EQ(unreadable(), 0);
}

TEST_F(Storage, AResourceVersionAtRestIsNotServed) {
  store_before_start(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","uid":"u",)"
                     R"("resourceVersion":"1"}})");
  const Answer got = server.get(kUrl);
  EXPECT_NE(got.string_at({"metadata", "resourceVersion"}), "1");
  EXPECT_EQ(got.text.find("resourceVersion"), got.text.rfind("resourceVersion")) << got.text;
}

TEST_F(Storage, AListOfThePastSaysWhatItLacks) {
  server.post(kMaps, R"({"metadata":{"name":"b"}})");
  server.put_at_rest(kKey, "{");
  const std::string then = std::to_string(server.store().revision().number());
  for (int i = 0; i < 20'000; ++i) server.put_at_rest("/registry/configmaps/default/c", std::string(kMap));
  const Answer list = server.get(kMaps + "?resourceVersionMatch=Exact&resourceVersion=" + then);
  EXPECT_EQ(names_in(list), std::vector<std::string>({"b"}));
  EXPECT_THAT(warnings_of(list), HasSubstr(kKey));
}

}  // namespace
}  // namespace spillway::apiserver
