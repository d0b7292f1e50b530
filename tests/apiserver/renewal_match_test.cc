// Bodies that are heartbeats and bodies that are not, by their bytes and those of the present lease.
#include "api/json/flat_json.h"
#include "api/json/json.h"
#include "api/schema/protobuf_writer.h"
#include "api/schema/schema.h"
#include "apiserver/renewal_requests.h"
#include "apiserver/write/renewal.h"
#include "base/rng.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::apiserver {
namespace {

constexpr std::string_view kStored =
    R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"resourceVersion":"7",)"
    R"("creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"apiVersion":"coordination.k8s.io/v1",)"
    R"("fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:renewTime":{}}},"manager":"kubelet","operation":"Update",)"
    R"("time":"2026-01-01T00:00:00Z"}],"name":"n","namespace":"d","uid":"u"},)"
    R"("spec":{"holderIdentity":"n","renewTime":"2026-01-01T00:00:00.000000Z"}})";

RenewalPath path_of(std::string_view body, RenewalForm form = RenewalForm::kUpdate,
                    std::string_view manager = "kubelet") {
  return match_renewal(body, kStored, {form, manager}).path;
}

TEST(MatchRenewal, NamesThePlacesOfTheTimes) {
  std::string body(kStored);
  body.replace(body.rfind("000000Z"), 7, "000001Z");
  const RenewalMatch match = match_renewal(body, kStored, {RenewalForm::kUpdate, "kubelet"});
  EXPECT_EQ(match.path, RenewalPath::kSpliced);
  EXPECT_EQ(match.renewed(), "2026-01-01T00:00:00.000001Z");
  EXPECT_EQ(kStored.substr(match.renewed_at, 27), "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(kStored.substr(match.managed_at - 8, 8), R"("time":")");
  EXPECT_EQ(path_of(kStored), RenewalPath::kUnchanged);
  EXPECT_EQ(path_of(kStored, RenewalForm::kUpdate, "other"), RenewalPath::kObject);
}

TEST(MatchRenewal, AVersionHasToBeNamedInAnUpdateOnly) {
  constexpr std::string_view kTime = R"("spec":{"holderIdentity":"n","renewTime":"2026-01-01T00:00:01.000000Z"}})";
  EXPECT_EQ(path_of(R"({"metadata":{"name":"n","resourceVersion":"7"},)" + std::string(kTime)), RenewalPath::kSpliced);
  EXPECT_EQ(path_of(R"({"metadata":{"name":"n"},)" + std::string(kTime)), RenewalPath::kContent);
  EXPECT_EQ(path_of(R"({"metadata":{"name":"n","resourceVersion":"6"},)" + std::string(kTime)), RenewalPath::kContent);
  EXPECT_EQ(path_of("{" + std::string(kTime), RenewalForm::kPatch), RenewalPath::kSpliced);
}

TEST(MatchRenewal, WhatIsCutOrNestedTooDeepIsNone) {
  const std::string_view text = kStored;
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(path_of(text.substr(0, size)), RenewalPath::kContent);
    EXPECT_EQ(match_renewal(text, text.substr(0, size), {RenewalForm::kUpdate, "kubelet"}).path, RenewalPath::kObject);
  }
  EXPECT_EQ(path_of(std::string(10'000, '[')), RenewalPath::kContent);
  EXPECT_EQ(path_of(R"({"spec":)" + std::string(40, '[') + std::string(40, ']') + "}", RenewalForm::kPatch),
            RenewalPath::kContent);
}

/// Members that have the same names and values as the times.
const std::string kTwins = [] {
  std::string text(kStored);
  text.insert(text.find("\"creationTimestamp\""),
              R"("annotations":{"renewTime":"2026-01-01T00:00:00.000000Z","time":"2026-01-01T00:00:00Z"},)");
  return text;
}();

/// The request of an agent that starts from its last answer.
api::Json renewed(const api::Json& held, const api::Json& time) {
  api::Json lease = held;
  lease["spec"]["renewTime"] = time;
  return lease;
}

TEST(MatchSharedRenewal, SaysWhatTheTextDoes) {
  for (const std::string& stored : {std::string(kStored), kTwins}) {
    const api::Json held = *api::parse_json(stored);
    for (const char* time : {"2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:09.000001Z"}) {
      const api::Json sent = renewed(held, time);
      const auto match = match_shared_renewal(sent, held, stored, "kubelet");
      ASSERT_TRUE(match) << stored;
      const RenewalMatch whole = match_renewal(api::to_text(sent), stored, {RenewalForm::kUpdate, "kubelet"});
      EXPECT_EQ(match->path, whole.path);
      EXPECT_EQ(match->renewed_at, whole.renewed_at);
      EXPECT_EQ(match->managed_at, whole.managed_at);
      EXPECT_EQ(match->renewed(), whole.renewed());
    }
  }
}

TEST(MatchSharedRenewal, MembersInStringsAreNone) {
  std::string stored(kStored);
  stored.replace(stored.rfind("\"n\""), 3, R"("\"time\":\"2026-01-01T00:00:00Z\" \"renewTime\":\"")");
  const api::Json held = *api::parse_json(stored);
  const auto match = match_shared_renewal(renewed(held, "2026-01-01T00:00:09.000000Z"), held, stored, "kubelet");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->renewed_at, stored.size() - 30);
  EXPECT_EQ(match->managed_at, stored.find("2026-01-01T00:00:00Z\"}]"));
}

TEST(MatchSharedRenewal, AnythingElseIsLeftToTheText) {
  constexpr const char* kLater = "2026-01-01T00:00:09.000000Z";
  const api::Json held = *api::parse_json(kStored);
  const auto matches = [](const api::Json& sent, const api::Json& lease, std::string_view manager = "kubelet") {
    return match_shared_renewal(sent, lease, api::to_text(lease), manager).has_value();
  };
  ASSERT_TRUE(matches(renewed(held, kLater), held));
  EXPECT_FALSE(matches(renewed(held, kLater), held, "other"));
  EXPECT_FALSE(matches(renewed(*api::parse_json(kStored), kLater), held));  // equal, and nevertheless another document
  for (const api::Json& time : {api::Json("2026-01-01T00:00:09Z"), api::Json("2026-13-01T00:00:09.000000Z"),
                                api::Json("2026-01-01T00:00:09.0000000"), api::Json(9), api::Json()})
    EXPECT_FALSE(matches(renewed(held, time), held)) << api::to_text(time);
  using Edit = void (*)(api::Json&);
  for (const Edit edit : {Edit([](api::Json& lease) { lease["spec"]["holderIdentity"] = "m"; }),
                          Edit([](api::Json& lease) { lease["spec"]["leaseTransitions"] = 1; }),
                          Edit([](api::Json& lease) { lease["spec"].erase({"holderIdentity"}); }),
                          Edit([](api::Json& lease) { lease["apiVersion"] = "v1"; }),
                          Edit([](api::Json& lease) { lease["status"] = api::Json::object(); }),
                          Edit([](api::Json& lease) { lease["metadata"]["labels"]["a"] = "b"; }),
                          Edit([](api::Json& lease) { lease.erase({"spec"}); })}) {
    api::Json sent = renewed(held, kLater);
    edit(sent);
    EXPECT_FALSE(matches(sent, held)) << api::to_text(sent);
  }
  const auto entry = [](api::Json& lease) -> api::Json& {
    return lease["metadata"]["managedFields"].if_array()->front();
  };
  api::Json part = held;
  entry(part)["subresource"] = "status";
  EXPECT_FALSE(matches(renewed(part, kLater), part));
  api::Json applied = held;
  entry(applied)["operation"] = "Apply";
  EXPECT_FALSE(matches(renewed(applied, kLater), applied));
  api::Json two = held;
  two["metadata"]["managedFields"].if_array()->push_back(entry(two));
  EXPECT_FALSE(matches(renewed(two, kLater), two));
  api::Json owned = held;
  owned["metadata"]["ownerReferences"] = api::Json::array({api::Json::object(), api::Json::object()});
  EXPECT_FALSE(matches(renewed(owned, kLater), owned));
  api::Json other = held;
  other["spec"]["strategy"] = "OldestEmulationVersion";
  EXPECT_FALSE(matches(renewed(other, kLater), other));
}

/// An owner as the server records it: keys of lists are JSON themselves.
const std::string kOwned = [] {
  std::string text(kStored);
  const std::string_view fields = R"("fieldsV1":{)";
  text.insert(text.find(fields) + fields.size(),
              R"("f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"o\\\\\"}":{}}},)");
  return text;
}();

TEST(FlatJson, TakesQuotedKeysOfRecordedFieldsAlone) {
  const auto flat = api::FlatJson::parse(kOwned);
  ASSERT_TRUE(flat);
  EXPECT_EQ((*flat)[0].text, kOwned);
  EXPECT_TRUE(api::FlatJson::parse(R"({"fieldsV1":{"a\"":{"b\\":1}}})"));
  for (const char* text : {R"({"a\"":1})", R"({"fieldsV1":{},"a\"":1})", R"({"fieldsV1":{"a\n":1}})",
                           R"({"fieldsV1":{"a":"\""}})", R"({"fieldsV1":{"a\)", R"({"other":{"a\\":1}})"})
    EXPECT_FALSE(api::FlatJson::parse(text)) << text;
}

