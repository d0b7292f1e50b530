// Custom kinds whose versions a webhook converts: v1 has spec.hostPort ("host:port"), v2 has spec.host and spec.port.
#include "apiserver/crontabs.h"
#include "apiserver/server_fixture.h"
#include "apiserver/webhooks_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver::conversion_tests {
namespace {

using api::Json;
using Asked = TestWebhooks::Asked;
using Names = std::vector<std::string>;

const std::string kV1Convs = "/apis/example.com/v1/namespaces/default/convs";
const std::string kV2Convs = "/apis/example.com/v2/namespaces/default/convs";

constexpr std::string_view kVersions = R"({"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":
 {"type":"object","properties":{"spec":{"type":"object","properties":{"hostPort":{"type":"string"}}}}}},
 "subresources":{"status":{}},"selectableFields":[{"jsonPath":".spec.hostPort"}]},
{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":
 {"type":"object","required":["host"],"properties":{"host":{"type":"string"},"port":{"type":"string","default":"80"}}}}}},
 "subresources":{"status":{}},"selectableFields":[{"jsonPath":".spec.host"}]})";

Json conversion_definition(std::string_view conversion = R"({"strategy":"Webhook","webhook":{
    "conversionReviewVersions":["v1"],"clientConfig":{"url":"https://convert.example/it"}}})") {
  Json made = *api::parse_json(definition("convs", "Conv", "example.com", kVersions, "[]"));
  made["spec"]["conversion"] = *api::parse_json(conversion);
  return made;
}

/// The object as a right webhook converts it.
Json converted(Json object, std::string_view version) {
  object["apiVersion"] = version;
  Json& spec = object["spec"];
  if (version == "example.com/v2") {
    const std::string both(spec.string_at({"hostPort"}));
    const std::size_t colon = both.find(':');
    spec = Json::object({{"host", both.substr(0, colon)}, {"port", both.substr(colon + 1)}});
  } else {
    spec = Json::object({{"hostPort", fmt::format("{}:{}", spec.string_at({"host"}), spec.string_at({"port"}))}});
  }
  return object;
}

api::Response answer_with(const Asked& asked, Json objects, std::string_view members = "") {
  Json response = Json::object({{"uid", asked.uid()},
                                {"convertedObjects", std::move(objects)},
                                {"result", Json::object({{"status", "Success"}})}});
  if (!members.empty()) {
    const Json more = *api::parse_json(members);
    for (const auto& [key, value] : *more.if_object()) response[key] = value;
  }
  return {.status = 200,
          .headers = {},
          .body = api::to_text(Json::object({{"apiVersion", "apiextensions.k8s.io/v1"},
                                             {"kind", "ConversionReview"},
                                             {"response", std::move(response)}})),
          .document = nullptr};
}

Json all_converted(const Asked& asked) {
  Json objects = Json::array();
  const std::string_view version = asked.review.string_at({"request", "desiredAPIVersion"});
  for (const Json& object : *asked.review.at({"request", "objects"})->if_array()) {
    objects.if_array()->push_back(converted(object, version));
  }
  return objects;
}

struct ConversionWorld {
  ConversionWorld() {
    right();
    const Answer made = server.post(kDefinitionsPath, api::to_text(conversion_definition()));
    EXPECT_EQ(made.code, 201) << made.text;
    server.run_until_idle();
  }

  void right() {
    script([](const Asked& asked) { return answer_with(asked, all_converted(asked)); });
  }

  template <typename Answers>
  void script(Answers answers) {
    server.webhooks.answers = [answers](const Asked& asked) -> std::optional<Result<api::Response>> {
      return answers(asked);
    };
  }

  /// The webhook changes each converted object further.
  template <typename Change>
  void wrong(Change change) {
    script([change](const Asked& asked) {
      Json objects = all_converted(asked);
      for (Json& object : *objects.if_array()) change(object);
      return answer_with(asked, std::move(objects));
    });
  }

  Answer create(std::string_view name, std::string_view host_port = "a:1") {
    return server.post(kV1Convs,
                       fmt::format(R"({{"apiVersion":"example.com/v1","kind":"Conv","metadata":{{"name":"{}"}},)"
                                   R"("spec":{{"hostPort":"{}"}}}})",
                                   name, host_port));
  }

