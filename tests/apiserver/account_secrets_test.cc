// Secrets that request a token of an account.
#include "api/text/base64.h"
#include "apiserver/server_fixture.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::apiserver {
namespace {

const std::string kSecretsHere = "/api/v1/namespaces/default/secrets";
const std::string kAccountsHere = "/api/v1/namespaces/default/serviceaccounts";
constexpr const char* kRobotToken =
    R"({"metadata":{"name":"robot-token","annotations":{"kubernetes.io/service-account.name":"robot"}},)"
    R"("type":"kubernetes.io/service-account-token"})";

std::string decoded(const Answer& secret, std::string_view key) {
  const auto bytes = api::decode_base64(secret.string_at({"data", key}));
  return bytes ? *bytes : std::string();
}

class AccountSecretsTest : public ::testing::Test {
 protected:
  Answer secret() { return server_.get(kSecretsHere + "/robot-token"); }

  void make_account() { ASSERT_EQ(server_.post(kAccountsHere, R"({"metadata":{"name":"robot"}})").code, 201); }

  void make_secret() { ASSERT_EQ(server_.post(kSecretsHere, kRobotToken).code, 201); }

  std::string bearer_of(const std::string& token) {
    return server_
        .post("/apis/authentication.k8s.io/v1/tokenreviews",
              api::to_text(api::Json::object({{"spec", api::Json::object({{"token", token}})}})))
        .string_at({"status", "user", "username"});
  }

  TestServer server_{ApiServer::Controllers::kUnknown, {}, "PEM"};
};

TEST_F(AccountSecretsTest, GetATokenACertificateAndTheNamespace) {
  make_account();
  make_secret();
  server_.run_until_idle();
  const Answer filled = secret();
  EXPECT_EQ(decoded(filled, "namespace"), "default");
  EXPECT_EQ(decoded(filled, "ca.crt"), "PEM");
  EXPECT_EQ(filled.string_at({"metadata", "annotations", "kubernetes.io/service-account.uid"}),
            server_.get(kAccountsHere + "/robot").string_at({"metadata", "uid"}));
  EXPECT_EQ(bearer_of(decoded(filled, "token")), "system:serviceaccount:default:robot");
}

TEST_F(AccountSecretsTest, WaitForTheirAccount) {
  make_secret();
  server_.advance(minutes(1));
  EXPECT_EQ(decoded(secret(), "token"), "");
  make_account();
  server_.run_until_idle();
  EXPECT_EQ(bearer_of(decoded(secret(), "token")), "system:serviceaccount:default:robot");
}

TEST_F(AccountSecretsTest, KeepWhatTheyHoldAndGetBackWhatIsTakenAway) {
  make_account();
  make_secret();
  server_.run_until_idle();
  const std::string token = decoded(secret(), "token");
  server_.merge(kSecretsHere + "/robot-token", R"({"data":{"other":"eA==","ca.crt":null}})");
  server_.run_until_idle();
  EXPECT_EQ(decoded(secret(), "token"), token);
  EXPECT_EQ(decoded(secret(), "other"), "x");
  EXPECT_EQ(decoded(secret(), "ca.crt"), "PEM");
}

TEST_F(AccountSecretsTest, TheTokenEndsWithItsSecretAndIsNotGivenToAnotherAccountOfThatName) {
  make_account();
  make_secret();
  server_.run_until_idle();
  const std::string token = decoded(secret(), "token");
  server_.remove(kSecretsHere + "/robot-token");
  EXPECT_EQ(bearer_of(token), "");
  ASSERT_EQ(
      server_
          .post(kSecretsHere,
                R"({"metadata":{"name":"robot-token","annotations":{"kubernetes.io/service-account.name":"robot",)"
                R"("kubernetes.io/service-account.uid":"another"}},"type":"kubernetes.io/service-account-token"})")
          .code,
      201);
  server_.run_until_idle();
  EXPECT_EQ(decoded(secret(), "token"), "");
}

TEST_F(AccountSecretsTest, ASecretOfAnotherTypeGetsNothing) {
  make_account();
  ASSERT_EQ(
      server_
          .post(kSecretsHere,
                R"({"metadata":{"name":"robot-token","annotations":{"kubernetes.io/service-account.name":"robot"}}})")
          .code,
      201);
  server_.run_until_idle();
  EXPECT_EQ(decoded(secret(), "token"), "");
}

TEST_F(AccountSecretsTest, AreFilledAfterARestart) {
  make_secret();
  make_account();
  server_.run_until_idle();
  server_.merge(kSecretsHere + "/robot-token", R"({"data":{"token":null}})");
  server_.restart();
  server_.run_until_idle();
  EXPECT_NE(decoded(secret(), "token"), "");
}

}  // namespace
}  // namespace spillway::apiserver
