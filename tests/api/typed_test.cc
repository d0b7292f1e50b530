#include "api/schema/typed.h"

#include "api/json/document_bounds.h"

#include <gtest/gtest.h>

namespace spillway::api {
namespace {

const Type& kind(std::string_view version, std::string_view name) {
  return *find_kind(version, name);
}

Json parse(std::string_view text) {
  return parse_json(text).value();
}

Result<TypedDocument> read_text(const Type& type, std::string_view text) {
  return read_body(type, text);
}

/// A Pod with this spec, read.
Result<TypedDocument> read_spec(std::string_view spec) {
  return read_text(kind("v1", "Pod"), fmt::format(R"({{"spec":{}}})", spec));
}

TEST(TypedBody, FillsInWhatIsAlwaysWritten) {
  const auto pod = read_text(kind("v1", "Pod"), R"({"metadata":{"name":"p"}})");
  ASSERT_TRUE(pod) << pod.error().text();
  EXPECT_EQ(pod->object, parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
                                   "spec":{"containers":null},"status":{}})"));
}

TEST(TypedBody, DropsZeroValuesUnlessTheyMatter) {
  const auto pod = read_spec(R"({"containers":[{"name":"c","image":"","tty":false,"env":[],"ports":[{"containerPort":0,
      "hostPort":0}]}],"hostNetwork":false,"nodeName":"","terminationGracePeriodSeconds":0,"nodeSelector":{}})");
  ASSERT_TRUE(pod) << pod.error().text();
  EXPECT_EQ(*pod->object.find("spec"),
            parse(R"({"containers":[{"name":"c","ports":[{"containerPort":0}],"resources":{}}],
                      "terminationGracePeriodSeconds":0})"));
}

TEST(TypedBody, NullMeansAbsent) {
  const auto pod = read_text(kind("v1", "Pod"), R"({"metadata":{"name":"p","labels":{"a":null},"annotations":null,
      "creationTimestamp":null,"deletionTimestamp":null},"spec":{"containers":[null],"priority":null},"status":null})");
  ASSERT_TRUE(pod) << pod.error().text();
  EXPECT_EQ(pod->object, parse(R"({"apiVersion":"v1","kind":"Pod",
      "metadata":{"name":"p","labels":{"a":""}},
      "spec":{"containers":[{"name":"","resources":{}}]},"status":{}})"));
}

TEST(TypedBody, WhatIsKnownToBeCanonicalChangesNothing) {
  const Type& type = kind("v1", "Node");
  const auto whole = read_text(type, R"({"metadata":{"name":"n","labels":{"a":"b"}},"spec":{"taints":[{"key":"k",
      "effect":"NoSchedule"}]},"status":{"capacity":{"memory":"1024Mi","cpu":0.5},"conditions":[
      {"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-02T04:04:05+01:00"}]}})");
  ASSERT_TRUE(whole) << whole.error().text();
  const Json& canonical = whole->object;

  Json same = canonical;
  EXPECT_TRUE(read_body(type, same, &canonical)->object.shares(canonical));

  Json changed = canonical;
  changed.make({"status", "capacity", "memory"}) = "2048Mi";
  changed.make({"status", "unheard"}) = Json::object({{"of", 1}});
  (*changed.at({"status", "conditions"})->if_array())[0]["status"] = "";
  changed.make({"metadata", "labels", "a"}) = nullptr;
  changed.at({"spec", "taints"})->if_array()->insert(changed.at({"spec", "taints"})->if_array()->begin(), Json());
  const auto known = read_patched(type, changed, &canonical);
  const auto unknown = read_patched(type, changed);
  ASSERT_TRUE(known && unknown);
  EXPECT_EQ(known->object, unknown->object);
  EXPECT_EQ(known->unknown_fields, unknown->unknown_fields);
  EXPECT_EQ(known->object.string_at({"status", "capacity", "memory"}), "2Gi");

  changed.make({"status", "capacity"}) = Json::array({});
  EXPECT_FALSE(read_patched(type, changed, &canonical));
}