  Answer create_v2(std::string_view name, std::string_view spec) {
    return server.post(kV2Convs,
                       fmt::format(R"({{"apiVersion":"example.com/v2","kind":"Conv","metadata":{{"name":"{}"}},)"
                                   R"("spec":{}}})",
                                   name, spec));
  }

  std::size_t calls() const { return server.webhooks.asked.size(); }

  TestServer server;
};

std::string spec_of(const Answer& answer) {
  const Json* spec = answer.body.find("spec");
  return spec == nullptr ? answer.text : api::to_text(*spec);
}

TEST(Conversion, TheStoredVersionNeedsNoWebhook) {
  ConversionWorld world;
  world.script([](const Asked&) { return Result<api::Response>(make_error(ErrorCode::kServiceUnavailable, "gone")); });
  EXPECT_EQ(world.create("a").code, 201);
  EXPECT_EQ(spec_of(world.server.get(kV1Convs + "/a")), R"({"hostPort":"a:1"})");
  EXPECT_EQ(world.server.get(kV1Convs).code, 200);
  EXPECT_EQ(world.server.merge(kV1Convs + "/a", R"({"spec":{"hostPort":"b:2"}})").code, 200);
  EXPECT_EQ(world.calls(), 0U);
  const Answer defined = world.server.get(kDefinitionsPath + "/convs.example.com");
  EXPECT_EQ(api::to_text(*defined.body.at({"status", "storedVersions"})), R"(["v1"])");
}

TEST(Conversion, ReadsAreConverted) {
  ConversionWorld world;
  ASSERT_EQ(world.create("a", "one:1").code, 201);
  ASSERT_EQ(world.create("b", "two:2").code, 201);
  const Answer one = world.server.get(kV2Convs + "/a");
  ASSERT_EQ(one.code, 200) << one.text;
  EXPECT_EQ(one.string_at({"apiVersion"}), "example.com/v2");
  EXPECT_EQ(spec_of(one), R"({"host":"one","port":"1"})");
  const Json& request = *world.server.webhooks.asked.front().review.find("request");
  EXPECT_EQ(request.string_at({"desiredAPIVersion"}), "example.com/v2");
  EXPECT_EQ(world.server.webhooks.asked.front().call.target, "/it?timeout=30s");

  const std::size_t before = world.calls();
  const Answer list = world.server.get(kV2Convs);
  ASSERT_EQ(list.code, 200) << list.text;
  EXPECT_EQ(world.calls(), before + 1) << "a list is one review, and what was converted is kept";
  const Json::Array& items = *std::as_const(list.body).find("items")->if_array();
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items.front().string_at({"spec", "host"}), "one");
  EXPECT_EQ(items.back().string_at({"apiVersion"}), "example.com/v2");
  const Answer selected = world.server.get(kV2Convs + "?fieldSelector=spec.host%3Dtwo");
  ASSERT_EQ(selected.code, 200) << selected.text;
  ASSERT_EQ(selected.body.find("items")->if_array()->size(), 1U) << selected.text;
  const Answer page = world.server.get(kV2Convs + "?limit=1");
  EXPECT_EQ(page.body.find("items")->if_array()->size(), 1U) << page.text;
  EXPECT_FALSE(page.string_at({"metadata", "continue"}).empty());
}

