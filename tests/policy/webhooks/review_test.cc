// The question to a webhook and the strict reading of its answer. Messages are upstream's.
#include "api/text/base64.h"
#include "policy/webhooks/review_answer.h"
#include "policy/webhooks/review_request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace spillway::webhooks {

namespace {

using api::Json;

std::string review(std::string_view response) {
  return fmt::format(R"({{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{}}})", response);
}

Result<ReviewAnswer> read(std::string_view response, Phase phase = Phase::kMutating) {
  return read_answer(phase, "u1", review(response));
}

std::string problem(std::string_view response, Phase phase = Phase::kMutating) {
  const auto answer = read(response, phase);
  return answer ? "none" : answer.error().text();
}

std::string with_patch(std::string_view patch, std::string_view type = "JSONPatch") {
  return fmt::format(R"({{"uid":"u1","allowed":true,"patchType":"{}","patch":"{}"}})", type, api::encode_base64(patch));
}

TEST(ReviewRequest, SaysWhatIsAsked) {
  const api::UserInfo user{"jane", "7", {"a", "b"}, {{"scopes", {"x"}}}};
  const Json object = Json::object({{"kind", "Pod"}});
  const Json options = Json::object({{"kind", "CreateOptions"}});
  const ResourceName pods{"", "v1", "pods"};
  const std::string text = review_text({.uid = "u1",
                                        .operation = Operation::kCreate,
                                        .kind = {"", "v1", "Pod"},
                                        .resource = pods,
                                        .asked_kind = {"", "v1", "Pod"},
                                        .asked_resource = pods,
                                        .subresource = "status",
                                        .name = "p",
                                        .ns = "shop",
                                        .user = user,
                                        .object = &object,
                                        .dry_run = true,
                                        .options = options});
  EXPECT_EQ(text,
            R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"dryRun":true,"kind":)"
            R"({"group":"","kind":"Pod","version":"v1"},"name":"p","namespace":"shop","object":{"kind":"Pod"},)"
            R"("oldObject":null,"operation":"CREATE","options":{"kind":"CreateOptions"},"requestKind":{"group":"",)"
            R"("kind":"Pod","version":"v1"},"requestResource":{"group":"","resource":"pods","version":"v1"},)"
            R"("requestSubResource":"status","resource":{"group":"","resource":"pods","version":"v1"},)"
            R"("subResource":"status","uid":"u1","userInfo":{"extra":{"scopes":["x"]},"groups":["a","b"],"uid":"7",)"
            R"("username":"jane"}}})");
}

TEST(ReviewAnswer, ReadsAllOfIt) {
  const auto answer = read(R"({"uid":"u1","allowed":false,"warnings":["w"],"auditAnnotations":{"k":"v"},)"
                           R"("status":{"code":418,"message":"no","reason":"Teapot"}})");
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->allowed);
  EXPECT_EQ(answer->warnings, std::vector<std::string>{"w"});
  ASSERT_EQ(answer->annotations.size(), 1U);
  EXPECT_EQ(answer->annotations[0].second, "v");
  const api::Status status = denial_status("a.b.c", answer->status);
  EXPECT_EQ(status.code, 418);
  EXPECT_EQ(status.reason, "Teapot");
  EXPECT_EQ(status.message, R"(admission webhook "a.b.c" denied the request: no)");
}

TEST(ReviewAnswer, WhatDoesNotSayThatItIsAllowedIsNot) {
  const auto answer = read(R"({"uid":"u1"})");
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->allowed);
  const api::Status status = denial_status("a.b.c", answer->status);
  EXPECT_EQ(status.code, 400);
  EXPECT_EQ(status.message, R"(admission webhook "a.b.c" denied the request without explanation)");
  EXPECT_EQ(problem(R"({"uid":"u1","allowed":"true"})"), "response.allowed is a string, expected true or false");
}

TEST(ReviewAnswer, ARefusalIsNoSuccess) {
  for (const int code : {-5, 0, 200, 302, 399, 600, 100000}) {
    const auto answer =
        read(fmt::format(R"({{"uid":"u1","allowed":false,"status":{{"code":{},"reason":"R"}}}})", code));
    ASSERT_TRUE(answer);
    EXPECT_EQ(denial_status("a", answer->status).code, 400) << code;
    EXPECT_EQ(denial_status("a", answer->status).message, R"(admission webhook "a" denied the request: R)");
  }
}

