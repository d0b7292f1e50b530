// The user that a request is authenticated as.
#include "wire/server/authenticator.h"

#include "api/exchange/account_token.h"
#include "wire/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

api::Request with(api::HeaderList headers) {
  api::Request request;
  request.headers = std::move(headers);
  return request;
}

Authenticator make_authenticator() {
  auto tokens = parse_token_file("secret,admin,1,\"system:masters,ops\"\nother,bob,2\n", "tokens.csv");
  EXPECT_TRUE(tokens);
  return Authenticator({.tokens = *tokens});
}

constexpr std::nullopt_t kNoCertificate = std::nullopt;
constexpr WallTime kNow = WallTime(seconds(1'767'225'600));  // 2026-01-01T00:00:00Z

TEST(Authenticator, NoCredentialsMeanAnonymous) {
  const auto user = make_authenticator().authenticate(kNoCertificate, with({}), kNow);
  ASSERT_TRUE(user);
  EXPECT_EQ(user->name, "system:anonymous");
  EXPECT_THAT(user->groups, ElementsAre("system:unauthenticated"));
}

TEST(Authenticator, CertificateNamesUserAndGroups) {
  const PeerCertificate certificate{"system:node:n1", {"system:nodes"}, std::nullopt};
  const auto user = make_authenticator().authenticate(certificate, with({{"authorization", "Bearer wrong"}}), kNow);
  ASSERT_TRUE(user) << "the certificate counts before the token";
  EXPECT_EQ(user->name, "system:node:n1");
  EXPECT_THAT(user->groups, ElementsAre("system:nodes", "system:authenticated"));
}

TEST(Authenticator, BadCertificateIs401) {
  const PeerCertificate expired{"admin", {"system:masters"}, "certificate has expired"};
  const auto user = make_authenticator().authenticate(expired, with({}), kNow);
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().code, ErrorCode::kUnauthorized);
  EXPECT_THAT(user.error().message, HasSubstr("certificate has expired"));
  EXPECT_FALSE(make_authenticator().authenticate(PeerCertificate{"", {"g"}, std::nullopt}, with({}), kNow));
}

TEST(Authenticator, ACertificateThatEndsWhileItsConnectionLastsIs401FromThenOn) {
  telemetry::Registry metrics;
  const Authenticator authenticator({.tokens = {}, .metrics = &metrics});
  const PeerCertificate certificate{"admin", {"system:masters"}, std::nullopt, kNow};
  EXPECT_TRUE(authenticator.authenticate(certificate, with({}), kNow - seconds(2'000)));
  EXPECT_TRUE(authenticator.authenticate(certificate, with({}), kNow - seconds(1)));
  const auto user = authenticator.authenticate(certificate, with({}), kNow);
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().code, ErrorCode::kUnauthorized);
  EXPECT_THAT(user.error().message, HasSubstr("certificate has expired"));
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("apiserver_client_certificate_expiration_seconds_bucket{le=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("apiserver_client_certificate_expiration_seconds_bucket{le=\"1800\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("apiserver_client_certificate_expiration_seconds_bucket{le=\"3600\"} 3\n"));
}

TEST(Authenticator, TokenNamesUserUidAndGroups) {
  for (const char* header : {"Bearer secret", "bearer  secret "}) {
    const auto user = make_authenticator().authenticate(kNoCertificate, with({{"authorization", header}}), kNow);
    ASSERT_TRUE(user) << header;
    EXPECT_EQ(user->name, "admin");
    EXPECT_EQ(user->uid, "1");
    EXPECT_THAT(user->groups, ElementsAre("system:masters", "ops", "system:authenticated"));
  }
}

TEST(Authenticator, UnknownTokenIs401EvenWhereAnonymousWouldPass) {
  for (const char* header : {"Bearer secre", "Bearer secret2", "Bearer SECRET"}) {
    const auto user = make_authenticator().authenticate(kNoCertificate, with({{"authorization", header}}), kNow);
    ASSERT_FALSE(user) << header;
    EXPECT_EQ(user.error().code, ErrorCode::kUnauthorized);
  }
}

TEST(Authenticator, OtherSchemesIdentifyNoUser) {
  for (const char* header : {"Basic c2VjcmV0", "secret", "Bearer", "Bearer  "}) {
    const auto user = make_authenticator().authenticate(kNoCertificate, with({{"authorization", header}}), kNow);
    ASSERT_TRUE(user) << header;
    EXPECT_EQ(user->name, "system:anonymous");
  }
}

TEST(Authenticator, AdministratorsActAsOthers) {
  const auto user = make_authenticator().authenticate(kNoCertificate,
                                                      with({{"authorization", "Bearer secret"},
                                                            {"impersonate-user", "eve"},
                                                            {"impersonate-group", "dev"},
                                                            {"impersonate-group", "qa"}}),
                                                      kNow);
  ASSERT_TRUE(user);
  EXPECT_EQ(user->name, "eve");
  EXPECT_THAT(user->groups, ElementsAre("dev", "qa", "system:authenticated"));
}

TEST(Authenticator, ImpersonatedServiceAccountsAndAnonymousGetTheirGroups) {
  const Authenticator authenticator = make_authenticator();
  const auto account = authenticator.authenticate(
      kNoCertificate,
      with({{"authorization", "Bearer secret"}, {"impersonate-user", "system:serviceaccount:shop:cart"}}), kNow);
  ASSERT_TRUE(account);
  EXPECT_THAT(account->groups,
              ElementsAre("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"));
  const auto anonymous = authenticator.authenticate(
      kNoCertificate, with({{"authorization", "Bearer secret"}, {"impersonate-user", "system:anonymous"}}), kNow);
  ASSERT_TRUE(anonymous);
  EXPECT_THAT(anonymous->groups, ElementsAre("system:unauthenticated"));
}

TEST(Authenticator, OthersMayNotImpersonate) {
  const auto user = make_authenticator().authenticate(
      kNoCertificate, with({{"authorization", "Bearer other"}, {"impersonate-user", "admin"}}), kNow);
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().code, ErrorCode::kForbidden);
  EXPECT_THAT(user.error().message, HasSubstr("User \"bob\" cannot impersonate"));
}

TEST(Authenticator, GroupsWithoutAUserAreABadRequest) {
  const auto user = make_authenticator().authenticate(
      kNoCertificate, with({{"authorization", "Bearer secret"}, {"impersonate-group", "dev"}}), kNow);
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().code, ErrorCode::kBadRequest);
}

TEST(Authenticator, PassesTokensToTheHandler) {
  const Authenticator authenticator({.tokens = {{"secret", {"bob"}}}, .verified = Authenticator::Tokens::kHandler});
  const auto token = authenticator.authenticate(kNoCertificate, with({{"authorization", "Bearer secret"}}), kNow);
  ASSERT_TRUE(token);
  EXPECT_EQ(token->name, "system:anonymous");
  const PeerCertificate master{"admin", {"system:masters"}, std::nullopt};
  const auto acting = authenticator.authenticate(master, with({{"impersonate-user", "bob"}}), kNow);
  ASSERT_TRUE(acting);
  EXPECT_EQ(acting->name, "admin") << "nobody acts as somebody else here";
}

/// A key, and a token signed with it that is valid at kNow unless the test changes it.
class AccountTokens : public ::testing::Test {
 protected:
  AccountTokens() {
    auto opened = TokenKey::open(folder_ / "pki");
    EXPECT_TRUE(opened) << opened.error().text();
    key_ = *std::move(opened);
    token_ = {.issuer = key_->issuer(),
              .id = "j",
              .audiences = {key_->issuer(), "vault"},
              .issued = kNow,
              .not_before = kNow,
              .expires = kNow + hours(1),
              .ns = "shop",
              .account = {"cart", "u1"},
              .pod = api::ObjectIdentity{"cart-1", "u2"},
              .secret = std::nullopt,
              .node = api::ObjectIdentity{"n1", "u3"}};
  }

  Authenticator authenticator() const { return Authenticator({.tokens = {{"fixed", {"bob"}}}, .account_key = key_}); }

  std::string text() const { return key_->sign(api::to_claims(token_)).value(); }

  Result<api::UserInfo> enter(const std::string& bearer, WallTime now = kNow) const {
    return authenticator().authenticate(kNoCertificate, with({{"authorization", "Bearer " + bearer}}), now);
  }

  TempFolder folder_;
  std::shared_ptr<const TokenKey> key_;
  api::AccountToken token_;
};

TEST_F(AccountTokens, NameTheAccountAndWhatTheyAreBoundTo) {
  const auto user = enter(text());
  ASSERT_TRUE(user) << user.error().text();
  EXPECT_EQ(user->name, "system:serviceaccount:shop:cart");
  EXPECT_EQ(user->uid, "u1");
  EXPECT_THAT(user->groups,
              ElementsAre("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"));
  EXPECT_THAT(user->extra.at("authentication.kubernetes.io/pod-uid"), ElementsAre("u2"));
  EXPECT_THAT(user->extra.at("authentication.kubernetes.io/node-name"), ElementsAre("n1"));
  EXPECT_THAT(user->extra.at("authentication.kubernetes.io/credential-id"), ElementsAre("JTI=j"));
  ASSERT_TRUE(user->token);
  EXPECT_EQ(*user->token, token_);
}

TEST_F(AccountTokens, AreGoodFromTheirFirstToTheirLastSecond) {
  const std::string good = text();
  EXPECT_TRUE(enter(good, kNow - minutes(1)));
  EXPECT_TRUE(enter(good, kNow + minutes(59)));
  const auto expired = enter(good, kNow + hours(1));
  ASSERT_FALSE(expired);
  EXPECT_EQ(expired.error().code, ErrorCode::kUnauthorized);
  EXPECT_EQ(expired.error().message, "Unauthorized: token has expired at 2026-01-01T01:00:00Z");
  const auto early = enter(good, kNow - minutes(1) - seconds(1));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().message, "Unauthorized: token is not valid before 2026-01-01T00:00:00Z");
}

TEST_F(AccountTokens, MustBeMeantForThisServer) {
  token_.audiences = {"vault"};
  const auto user = enter(text());
  ASSERT_FALSE(user);
  EXPECT_THAT(user.error().message, HasSubstr("token is meant for \"vault\""));
  token_.audiences = {key_->issuer()};
  token_.issuer = "https://elsewhere";
  EXPECT_THAT(enter(text()).error().message, HasSubstr("another issuer"));
}

TEST_F(AccountTokens, ReviewsAnswerWithTheAudiencesAskedFor) {
  const auto both = authenticator().identify_token(text(), {"other", "vault", key_->issuer()}, kNow);
  ASSERT_TRUE(both && *both);
  EXPECT_THAT((*both)->audiences, ElementsAre("vault", key_->issuer()));
  const auto none = authenticator().identify_token(text(), {"other"}, kNow);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnauthorized);
  const auto unknown = authenticator().identify_token("a.b.c", {}, kNow);
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(*unknown) << "nobody's token is not an error";
  const auto fixed = authenticator().identify_token("fixed", {}, kNow);
  ASSERT_TRUE(fixed && *fixed);
  EXPECT_EQ((*fixed)->user.name, "bob");
  EXPECT_THAT((*fixed)->audiences, ElementsAre(key_->issuer()));
  const auto foreign = authenticator().identify_token("fixed", {"vault"}, kNow);
  EXPECT_TRUE(foreign && !*foreign);
}