TEST(Conversion, WritesAreStoredInTheStorageVersion) {
  ConversionWorld world;
  const Answer made = world.create_v2("a", R"({"host":"one","extra":1})");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(spec_of(made), R"({"host":"one","port":"80"})") << "pruned and defaulted by the version that was sent";
  EXPECT_EQ(spec_of(world.server.get(kV1Convs + "/a")), R"({"hostPort":"one:80"})");
  EXPECT_EQ(world.create_v2("b", "{}").code, 422) << "validated by the version that was sent";

  const Answer merged = world.server.merge(kV2Convs + "/a", R"({"spec":{"port":"81"}})");
  ASSERT_EQ(merged.code, 200) << merged.text;
  EXPECT_EQ(spec_of(merged), R"({"host":"one","port":"81"})");
  EXPECT_EQ(*merged.body.at({"metadata", "generation"}), Json(2));
  EXPECT_EQ(spec_of(world.server.get(kV1Convs + "/a")), R"({"hostPort":"one:81"})");
  const std::string version = merged.string_at({"metadata", "resourceVersion"});
  const Answer same = world.server.merge(kV2Convs + "/a", R"({"spec":{"port":"81"}})");
  EXPECT_EQ(same.string_at({"metadata", "resourceVersion"}), version) << "nothing changed, nothing is stored";
  const Answer put = world.server.put(kV2Convs + "/a", same.text);
  EXPECT_EQ(put.code, 200) << put.text;
  EXPECT_EQ(world.server.remove(kV2Convs + "/a").code, 200);
  EXPECT_EQ(world.server.get(kV1Convs + "/a").code, 404);
}

TEST(Conversion, ACollectionIsSelectedInTheVersionThatWasAskedFor) {
  ConversionWorld world;
  ASSERT_EQ(world.create("a", "one:1").code, 201);
  ASSERT_EQ(world.create("b", "two:2").code, 201);
  const Answer removed = world.server.remove(kV2Convs + "?fieldSelector=spec.host!%3Done");
  ASSERT_EQ(removed.code, 200) << removed.text;
  EXPECT_EQ(world.server.get(kV1Convs + "/a").code, 200);
  EXPECT_EQ(world.server.get(kV1Convs + "/b").code, 404);
}

TEST(Conversion, WatchesAreConvertedInOrder) {
  ConversionWorld world;
  ASSERT_EQ(world.create("a", "one:1").code, 201);
  const auto watch = world.server.watch(kV2Convs + "?watch=1");
  const auto other = world.server.watch(kV2Convs + "?watch=1");
  const auto some = world.server.watch(kV2Convs + "?watch=1&fieldSelector=spec.host%3Dtwo");
  const std::size_t before = world.calls();
  ASSERT_EQ(world.create("b", "two:2").code, 201);
  EXPECT_EQ(world.calls(), before + 1) << "a change is converted once, however many watch it";
  ASSERT_EQ(world.server.merge(kV1Convs + "/b", R"({"spec":{"hostPort":"three:3"}})").code, 200);
  ASSERT_EQ(world.server.remove(kV1Convs + "/a").code, 200);
  const Names all{"ADDED:a", "ADDED:b", "MODIFIED:b", "DELETED:a"};
  EXPECT_EQ(watch->names(), all);
  EXPECT_EQ(other->names(), all);
  EXPECT_EQ(some->names(), (Names{"ADDED:b", "DELETED:b"}));
  for (const Json& event : watch->events()) {
    EXPECT_EQ(event.string_at({"object", "apiVersion"}), "example.com/v2");
    EXPECT_FALSE(event.string_at({"object", "spec", "host"}).empty()) << api::to_text(event);
  }
  EXPECT_EQ(watch->events()[2].string_at({"object", "spec", "host"}), "three");
  EXPECT_FALSE(watch->ended);
}

TEST(Conversion, EventsWaitForASlowWebhookAndAFailureEndsTheWatch) {
  ConversionWorld world;
  const auto watch = world.server.watch(kV2Convs + "?watch=1");
  world.server.webhooks.answers = [](const Asked&) { return std::nullopt; };
  ASSERT_EQ(world.create("a", "one:1").code, 201);
  ASSERT_EQ(world.create("b", "two:2").code, 201);
  EXPECT_EQ(watch->names(), Names{});
  ASSERT_EQ(world.server.webhooks.open.size(), 1U);
  const Asked first = world.server.webhooks.asked.back();
  world.right();
  world.server.webhooks.answer_next(answer_with(first, all_converted(first)));
  world.server.run_until_idle();
  EXPECT_EQ(watch->names(), (Names{"ADDED:a", "ADDED:b"}));
  world.script([](const Asked&) { return Result<api::Response>(make_error(ErrorCode::kServiceUnavailable, "gone")); });
  ASSERT_EQ(world.create("c", "three:3").code, 201);
  ASSERT_EQ(watch->events().size(), 3U);
  EXPECT_EQ(watch->events().back().string_at({"type"}), "ERROR");
  EXPECT_TRUE(watch->ended);
}

