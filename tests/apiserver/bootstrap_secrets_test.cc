// Parsing of bootstrap tokens in Secrets, and the table of accepted tokens that follows the Secrets.
#include "apiserver/access/bootstrap_secrets.h"

#include "api/text/base64.h"
#include "api/text/time_text.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {
namespace {

using api::Json;
using Data = std::map<std::string, std::string>;

const Data kGood{
    {"token-id", "abcdef"}, {"token-secret", "0123456789abcdef"}, {"usage-bootstrap-authentication", "true"}};

Data with(std::string key, std::string value) {
  Data data = kGood;
  data.insert_or_assign(std::move(key), std::move(value));
  return data;
}

Data without(const std::string& key) {
  Data data = kGood;
  data.erase(key);
  return data;
}

Json secret_of(const Data& data, std::string_view name = "bootstrap-token-abcdef") {
  Json values = Json::object({});
  for (const auto& [key, value] : data) values[key] = api::encode_base64(value);
  Json metadata = Json::object({{"namespace", "kube-system"}, {"name", name}});
  return Json::object(
      {{"metadata", std::move(metadata)}, {"type", "bootstrap.kubernetes.io/token"}, {"data", std::move(values)}});
}

TEST(BootstrapToken, IsReadFromItsSecret) {
  EXPECT_EQ(bootstrap_token_of(secret_of(kGood)), (BootstrapToken{"abcdef", "0123456789abcdef", {}, std::nullopt}));
  const auto token = bootstrap_token_of(
      secret_of(with("auth-extra-groups", "system:bootstrappers:a,system:bootstrappers:b-1:2,system:bootstrappers:a")));
  ASSERT_TRUE(token);
  EXPECT_EQ(token->groups, (std::vector<std::string>{"system:bootstrappers:a", "system:bootstrappers:b-1:2"}));
  const auto ends = bootstrap_token_of(secret_of(with("expiration", "2030-01-02T03:04:05Z")));
  ASSERT_TRUE(ends);
  EXPECT_EQ(ends->expires, api::parse_time("2030-01-02T03:04:05Z").value());
}

TEST(BootstrapToken, IsNoneIfAnythingOfItIsNotAsItMustBe) {
  for (const char* key : {"token-id", "token-secret", "usage-bootstrap-authentication"}) {
    EXPECT_FALSE(bootstrap_token_of(secret_of(without(key)))) << key;
  }
  for (const auto& [key, value] : Data{{"token-id", "abcdeF"}, {"token-secret", "0123456789abcde"}}) {
    EXPECT_FALSE(bootstrap_token_of(secret_of(with(key, value)))) << key;
  }
  for (const char* value : {"True", "1", "false", ""}) {
    EXPECT_FALSE(bootstrap_token_of(secret_of(with("usage-bootstrap-authentication", value)))) << value;
  }
  for (const char* value : {"soon", "2030-01-02", "12"}) {
    EXPECT_FALSE(bootstrap_token_of(secret_of(with("expiration", value)))) << value;
  }
  for (const char* value : {"system:masters", "system:bootstrappers", "system:bootstrappers:", "system:bootstrappers:A",
                            "system:bootstrappers:a,", "system:bootstrappers:a,system:nodes",
                            "system:bootstrappers:a:", "system:bootstrappers:a b", " system:bootstrappers:a"}) {
    const bool allowed = std::string_view(value) == "system:bootstrappers:a,";  // nothing follows the comma
    EXPECT_EQ(bootstrap_token_of(secret_of(with("auth-extra-groups", value))).has_value(), allowed) << value;
  }
  EXPECT_FALSE(bootstrap_token_of(secret_of(kGood, "bootstrap-token-abcdeg")));
  Json secret = secret_of(kGood);
  secret["type"] = "Opaque";
  EXPECT_FALSE(bootstrap_token_of(secret));
  secret = secret_of(kGood);
  secret["metadata"]["namespace"] = "default";
  EXPECT_FALSE(bootstrap_token_of(secret));
  secret = secret_of(kGood);
  secret["metadata"]["deletionTimestamp"] = "2030-01-02T03:04:05Z";
  EXPECT_FALSE(bootstrap_token_of(secret));
}

TEST(BootstrapSecrets, TheTableFollowsTheSecrets) {
  TestServer server;
  const std::string secrets = "/api/v1/namespaces/kube-system/secrets";
  const std::string path = secrets + "/bootstrap-token-abcdef";
  EXPECT_EQ(server.post(secrets, api::to_text(secret_of(kGood))).code, 201);
  EXPECT_EQ(server.bootstrap_tokens.known, (std::set<std::string>{"abcdef"}));
  EXPECT_EQ(server.merge(path, R"({"data":{"usage-bootstrap-authentication":null}})").code, 200);
  EXPECT_TRUE(server.bootstrap_tokens.known.empty());
  EXPECT_EQ(server.merge(path, R"({"data":{"usage-bootstrap-authentication":"dHJ1ZQ=="}})").code, 200);
  EXPECT_EQ(server.bootstrap_tokens.known, (std::set<std::string>{"abcdef"}));
  server.bootstrap_tokens.known.clear();
  server.restart();
  EXPECT_EQ(server.bootstrap_tokens.known, (std::set<std::string>{"abcdef"})) << "those that were there before";
  EXPECT_EQ(server.remove(path).code, 200);
  EXPECT_TRUE(server.bootstrap_tokens.known.empty());
}

Data ending(const TestServer& server, Duration from_now) {
  const WallTime ends = server.now().wall + std::chrono::duration_cast<seconds>(from_now);
  return with("expiration", api::format_time(ends));
}

TEST(BootstrapSecrets, GoWhenTheyHaveExpired) {
  TestServer server;
  const std::string secrets = "/api/v1/namespaces/kube-system/secrets";
  const auto code = [&](const char* name) { return server.get(secrets + "/" + name).code; };
  server.post(secrets, api::to_text(secret_of(ending(server, minutes(10)))));
  server.post(secrets, api::to_text(secret_of(kGood, "bootstrap-token-stays")));
  Json other = secret_of(ending(server, minutes(10)), "of-another-type");
  other["type"] = "Opaque";
  server.post(secrets, api::to_text(other));
  Json elsewhere = secret_of(ending(server, minutes(10)));
  elsewhere.make({"metadata", "namespace"}) = "default";
  server.post("/api/v1/namespaces/default/secrets", api::to_text(elsewhere));
  server.advance(minutes(9));
  EXPECT_EQ(code("bootstrap-token-abcdef"), 200);
  server.advance(minutes(2));
  EXPECT_EQ(code("bootstrap-token-abcdef"), 404);
  EXPECT_TRUE(server.bootstrap_tokens.known.empty());
  EXPECT_EQ(code("bootstrap-token-stays"), 200) << "it never ends";
  EXPECT_EQ(code("of-another-type"), 200);
  EXPECT_EQ(server.get("/api/v1/namespaces/default/secrets/bootstrap-token-abcdef").code, 200);
}

TEST(BootstrapSecrets, WhoseExpirationIsPutOffStay) {
  TestServer server;
  const std::string secrets = "/api/v1/namespaces/kube-system/secrets";
  const std::string path = secrets + "/bootstrap-token-abcdef";
  server.post(secrets, api::to_text(secret_of(ending(server, minutes(10)))));
  server.advance(minutes(5));
  const Json later = Json::object({{"data", *secret_of(ending(server, hours(72))).find("data")}});
  EXPECT_EQ(server.merge(path, api::to_text(later)).code, 200);
  server.advance(hours(71));
  EXPECT_EQ(server.get(path).code, 200);
  server.restart();
  EXPECT_EQ(server.get(path).code, 200);
  server.advance(hours(2));
  EXPECT_EQ(server.get(path).code, 404);
  server.post(secrets, api::to_text(secret_of(with("expiration", "soon"))));
  server.advance(minutes(1));
  EXPECT_EQ(server.get(path).code, 404) << "what cannot be read has expired";
}

}  // namespace
}  // namespace spillway::apiserver