TEST(TypedBody, CanonicalQuantitiesTimesAndBytes) {
  const auto node = read_text(kind("v1", "Node"), R"({"metadata":{"name":"n",
      "creationTimestamp":"2026-01-02T04:04:05.678+01:00"},"status":{"capacity":{"memory":"1024Mi","cpu":0.5,
      "pods":110,"x":" 1000m "}}})");
  ASSERT_TRUE(node) << node.error().text();
  EXPECT_EQ(node->object.string_at({"metadata", "creationTimestamp"}), "2026-01-02T03:04:05Z");
  EXPECT_EQ(*node->object.at({"status", "capacity"}), parse(R"({"memory":"1Gi","cpu":"500m","pods":"110","x":"1"})"));
  const auto secret = read_text(kind("v1", "Secret"), R"({"data":{"a":"YQ==","b":"YWJj\nZGVm","c":null,"d":""}})");
  ASSERT_TRUE(secret) << secret.error().text();
  EXPECT_EQ(*secret->object.find("data"), parse(R"({"a":"YQ==","b":"YWJjZGVm","c":"","d":""})"));
  const auto lease = read_text(
      kind("coordination.k8s.io/v1", "Lease"),
      R"({"spec":{"renewTime":"2026-01-02T04:04:05.000000+01:00","acquireTime":"2026-01-02T03:04:05.100000Z"}})");
  ASSERT_TRUE(lease) << lease.error().text();
  EXPECT_EQ(lease->object.string_at({"spec", "renewTime"}), "2026-01-02T03:04:05.000000Z");
  EXPECT_EQ(lease->object.string_at({"spec", "acquireTime"}), "2026-01-02T03:04:05.100000Z");
  for (const std::string time : {"2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:05Z"}) {
    EXPECT_FALSE(read_text(kind("coordination.k8s.io/v1", "Lease"), R"({"spec":{"renewTime":")" + time + R"("}})"))
        << time;
  }
}

TEST(TypedBody, TheZeroTimeIsNull) {
  const auto event = read_text(kind("v1", "Event"), R"({"firstTimestamp":"0001-01-01T00:00:00Z"})");
  ASSERT_TRUE(event) << event.error().text();
  EXPECT_TRUE(event->object.find("firstTimestamp")->is_null());
}

TEST(TypedBody, IntegersStayExact) {
  const auto node =
      read_text(kind("v1", "Node"), R"({"status":{"images":[{"names":["i"],"sizeBytes":9223372036854775807}]}})");
  ASSERT_TRUE(node) << node.error().text();
  EXPECT_EQ((*node->object.at({"status", "images"})->if_array())[0].find("sizeBytes")->if_int64(), 9223372036854775807);
}

TEST(TypedBody, IntOrStringTakesBoth) {
  const auto budget =
      read_text(kind("policy/v1", "PodDisruptionBudget"), R"({"spec":{"minAvailable":"50%","maxUnavailable":3}})");
  ASSERT_TRUE(budget) << budget.error().text();
  EXPECT_EQ(*budget->object.at({"spec", "minAvailable"}), Json("50%"));
  EXPECT_EQ(*budget->object.at({"spec", "maxUnavailable"}), Json(3));
}

TEST(TypedBody, ExtraValuesAreListsOfStrings) {
  const Type& review = kind("authorization.k8s.io/v1", "SubjectAccessReview");
  EXPECT_TRUE(read_text(review, R"({"spec":{"extra":{"scopes":["a","b"]}}})"));
  EXPECT_FALSE(read_text(review, R"({"spec":{"extra":{"scopes":"a"}}})"));
  EXPECT_FALSE(read_text(review, R"({"spec":{"extra":{"scopes":[1]}}})"));
}

struct BadSpec {
  std::string_view spec;
  std::string_view path;
};