TEST(Conversion, AnObjectOfAFormerStorageVersionIsConvertedOnReading) {
  ConversionWorld world;
  ASSERT_EQ(world.create("a", "one:1").code, 201);
  Json changed = conversion_definition();
  Json::Array& versions = *changed.at({"spec", "versions"})->if_array();
  versions.front()["storage"] = false;
  versions.back()["storage"] = true;
  const std::string path = kDefinitionsPath + "/convs.example.com";
  const Answer moved =
      world.server.merge(path, api::to_text(Json::object({{"spec", Json::object({{"versions", Json(versions)}})}})));
  ASSERT_EQ(moved.code, 200) << moved.text;
  EXPECT_EQ(api::to_text(*moved.body.at({"status", "storedVersions"})), R"(["v1","v2"])");
  world.server.run_until_idle();
  EXPECT_EQ(spec_of(world.server.get(kV2Convs + "/a")), R"({"host":"one","port":"1"})");
  const std::size_t before = world.calls();
  EXPECT_EQ(spec_of(world.server.get(kV1Convs + "/a")), R"({"hostPort":"one:1"})");
  EXPECT_EQ(world.calls(), before) << "it is stored so";
  ASSERT_EQ(world.server.merge(kV2Convs + "/a", R"({"metadata":{"labels":{"a":"b"}}})").code, 200);
  const std::size_t after = world.calls();
  EXPECT_EQ(spec_of(world.server.get(kV2Convs + "/a")), R"({"host":"one","port":"1"})");
  EXPECT_EQ(world.calls(), after) << "it is stored in v2 now";
}

