// Who a request comes from.
#include "wire/authenticator.h"

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

TEST(Authenticator, NobodyIsAnonymous) {
  const auto user = make_authenticator().authenticate(kNoCertificate, with({}));
  ASSERT_TRUE(user);
  EXPECT_EQ(user->name, "system:anonymous");
  EXPECT_THAT(user->groups, ElementsAre("system:unauthenticated"));
}

TEST(Authenticator, CertificateNamesUserAndGroups) {
  const PeerCertificate certificate{"system:node:n1", {"system:nodes"}, std::nullopt};
  const auto user = make_authenticator().authenticate(certificate, with({{"authorization", "Bearer wrong"}}));
  ASSERT_TRUE(user) << "the certificate counts before the token";
  EXPECT_EQ(user->name, "system:node:n1");
  EXPECT_THAT(user->groups, ElementsAre("system:nodes", "system:authenticated"));
}

TEST(Authenticator, BadCertificateIs401) {
  const PeerCertificate expired{"admin", {"system:masters"}, "certificate has expired"};
  const auto user = make_authenticator().authenticate(expired, with({}));
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().code, ErrorCode::kUnauthorized);
  EXPECT_THAT(user.error().message, HasSubstr("certificate has expired"));
  EXPECT_FALSE(make_authenticator().authenticate(PeerCertificate{"", {"g"}, std::nullopt}, with({})));
}

TEST(Authenticator, TokenNamesUserUidAndGroups) {
  for (const char* header : {"Bearer secret", "bearer  secret "}) {
    const auto user = make_authenticator().authenticate(kNoCertificate, with({{"authorization", header}}));
    ASSERT_TRUE(user) << header;
    EXPECT_EQ(user->name, "admin");
    EXPECT_EQ(user->uid, "1");
    EXPECT_THAT(user->groups, ElementsAre("system:masters", "ops", "system:authenticated"));
  }
}

TEST(Authenticator, UnknownTokenIs401EvenWhereAnonymousWouldPass) {
  for (const char* header : {"Bearer secre", "Bearer secret2", "Bearer SECRET"}) {
    const auto user = make_authenticator().authenticate(kNoCertificate, with({{"authorization", header}}));
    ASSERT_FALSE(user) << header;
    EXPECT_EQ(user.error().code, ErrorCode::kUnauthorized);
  }
}

TEST(Authenticator, OtherSchemesAreNobody) {
  for (const char* header : {"Basic c2VjcmV0", "secret", "Bearer", "Bearer  "}) {
    const auto user = make_authenticator().authenticate(kNoCertificate, with({{"authorization", header}}));
    ASSERT_TRUE(user) << header;
    EXPECT_EQ(user->name, "system:anonymous");
  }
}

TEST(Authenticator, AdministratorsActAsOthers) {
  const auto user = make_authenticator().authenticate(kNoCertificate, with({{"authorization", "Bearer secret"},
                                                                            {"impersonate-user", "eve"},
                                                                            {"impersonate-group", "dev"},
                                                                            {"impersonate-group", "qa"}}));
  ASSERT_TRUE(user);
  EXPECT_EQ(user->name, "eve");
  EXPECT_THAT(user->groups, ElementsAre("dev", "qa", "system:authenticated"));
}

TEST(Authenticator, ImpersonatedServiceAccountsAndAnonymousGetTheirGroups) {
  const Authenticator authenticator = make_authenticator();
  const auto account = authenticator.authenticate(
      kNoCertificate,
      with({{"authorization", "Bearer secret"}, {"impersonate-user", "system:serviceaccount:shop:cart"}}));
  ASSERT_TRUE(account);
  EXPECT_THAT(account->groups,
              ElementsAre("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"));
  const auto anonymous = authenticator.authenticate(
      kNoCertificate, with({{"authorization", "Bearer secret"}, {"impersonate-user", "system:anonymous"}}));
  ASSERT_TRUE(anonymous);
  EXPECT_THAT(anonymous->groups, ElementsAre("system:unauthenticated"));
}

TEST(Authenticator, OthersMayNotImpersonate) {
  const auto user = make_authenticator().authenticate(
      kNoCertificate, with({{"authorization", "Bearer other"}, {"impersonate-user", "admin"}}));
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().code, ErrorCode::kForbidden);
  EXPECT_THAT(user.error().message, HasSubstr("User \"bob\" cannot impersonate"));
}

TEST(Authenticator, GroupsWithoutAUserAreABadRequest) {
  const auto user = make_authenticator().authenticate(
      kNoCertificate, with({{"authorization", "Bearer secret"}, {"impersonate-group", "dev"}}));
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().code, ErrorCode::kBadRequest);
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