TEST(TypedBody, WrongValuesNameTheirPath) {
  for (const BadSpec& row : {
           BadSpec{R"({"hostNetwork":"yes"})", "spec.hostNetwork"},
           BadSpec{R"({"nodeName":1})", "spec.nodeName"},
           BadSpec{R"({"priority":1.5})", "spec.priority"},
           BadSpec{R"({"priority":1.0})", "spec.priority"},
           BadSpec{R"({"priority":2147483648})", "spec.priority"},
           BadSpec{R"({"priority":"1"})", "spec.priority"},
           BadSpec{R"({"activeDeadlineSeconds":9223372036854775808})", "spec.activeDeadlineSeconds"},
           BadSpec{R"({"containers":{}})", "spec.containers"},
           BadSpec{R"({"containers":["c"]})", "spec.containers[0]"},
           BadSpec{R"({"containers":[{"name":"c","resources":{"limits":{"cpu":"1x"}}}]})",
                   "spec.containers[0].resources.limits[cpu]"},
           BadSpec{R"({"containers":[{"name":"c","resources":{"limits":{"cpu":true}}}]})",
                   "spec.containers[0].resources.limits[cpu]"},
           BadSpec{R"({"containers":[{"name":"c","ports":[{"containerPort":"80"}]}]})",
                   "spec.containers[0].ports[0].containerPort"},
           BadSpec{R"({"containers":[{"name":"c","livenessProbe":{"httpGet":{"port":[]}}}]})",
                   "spec.containers[0].livenessProbe.httpGet.port"},
           BadSpec{R"({"nodeSelector":[]})", "spec.nodeSelector"},
           BadSpec{R"({"tolerations":[{"tolerationSeconds":"5"}]})", "spec.tolerations[0].tolerationSeconds"},
       }) {
    const auto pod = read_spec(row.spec);
    ASSERT_FALSE(pod) << row.spec;
    EXPECT_EQ(pod.error().code, ErrorCode::kBadRequest);
    EXPECT_TRUE(pod.error().message.starts_with(
        fmt::format("Pod in version \"v1\" cannot be handled as a Pod: {}: ", row.path)))
        << pod.error().message;
  }
}

TEST(TypedBody, BadTimesAndBase64AreRefused) {
  EXPECT_FALSE(read_text(kind("v1", "Pod"), R"({"metadata":{"creationTimestamp":"yesterday"}})"));
  EXPECT_FALSE(read_text(kind("v1", "Pod"), R"({"metadata":{"creationTimestamp":""}})"));
  EXPECT_FALSE(read_text(kind("v1", "Pod"), R"({"metadata":{"creationTimestamp":5}})"));
  EXPECT_FALSE(read_text(kind("v1", "Secret"), R"({"data":{"a":"$$$$"}})"));
  EXPECT_FALSE(read_text(kind("v1", "Secret"), R"({"data":{"a":5}})"));
}

TEST(TypedBody, WhatIsNoObjectOrNoJsonIsRefused) {
  for (const std::string_view text : {"", "[]", "null", "5", "{", R"({"a":1} x)", R"("text")"}) {
    const auto pod = read_text(kind("v1", "Pod"), text);
    ASSERT_FALSE(pod) << text;
    EXPECT_EQ(pod.error().code, ErrorCode::kBadRequest) << text;
  }
  EXPECT_FALSE(read_text(kind("v1", "Pod"), std::string(20'000, '[')));
}

TEST(TypedBody, AnotherKindIsRefused) {
  const Type& pod = kind("v1", "Pod");
  EXPECT_TRUE(read_text(pod, R"({"kind":"Pod"})"));
  EXPECT_TRUE(read_text(pod, R"({"apiVersion":"v1"})"));
  EXPECT_FALSE(read_text(pod, R"({"kind":"Node","apiVersion":"v1"})"));
  EXPECT_FALSE(read_text(pod, R"({"kind":"Pod","apiVersion":"v2"})"));
  EXPECT_FALSE(read_text(pod, R"({"kind":5})"));
  const auto eviction =
      read_text(kind("policy/v1", "Eviction"), R"({"kind":"Eviction","apiVersion":"policy/v1beta1"})");
  ASSERT_TRUE(eviction) << eviction.error().text();
  EXPECT_EQ(eviction->object.string_at({"apiVersion"}), "policy/v1");
}

TEST(TypedBody, UnknownFieldsAreDroppedAndListed) {
  const auto pod = read_text(kind("v1", "Pod"), R"({"metadata":{"name":"p","foo":1},"spec":{"containers":[
      {"name":"c","Image":"x"}],"bar":{}},"baz":[]})");
  ASSERT_TRUE(pod) << pod.error().text();
  EXPECT_EQ(pod->unknown_fields,
            (std::vector<std::string>{"baz", "metadata.foo", "spec.bar", "spec.containers[0].Image"}));
  EXPECT_EQ(pod->object.find("baz"), nullptr);
  EXPECT_EQ(pod->object.at({"metadata", "foo"}), nullptr);
}

TEST(TypedBody, StrictTextAndWarnings) {
  const auto map = read_text(kind("v1", "ConfigMap"), R"({"foo":1,"data":{"x":"1","x":"2"}})");
  ASSERT_TRUE(map) << map.error().text();
  EXPECT_EQ(*map->object.at({"data", "x"}), Json("2"));
  EXPECT_EQ(strict_text(*map), R"(strict decoding error: unknown field "foo", duplicate field "data.x")");
  EXPECT_EQ(field_warnings(*map), (std::vector<std::string>{R"(unknown field "foo")", R"(duplicate field "data.x")"}));
  EXPECT_EQ(strict_text(*read_text(kind("v1", "ConfigMap"), "{}")), "");
}

TEST(TypedBody, IsAFixedPoint) {
  const auto once = read_spec(R"({"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1000m"}},
      "env":[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}}],
      "livenessProbe":{"tcpSocket":{"port":"http"}}}],"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1.5Gi"}}]})");
  ASSERT_TRUE(once) << once.error().text();
  const auto twice = read_body(kind("v1", "Pod"), once->object);
  ASSERT_TRUE(twice) << twice.error().text();
  EXPECT_EQ(once->object, twice->object);
  EXPECT_EQ(once->object, read_patched(kind("v1", "Pod"), once->object)->object);
}