TEST(Conversion, FailuresAreInUpstreamsWords) {
  ConversionWorld world;
  ASSERT_EQ(world.create("a").code, 201);
  const auto failure = [&] {
    const Answer answer = world.server.get(kV2Convs + "/a");
    EXPECT_EQ(answer.code, 500) << answer.text;
    return answer.string_at({"message"});
  };
  const std::string kind = "conversion webhook for example.com/v1, Kind=Conv ";
  world.script([](const Asked&) { return Result<api::Response>(make_error(ErrorCode::kServiceUnavailable, "gone")); });
  EXPECT_EQ(failure(), kind + R"(failed: Post "https://convert.example/it?timeout=30s": gone)");
  world.script([](const Asked& asked) {
    return answer_with(asked, Json::array(), R"({"result":{"status":"Failed","message":"no way"}})");
  });
  EXPECT_EQ(failure(), kind + "failed: no way");
  world.script([](const Asked& asked) { return answer_with(asked, Json::array(), R"({"result":{"status":"Odd"}})"); });
  EXPECT_EQ(failure(), kind + "failed: response.result.status was 'Odd', not 'Success'");
  world.script([](const Asked& asked) { return answer_with(asked, Json::array(), R"({"uid":"other"})"); });
  EXPECT_TRUE(failure().starts_with(kind + "failed: expected response.uid=\""));
  world.script([](const Asked& asked) { return answer_with(asked, Json::array()); });
  EXPECT_EQ(failure(), kind + "returned 0 objects, expected 1");
  world.wrong([](Json& object) { object["apiVersion"] = "example.com/v1"; });
  EXPECT_EQ(failure(),
            kind +
                "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received "
                "example.com/v1)");
  world.wrong([](Json& object) { object["kind"] = "Other"; });
  EXPECT_EQ(failure(), kind + "returned invalid object at index 0: invalid kind (expected Conv, received Other)");
  world.wrong([](Json& object) { object["metadata"]["name"] = "b"; });
  EXPECT_EQ(failure(), kind + "returned invalid object: must have the same name: a != b");
  world.wrong([](Json& object) { object["metadata"]["namespace"] = "other"; });
  EXPECT_EQ(failure(), kind + "returned invalid object: must have the same namespace: default != other");
  world.wrong([](Json& object) { object["metadata"]["uid"] = "1"; });
  EXPECT_TRUE(failure().starts_with(kind + "returned invalid object: must have the same UID: "));
  world.wrong([](Json& object) { object.make({"metadata", "labels"}) = "x"; });
  EXPECT_EQ(failure(), kind + "returned invalid metadata: invalid metadata.labels of type string in converted object");
  world.wrong([](Json& object) { object.make({"metadata", "annotations", "a"}) = Json(1); });
  EXPECT_EQ(failure(),
            kind +
                "returned invalid metadata: metadata.annotations[a] must be a string, but is int64 in converted "
                "object");
  world.wrong([](Json& object) { object.make({"metadata", "labels", "no good"}) = "x"; });
  EXPECT_TRUE(failure().starts_with(kind + "returned invalid metadata: metadata.labels"));
  world.script([](const Asked&) {
    return Result<api::Response>(api::Response{.status = 404, .headers = {}, .body = "", .document = nullptr});
  });
  EXPECT_EQ(failure(), kind + "failed: the server could not find the requested resource");
  world.right();
  EXPECT_EQ(world.server.get(kV2Convs + "/a").code, 200) << "no failure is kept";
}

TEST(Conversion, AWebhookChangesLabelsAndAnnotationsOnly) {
  ConversionWorld world;
  ASSERT_EQ(world.create("a").code, 201);
  world.wrong([](Json& object) {
    object.make({"metadata", "labels", "seen"}) = "yes";
    object.make({"metadata", "finalizers"}) = Json::array({Json("example.com/no")});
    object["metadata"]["resourceVersion"] = "1";
    object["metadata"]["creationTimestamp"] = "2000-01-01T00:00:00Z";
  });
  const Answer shown = world.server.get(kV2Convs + "/a");
  const Answer stored = world.server.get(kV1Convs + "/a");
  EXPECT_EQ(shown.string_at({"metadata", "labels", "seen"}), "yes") << shown.text;
  for (const std::string_view member : {"resourceVersion", "creationTimestamp", "uid"}) {
    EXPECT_EQ(shown.string_at({"metadata", member}), stored.string_at({"metadata", member}));
  }
  EXPECT_EQ(shown.body.at({"metadata", "finalizers"}), nullptr);
}

TEST(Conversion, ASlowWebhookHoldsUpItsOwnRequestsAlone) {
  ConversionWorld world;
  ASSERT_EQ(world.create("a").code, 201);
  world.server.webhooks.answers = [](const Asked&) { return std::nullopt; };
  const auto slow = world.server.send(api::Method::kGet, kV2Convs + "/a");
  EXPECT_EQ(world.server.get(kV1Convs + "/a").code, 200);
  EXPECT_FALSE(slow->answered());
  world.server.advance(seconds(31));
  ASSERT_TRUE(slow->answered());
  const Json answer = *api::parse_json(slow->response->body);
  EXPECT_EQ(answer.string_at({"message"}),
            "conversion webhook for example.com/v1, Kind=Conv failed: Post "
            "\"https://convert.example/it?timeout=30s\": context deadline exceeded");
}

TEST(Conversion, DefinitionsAreValidated) {
  TestServer server;
  const auto causes = [&](std::string_view conversion) {
    const Answer answer = server.post(kDefinitionsPath, api::to_text(conversion_definition(conversion)));
    EXPECT_EQ(answer.code, 422) << answer.text;
    return answer.string_at({"message"});
  };
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; };
  const std::string bare = causes(R"({"strategy":"Webhook"})");
  EXPECT_TRUE(
      has(bare, "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook"))
      << bare;
  EXPECT_TRUE(has(bare, "spec.conversion.conversionReviewVersions: Required value")) << bare;
  const std::string both = causes(
      R"({"strategy":"Webhook","webhook":{"conversionReviewVersions":["v2"],"clientConfig":{"url":"https://a/",
          "service":{"namespace":"a","name":"b"}}}})");
  EXPECT_TRUE(has(both, "exactly one of url or service is required")) << both;
  EXPECT_TRUE(has(both, "must include at least one of v1, v1beta1")) << both;
  const std::string http = causes(
      R"({"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1","v1"],"clientConfig":{"url":"http://a/"}}})");
  EXPECT_TRUE(has(http, "'https' is the only allowed URL scheme")) << http;
  EXPECT_TRUE(has(http, "duplicate version")) << http;
}