TEST(FlatJson, TakesNothingThatIsNoJson) {
  constexpr std::string_view kBytes = "{}[]\",:\\ 0123-.eEtfnul\x01\x7f\xc3\n";
  Rng rng(23);
  int taken = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string text(i % 2 == 0 ? kStored : std::string_view(kOwned));
    const std::uint64_t edits = 1 + rng.below(3);
    for (std::uint64_t n = 0; n < edits; ++n) {
      const std::size_t at = rng.below(text.size());
      const char byte = kBytes[rng.below(kBytes.size())];
      const std::uint64_t kind = rng.below(3);
      if (kind == 0) text[at] = byte;
      if (kind == 1) text.insert(at, 1, byte);
      if (kind == 2) text.erase(at, 1 + rng.below(4));
    }
    const auto flat = api::FlatJson::parse(text);
    if (!flat) continue;
    ++taken;
    const Result<api::Json> tree = api::parse_json(text);
    ASSERT_TRUE(tree) << text;
    const Result<api::Json> again = api::parse_json((*flat)[0].text);
    ASSERT_TRUE(again) << text;
    EXPECT_TRUE(*again == *tree) << text;
  }
  EXPECT_GT(taken, 1'000);
}

/// The server's answer for that lease in protobuf, with that time.
std::string wire_of(std::string_view time, std::string_view stored = kStored) {
  api::Json lease = *api::parse_json(stored);
  lease["spec"]["renewTime"] = time;
  return api::write_protobuf(*api::find_kind("coordination.k8s.io/v1", "Lease"), lease);
}

