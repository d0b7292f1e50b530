// An API server with admission webhooks that a test plays.
#pragma once

#include "api/text/base64.h"
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver::webhook_tests {

using api::Json;
using Texts = std::vector<std::string>;

inline const std::string kGroup = "/apis/admissionregistration.k8s.io/v1";

/// One webhook of a configuration of its own, for configmaps unless `members` say otherwise.
inline std::string one(std::string_view configuration, std::string_view members = "") {
  Json webhook = *api::parse_json(
      fmt::format(R"({{"name":"{0}.hooks.dev","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":)"
                  R"({{"url":"https://{0}"}},"rules":[{{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],)"
                  R"("resources":["configmaps"]}}]}})",
                  configuration));
  const auto more = api::parse_json(fmt::format("{{{}}}", members));
  EXPECT_TRUE(more) << members;
  for (const auto& [key, value] : *std::as_const(*more).if_object()) webhook[key] = value;
  return api::to_text(Json::object(
      {{"metadata", Json::object({{"name", configuration}})}, {"webhooks", Json::array({std::move(webhook)})}}));
}

inline std::string rules(std::string_view operations, std::string_view resources, std::string_view groups = "\"\"") {
  return fmt::format(R"("rules":[{{"operations":[{}],"apiGroups":[{}],"apiVersions":["*"],"resources":[{}]}}])",
                     operations, groups, resources);
}

inline api::Response review(const TestWebhooks::Asked& asked, Json response) {
  response["uid"] = asked.uid();
  return {.status = 200,
          .headers = {},
          .body = api::to_text(Json::object(
              {{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}})),
          .document = nullptr};
}

inline api::Response allowed(const TestWebhooks::Asked& asked) {
  return review(asked, Json::object({{"allowed", true}}));
}

inline api::Response denied(const TestWebhooks::Asked& asked, std::string_view why, int code = 403) {
  return review(asked,
                Json::object({{"allowed", false},
                              {"status", Json::object({{"code", code}, {"message", why}, {"reason", "Forbidden"}})}}));
}

inline api::Response patch(const TestWebhooks::Asked& asked, std::string_view operations) {
  return review(
      asked, Json::object({{"allowed", true}, {"patchType", "JSONPatch"}, {"patch", api::encode_base64(operations)}}));
}

/// The webhook's name: the host of its URL.
inline std::string host(const TestWebhooks::Asked& asked) {
  return asked.call.origin.substr(8);
}

struct World {
  explicit World(AdmissionRules rules = {}) : server(ApiServer::Controllers::kUnknown, std::move(rules)) {
    server.webhooks.answers = [this](const TestWebhooks::Asked& asked) -> std::optional<Result<api::Response>> {
      called.push_back(host(asked));
      const auto found = script.find(host(asked));
      return found == script.end() ? allowed(asked) : found->second(asked);
    };
  }

  void mutating(std::string_view name, std::string_view members = "") { make("mutating", name, members); }

  void validating(std::string_view name, std::string_view members = "") { make("validating", name, members); }

  void make(std::string_view phase, std::string_view name, std::string_view members) {
    const Answer made = server.post(fmt::format("{}/{}webhookconfigurations", kGroup, phase), one(name, members));
    EXPECT_EQ(made.code, 201) << made.text;
  }

  Answer create(std::string_view name, std::string_view data = R"("a":"1")", std::string_view query = "") {
    return server.post(kMaps + std::string(query),
                       fmt::format(R"({{"metadata":{{"name":"{}"}},"data":{{{}}}}})", name, data));
  }

  std::string metrics() { return server.get("/metrics").text; }

  TestServer server;
  std::map<std::string, TestWebhooks::Answers> script;
  Texts called;
};

/// Adds a member of data.
inline TestWebhooks::Answers adds(std::string_view key) {
  return [key = std::string(key)](const TestWebhooks::Asked& asked) {
    return patch(asked, fmt::format(R"([{{"op":"add","path":"/data/{}","value":"set"}}])", key));
  };
}

}  // namespace spillway::apiserver::webhook_tests