/// Admission of Convs by rules that name one version alone. The host of a webhook's URL is its name.
struct AdmittedWorld : ConversionWorld {
  AdmittedWorld() { set_answers(); }

  void set_answers() {
    server.webhooks.answers = [this](const Asked& asked) -> std::optional<Result<api::Response>> {
      if (asked.review.string_at({"kind"}) == "AdmissionReview") {
        reviews.push_back(*asked.review.find("request"));
        return patch.empty() ? webhook_tests::allowed(asked) : webhook_tests::patch(asked, patch);
      }
      ++conversions;
      if (is_broken) return Result<api::Response>(make_error(ErrorCode::kServiceUnavailable, "gone"));
      return answer_with(asked, all_converted(asked));
    };
  }

  static std::string rule(std::string_view version, std::string_view resource = "convs") {
    return fmt::format(
        R"([{{"operations":["*"],"apiGroups":["example.com"],"apiVersions":["{}"],"resources":["{}"]}}])", version,
        resource);
  }

  void add_webhook(std::string_view phase, std::string_view version, std::string_view members = "") {
    const Answer made = server.post(fmt::format("{}/{}webhookconfigurations", webhook_tests::kGroup, phase),
                                    webhook_tests::one("hook", fmt::format(R"("rules":{}{})", rule(version), members)));
    EXPECT_EQ(made.code, 201) << made.text;
  }

  void add_policy(std::string_view version, std::string_view expression, std::string_view members = "") {
    const Answer made =
        server.post(webhook_tests::kGroup + "/validatingadmissionpolicies",
                    fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{"matchConstraints":{{"resourceRules":{}}},)"
                                R"("validations":[{{"expression":"{}"}}]{}}}}})",
                                rule(version), expression, members));
    EXPECT_EQ(made.code, 201) << made.text;
    const Answer bound =
        server.post(webhook_tests::kGroup + "/validatingadmissionpolicybindings",
                    R"({"metadata":{"name":"p"},"spec":{"policyName":"p","validationActions":["Deny"]}})");
    EXPECT_EQ(bound.code, 201) << bound.text;
  }

  std::vector<Json> reviews;
  std::string patch;  // a JSON patch that each admission webhook answers with; empty: none
  bool is_broken = false;
  std::size_t conversions = 0;
};

TEST(ConversionForAdmission, AWebhookSeesTheVersionThatItsRulesName) {
  AdmittedWorld world;
  world.add_webhook("validating", "v1");
  ASSERT_EQ(world.create_v2("a", R"({"host":"one"})").code, 201);
  ASSERT_EQ(world.reviews.size(), 1U);
  const Json made = world.reviews.back();
  EXPECT_EQ(made.string_at({"kind", "version"}), "v1");
  EXPECT_EQ(made.string_at({"requestKind", "version"}), "v2");
  EXPECT_EQ(made.string_at({"object", "apiVersion"}), "example.com/v1");
  EXPECT_EQ(made.string_at({"object", "spec", "hostPort"}), "one:80");

  const Answer merged = world.server.merge(kV2Convs + "/a", R"({"spec":{"port":"81"}})");
  ASSERT_EQ(merged.code, 200) << merged.text;
  EXPECT_EQ(world.reviews.back().string_at({"object", "spec", "hostPort"}), "one:81");
  EXPECT_EQ(world.reviews.back().string_at({"oldObject", "spec", "hostPort"}), "one:80");
  EXPECT_EQ(world.server.merge(kV2Convs + "/a/status", R"({"metadata":{"labels":{"a":"b"}}})").code, 200);
  ASSERT_EQ(world.server.remove(kV2Convs + "/a").code, 200);
  EXPECT_EQ(world.reviews.back().string_at({"operation"}), "DELETE");
  EXPECT_EQ(world.reviews.back().string_at({"oldObject", "spec", "hostPort"}), "one:81");
  EXPECT_EQ(world.reviews.size(), 3U);
}