TEST_F(AccountTokens, OfAnotherKeyAreForged) {
  const TempFolder other_folder;
  const auto other = TokenKey::open(other_folder / "pki");
  ASSERT_TRUE(other);
  const auto user = enter((*other)->sign(api::to_claims(token_)).value());
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().message, "Unauthorized: service account token: not signed by this cluster");
}

TEST(TokenFile, SkipsCommentsAndEmptyLines) {
  const auto entries = parse_token_file("# who\n\n t , u , i , \"a, b\" \r\n", "f");
  ASSERT_TRUE(entries) << entries.error().text();
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().token, "t");
  EXPECT_THAT(entries->front().user.groups, ElementsAre("a", "b"));
}

TEST(TokenFile, NamesTheLineThatIsWrong) {
  const std::pair<const char*, const char*> rows[] = {
      {"a,b,c\nonly-token\n", "f:2: expected token,user,uid[,\"group1,group2\"], got 1 fields"},
      {"a,b,c,d,e", "f:1: expected token,user,uid[,\"group1,group2\"], got 5 fields"},
      {",user,uid", "f:1: token or user is empty"},
      {"a,b,c,\"open", "f:1: a quote is not closed"},
  };
  for (const auto& [text, want] : rows) {
    const auto entries = parse_token_file(text, "f");
    ASSERT_FALSE(entries) << text;
    EXPECT_EQ(entries.error().text(), want);
  }
}

TEST(TokenFile, NamesAMissingFile) {
  const TempFolder folder;
  const auto entries = read_token_file(folder / "none");
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().text(), folder / "none" + ": No such file or directory");
}

}  // namespace
}  // namespace spillway::wire
