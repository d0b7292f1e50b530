// The key that signs service account tokens: made once, private, and hard to deceive.
#include "wire/tls/token_key.h"

#include "api/text/base64.h"
#include "wire/temp_folder.h"
#include "wire/tls/private_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;

const api::Json kClaims = api::Json::object({{"sub", "somebody"}, {"exp", 4711}});

TEST(TokenKey, WhatItSignsIsGenuine) {
  const TempFolder folder;
  const auto key = TokenKey::open(folder / "pki");
  ASSERT_TRUE(key) << key.error().text();
  const auto token = (*key)->sign(kClaims);
  ASSERT_TRUE(token) << token.error().text();
  EXPECT_TRUE(TokenKey::looks_like_token(*token));
  const auto claims = (*key)->verify(*token);
  ASSERT_TRUE(claims) << claims.error().text();
  EXPECT_EQ(*claims, kClaims);
}

TEST(TokenKey, SignaturesOfAnyNumbersRoundTrip) {
  const TempFolder folder;
  const auto key = TokenKey::open(folder / "pki");
  ASSERT_TRUE(key);
  // One of 128 signatures has a number with a leading zero byte.
  for (int i = 0; i < 300; ++i) {
    const auto token = (*key)->sign(api::Json::object({{"n", i}}));
    ASSERT_TRUE(token);
    ASSERT_TRUE((*key)->verify(*token)) << *token;
  }
}

TEST(TokenKey, IsKeptAndPrivate) {
  const TempFolder folder;
  const auto first = TokenKey::open(folder / "pki");
  ASSERT_TRUE(first);
  const std::string token = (*first)->sign(kClaims).value();
  const auto again = TokenKey::open(folder / "pki");
  ASSERT_TRUE(again);
  EXPECT_TRUE((*again)->verify(token)) << "tokens outlive a restart";
  EXPECT_EQ(folder.mode("pki/sa.key"), 0600U);
}

TEST(TokenKey, EveryChangedCharacterIsRefused) {
  const TempFolder folder;
  const auto key = TokenKey::open(folder / "pki");
  ASSERT_TRUE(key);
  const std::string token = (*key)->sign(kClaims).value();
  // The last character carries four bits of the signature and two that mean nothing.
  for (std::size_t i = 0; i + 1 < token.size(); ++i) {
    std::string bad = token;
    bad[i] = bad[i] == 'A' ? 'B' : 'A';
    const auto claims = (*key)->verify(bad);
    ASSERT_FALSE(claims) << i;
    EXPECT_EQ(claims.error().code, ErrorCode::kUnauthorized);
  }
  for (std::size_t size = 0; size + 1 < token.size(); ++size) {
    ASSERT_FALSE((*key)->verify(token.substr(0, size))) << size;
  }
}

TEST(TokenKey, OtherAlgorithmsAreRefused) {
  const TempFolder folder;
  const auto key = TokenKey::open(folder / "pki");
  ASSERT_TRUE(key);
  const std::string token = (*key)->sign(kClaims).value();
  const std::string rest = token.substr(token.find('.'));
  for (const char* header : {R"({"alg":"none"})", R"({"alg":"HS256"})", R"({"alg":"RS256"})", "{}", "[]"}) {
    const auto claims = (*key)->verify(api::encode_base64_url(header) + rest);
    ASSERT_FALSE(claims) << header;
    EXPECT_THAT(claims.error().message, HasSubstr("not signed with ES256"));
  }
  EXPECT_FALSE((*key)->verify(api::encode_base64_url(R"({"alg":"none"})") + "." + api::encode_base64_url("{}") + "."));
  EXPECT_FALSE((*key)->verify(std::string(TokenKey::kTokenBytesMax + 1, 'a')));
}

TEST(TokenKey, WhatIsNoTokenIsToldApart) {
  for (const char* text : {"", "secret", "a.b", "a.b.c", "..", "e30.e30.x.y"}) {
    EXPECT_FALSE(TokenKey::looks_like_token(text)) << text;
  }
  EXPECT_TRUE(TokenKey::looks_like_token("e30.e30.x"));
}

TEST(TokenKey, ADamagedFileIsNamed) {
  const TempFolder folder;
  ASSERT_TRUE(make_private_folder(folder / "pki"));
  const std::string path = folder / "pki/sa.key";
  ASSERT_TRUE(replace_file(path, "garbage"));
  const auto key = TokenKey::open(folder / "pki");
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().text(), HasSubstr(path + ": not a PEM private key"));
}

}  // namespace
}  // namespace spillway::wire