TEST(ConversionForAdmission, AnExactMatchNeedsNone) {
  AdmittedWorld world;
  world.add_webhook("validating", "v2", R"(,"matchPolicy":"Exact")");
  world.is_broken = true;
  EXPECT_EQ(world.create("a", "one:1").code, 201);
  EXPECT_EQ(world.reviews.size(), 0U);
  EXPECT_EQ(world.conversions, 0U);
}

TEST(ConversionForAdmission, APatchOfAnotherVersionIsConvertedBack) {
  AdmittedWorld world;
  world.add_webhook("mutating", "v2");
  world.patch = R"([{"op":"replace","path":"/spec/host","value":"other"}])";
  const Answer made = world.create("a", "one:1");
  ASSERT_EQ(made.code, 201) << made.text;
  EXPECT_EQ(world.reviews.back().string_at({"object", "spec", "host"}), "one");
  EXPECT_EQ(spec_of(made), R"({"hostPort":"other:1"})");
  EXPECT_EQ(world.conversions, 2U) << "to v2 and back";
  world.patch = R"([{"op":"add","path":"/spec/unknown","value":"x"}])";
  const Answer pruned = world.create("b", "one:1");
  ASSERT_EQ(pruned.code, 201) << pruned.text;
  EXPECT_EQ(spec_of(pruned), R"({"hostPort":"one:1"})");
}

TEST(ConversionForAdmission, ConditionsAndPoliciesSeeTheVersionThatTheyName) {
  AdmittedWorld world;
  world.add_webhook("validating", "v2",
                    R"(,"matchConditions":[{"name":"c","expression":"object.spec.host == 'seen'"}])");
  ASSERT_EQ(world.create("a", "one:1").code, 201);
  EXPECT_EQ(world.reviews.size(), 0U);
  ASSERT_EQ(world.create("b", "seen:1").code, 201);
  EXPECT_EQ(world.reviews.size(), 1U);

  world.add_policy("v2", "object.spec.host != 'bad'");
  const std::size_t before = world.conversions;
  EXPECT_EQ(world.create("c", "good:1").code, 201);
  EXPECT_EQ(world.conversions, before + 1) << "once for the policy and the webhook";
  const Answer refused = world.create("d", "bad:1");
  EXPECT_EQ(refused.code, 422) << refused.text;
  EXPECT_TRUE(refused.string_at({"message"}).ends_with("failed expression: object.spec.host != 'bad'"));
}

TEST(ConversionForAdmission, AFailedConversionEndsTheWrite) {
  AdmittedWorld world;
  world.add_webhook("validating", "v2", R"(,"failurePolicy":"Ignore")");
  world.is_broken = true;
  const std::string why =
      R"(conversion webhook for example.com/v1, Kind=Conv failed: Post "https://convert.example/it?timeout=30s": gone)";
  const Answer failed = world.create("a", "one:1");
  EXPECT_EQ(failed.code, 500) << failed.text;
  EXPECT_EQ(failed.string_at({"message"}), "Internal error occurred: " + why);
  EXPECT_EQ(world.server.get(kV1Convs + "/a").code, 404);
}

TEST(ConversionForAdmission, ThePolicyDecidesAboutAFailedConversion) {
  AdmittedWorld world;
  world.add_policy("v2", "true");
  world.is_broken = true;
  const Answer failed = world.create("a", "one:1");
  EXPECT_EQ(failed.code, 422) << failed.text;
  EXPECT_TRUE(failed.string_at({"message"})
                  .contains("ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed to configure "
                            "binding: failed to convert object version: conversion webhook for"))
      << failed.text;
  ASSERT_EQ(
      world.server
          .merge(webhook_tests::kGroup + "/validatingadmissionpolicies/p", R"({"spec":{"failurePolicy":"Ignore"}})")
          .code,
      200);
  EXPECT_EQ(world.create("a", "one:1").code, 201);
}

}  // namespace
}  // namespace spillway::apiserver::conversion_tests