RenewalMatch match_wire(std::string_view body, std::string_view stored = kStored) {
  return match_renewal(body, stored, {RenewalForm::kProtobufUpdate, "kubelet"});
}

TEST(MatchProtobufRenewal, NamesTheTime) {
  for (const char* time : {"2026-01-01T00:00:01.000000Z", "2026-07-31T23:59:59.999999Z", "1970-01-01T00:00:00.000001Z",
                           "9999-12-31T23:59:59.999999Z"}) {
    const RenewalMatch match = match_wire(wire_of(time));
    EXPECT_EQ(match.path, RenewalPath::kSpliced) << time;
    EXPECT_EQ(match.renewed(), time);
    EXPECT_EQ(kStored.substr(match.renewed_at, 27), "2026-01-01T00:00:00.000000Z");
    EXPECT_EQ(kStored.substr(match.managed_at - 8, 8), R"("time":")");
  }
  EXPECT_EQ(match_wire(wire_of("2026-01-01T00:00:00.000000Z")).path, RenewalPath::kUnchanged);
  EXPECT_EQ(match_wire(wire_of("1969-12-31T23:59:59.000000Z")).path, RenewalPath::kContent);
}

TEST(MatchProtobufRenewal, AnotherVersionIsNone) {
  std::string other(kStored);
  other.replace(other.find("\"7\""), 3, "\"6\"");
  EXPECT_EQ(match_wire(wire_of("2026-01-01T00:00:01.000000Z", other)).path, RenewalPath::kContent);
}

TEST(MatchProtobufRenewal, WhatIsCutIsNone) {
  const std::string body = wire_of("2026-01-01T00:00:01.000001Z");
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_EQ(match_wire(std::string_view(body).substr(0, size)).path, RenewalPath::kContent) << size;
  }
  EXPECT_EQ(match_wire(body + '\0').path, RenewalPath::kContent);
  EXPECT_EQ(match_wire(kStored).path, RenewalPath::kContent);
}

/// A body that differs in any byte is a heartbeat only if it is the same lease with another time.
TEST(MatchProtobufRenewal, OfOtherBytesOnlyAnotherTimeIsOne) {
  const std::string body = wire_of("2026-01-01T00:00:01.000001Z");
  int times = 0;
  for (std::size_t at = 0; at < body.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = body;
      other[at] = static_cast<char>(other[at] ^ (1 << bit));
      const RenewalMatch match = match_wire(other);
      if (match.path == RenewalPath::kContent) continue;
      ++times;
      EXPECT_EQ(wire_of(match.renewed()), other) << at;
    }
  }
  EXPECT_GT(times, 20);
}

TEST(MatchProtobufRenewal, OddWireIsNone) {
  const std::string body = wire_of("2026-01-01T00:00:01.000001Z");
  Rng rng(7);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string odd = odd_wire(rng, body);
    const RenewalMatch match = match_wire(odd);
    if (match.path == RenewalPath::kContent) continue;
    ++taken;
    ASSERT_EQ(wire_of(match.renewed()), odd);
  }
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 4'000);
}

}  // namespace
}  // namespace spillway::apiserver