TEST(TypedPatched, ErrorsAreInvalidAtPatch) {
  const auto pod = read_patched(kind("v1", "Pod"), parse(R"({"spec":{"priority":"high"}})"));
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(pod.error().at, "patch");
  EXPECT_TRUE(pod.error().message.starts_with("spec.priority: ")) << pod.error().message;
  EXPECT_FALSE(read_patched(kind("v1", "Pod"), parse("[]")));
}

TEST(TypedPartial, FillsNothingInAndKeepsZeros) {
  const auto pod = read_partial(kind("v1", "Pod"), parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p",
      "creationTimestamp":null},"spec":{"containers":[{"name":"c","tty":false,"resources":{"limits":{"cpu":"1000m"}}}],
      "hostNetwork":false,"nodeName":""}})"));
  ASSERT_TRUE(pod) << pod.error().text();
  EXPECT_EQ(pod->object, parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[
      {"name":"c","tty":false,"resources":{"limits":{"cpu":"1"}}}],"hostNetwork":false,"nodeName":""}})"));
}

TEST(DocumentBounds, TooManyValuesAreRefusedWhileTheyAreRead) {
  // Three bytes each, and half a dozen values in canonical form.
  std::string containers;
  for (int i = 0; i < 5'000; ++i) containers += i == 0 ? "{}" : ",{}";
  const std::string text = R"({"spec":{"containers":[)" + containers + "]}}";
  const auto pod = read_body(*find_kind("v1", "Pod"), std::string_view(text));
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().code, ErrorCode::kRequestEntityTooLarge);

  std::string numbers = "[0";
  for (std::size_t i = 2; i < kParsedValuesMax; ++i) numbers += ",0";
  EXPECT_TRUE(parse_bounded_json(numbers + "]"));
  const auto one_more = parse_bounded_json(numbers + ",0]");
  ASSERT_FALSE(one_more);
  EXPECT_EQ(one_more.error().code, ErrorCode::kRequestEntityTooLarge);
  EXPECT_TRUE(parse_json(numbers + ",0]")) << "a list that a client reads is not bounded";
}

TEST(DocumentBounds, UnknownAndRepeatedFieldsAreListedUpToABound) {
  std::string members;
  for (int i = 0; i < 1'000; ++i) members += fmt::format(R"(,"x{}":1,"x{}":2)", i, i);
  const std::string deep(100'000, 'y');
  const std::string text = "{\"" + deep + "\":1" + members + "}";
  const auto read = read_body(*find_kind("v1", "ConfigMap"), std::string_view(text));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->unknown_fields.size(), kComplaintsMax);
  EXPECT_EQ(read->duplicate_fields.size(), kComplaintsMax);
  for (const std::string& path : read->unknown_fields) EXPECT_LE(path.size(), kComplaintBytesMax + 3);
}

}  // namespace
}  // namespace spillway::api