TEST(ReviewAnswer, WhatIsNoAnswer) {
  EXPECT_EQ(read_answer(Phase::kMutating, "u1", "[]").error().text(), "expected an AdmissionReview, got a list");
  EXPECT_FALSE(read_answer(Phase::kMutating, "u1", "<html>"));
  EXPECT_FALSE(read_answer(Phase::kMutating, "u1", ""));
  EXPECT_EQ(read_answer(Phase::kMutating, "u1", R"({"apiVersion":"v1","kind":"Status"})").error().text(),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Status");
  EXPECT_FALSE(
      read_answer(Phase::kMutating, "u1",
                  R"({"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{"uid":"u1"}})"));
  EXPECT_EQ(problem("null"), "webhook response was absent");
  EXPECT_EQ(problem("[]"), "webhook response is no object");
  EXPECT_EQ(problem(R"({"uid":"u2","allowed":true})"), R"(expected response.uid="u1", got "u2")");
  EXPECT_EQ(problem(R"({"allowed":true})"), R"(expected response.uid="u1", got "")");
  EXPECT_EQ(problem(R"({"uid":7,"allowed":true})"),
            "response.uid is " + std::string(api::type_phrase(Json(7))) + ", expected a string");
  EXPECT_EQ(problem(R"({"uid":"u1","warnings":["a",1]})"), "response.warnings has an element that is not a string");
  EXPECT_EQ(problem(R"({"uid":"u1","auditAnnotations":{"a":1}})"),
            "response.auditAnnotations has a value that is not a string");
  EXPECT_EQ(problem(R"({"uid":"u1","status":{"code":"403"}})"), "response.status.code is no integer");
}

TEST(ReviewAnswer, Patches) {
  const auto answer = read(with_patch(R"([{"op":"add","path":"/a","value":1}])"));
  ASSERT_TRUE(answer) << answer.error().text();
  ASSERT_TRUE(answer->patch);
  const auto made = patched(Json::object({{"b", 2}}), *answer->patch);
  ASSERT_TRUE(made);
  EXPECT_EQ(api::to_text(*made), R"({"a":1,"b":2})");
  EXPECT_FALSE(read(with_patch("[]"))->patch);
  EXPECT_EQ(problem(with_patch("{}")), "response.patch is no list of operations");
  EXPECT_EQ(problem(with_patch("[]", "MergePatch")), R"(webhook returned invalid response.patchType of "MergePatch")");
  EXPECT_EQ(problem(R"({"uid":"u1","patch":"W10="})"), "webhook returned response.patch but not response.patchType");
  EXPECT_EQ(problem(R"({"uid":"u1","patchType":"JSONPatch"})"),
            "webhook returned response.patchType but not response.patch");
  EXPECT_NE(problem(R"({"uid":"u1","patchType":"JSONPatch","patch":"[]"})"), "none");  // not in base64
  EXPECT_EQ(problem(with_patch("[]"), Phase::kValidating), "validating webhook may not return response.patch");
  EXPECT_EQ(problem(R"({"uid":"u1","patchType":"JSONPatch"})", Phase::kValidating),
            "validating webhook may not return response.patchType");
}

TEST(ReviewAnswer, APatchThatDoesNotFit) {
  const auto patch = api::parse_json(R"([{"op":"remove","path":"/none"}])");
  const auto made = patched(Json::object(), *patch);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, 500);
  EXPECT_TRUE(made.error().message.starts_with("Internal error occurred: ")) << made.error().message;
}

TEST(ReviewAnswer, AnObjectDoesNotGrowWithoutBound) {
  const std::string megabyte(1U << 20U, 'x');
  Json::Array operations;
  for (const char name : {'a', 'b', 'c', 'd'}) {
    operations.push_back(Json::object({{"op", "add"}, {"path", fmt::format("/{}", name)}, {"value", megabyte}}));
  }
  const auto made = patched(Json::object(), Json(std::move(operations)));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "Internal error occurred: the patch makes an object of more than 3145728 bytes");
}

TEST(ReviewAnswer, IsBounded) {
  std::string warnings;
  std::string annotations;
  for (int i = 0; i < 1000; ++i) {
    warnings += fmt::format(R"({}"{}{}")", i == 0 ? "" : ",", std::string(20'000 / (i + 1) + 1, 'w'), i);
    annotations += fmt::format(R"({}"k{}":"v")", i == 0 ? "" : ",", i);
  }
  const auto answer = read(
      fmt::format(R"({{"uid":"u1","allowed":true,"warnings":[{}],"auditAnnotations":{{{}}}}})", warnings, annotations));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->warnings.size(), kWarningsMax);
  EXPECT_LE(answer->warnings[0].size(), kAnswerTextMax + 3);
  EXPECT_EQ(answer->annotations.size(), kAnnotationsMax);
  std::string many = "[0";
  for (int i = 0; i < 30'000; ++i) many += ",0";
  EXPECT_NE(problem(fmt::format(R"({{"uid":"u1","allowed":true,"x":{}]}})", many)), "none");
  const std::string deep(100'000, '[');
  EXPECT_NE(problem(fmt::format(R"({{"uid":"u1","allowed":true,"x":{}}})", deep)), "none");
}

TEST(ReviewAnswer, Failures) {
  const api::Status status = failure_status("a.b.c", "failed to call webhook: x");
  EXPECT_EQ(status.code, 500);
  EXPECT_EQ(status.reason, "InternalError");
  EXPECT_EQ(status.message, R"(Internal error occurred: failed calling webhook "a.b.c": failed to call webhook: x)");
  EXPECT_EQ(dry_run_status("a.b.c").message, R"(admission webhook "a.b.c" does not support dry run)");
  EXPECT_EQ(dry_run_status("a.b.c").code, 400);
}

}  // namespace

}  // namespace spillway::webhooks
