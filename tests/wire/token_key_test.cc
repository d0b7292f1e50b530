// The key that signs service account tokens: made once, private, and hard to deceive.
#include "wire/tls/token_key.h"

#include "api/text/base64.h"
#include "wire/temp_folder.h"
#include "wire/tls/private_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

namespace spillway::wire {
namespace {

using ::testing::HasSubstr;

std::string pem_of(EVP_PKEY* key, bool whole) {
  BIO* bio = BIO_new(BIO_s_mem());
  const int written = whole ? PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr)
                            : PEM_write_bio_PUBKEY(bio, key);
  EXPECT_EQ(written, 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

const api::Json kClaims = api::Json::object({{"sub", "somebody"}, {"exp", 4711}});

TEST(TokenKey, WhatItSignsIsGenuine) {
  const TempFolder folder;
  const auto key = TokenKey::open(folder / "pki");
  ASSERT_TRUE(key) << key.error().text();
  const auto token = (*key)->sign(kClaims);
  ASSERT_TRUE(token) << token.error().text();
  EXPECT_TRUE(TokenKey::has_token_form(*token));
  const auto claims = (*key)->verify(*token);
  ASSERT_TRUE(claims) << claims.error().text();
  EXPECT_EQ(*claims, kClaims);
}

TEST(TokenKey, PublicKeysAreShownAsOpenIdWantsThem) {
  const TempFolder folder;
  EVP_PKEY* rsa = EVP_RSA_gen(2048);
  ASSERT_TRUE(replace_file(folder / "rsa.pem", pem_of(rsa, false)));
  EVP_PKEY_free(rsa);
  const auto key = TokenKey::open(folder / "pki", {.signing = {}, .accepted = {folder / "rsa.pem"}});
  ASSERT_TRUE(key) << key.error().text();
  const auto set = (*key)->key_set();
  ASSERT_TRUE(set) << set.error().text();
  const api::Json::Array& keys = *std::as_const(*set).find("keys")->if_array();
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].string_at({"kid"}), (*key)->id());
  EXPECT_EQ(keys[0].string_at({"kty"}), "EC");
  EXPECT_EQ(keys[0].string_at({"alg"}), "ES256");
  EXPECT_EQ(keys[0].string_at({"crv"}), "P-256");
  for (const std::string_view member : {"x", "y"}) {
    EXPECT_EQ(api::decode_base64_url(keys[0].string_at({member})).value_or("").size(), 32U);
  }
  EXPECT_EQ(keys[0].find("d"), nullptr) << "the private number";
  EXPECT_EQ(keys[1].string_at({"kty"}), "RSA");
  EXPECT_EQ(keys[1].string_at({"e"}), "AQAB");
  EXPECT_EQ(api::decode_base64_url(keys[1].string_at({"n"})).value_or("").size(), 256U);
  const api::Json document = (*key)->discovery("https://10.0.0.1:6443/openid/v1/jwks");
  EXPECT_EQ(api::to_text(document),
            R"({"id_token_signing_alg_values_supported":["ES256","RS256"],)"
            R"("issuer":"https://kubernetes.default.svc.cluster.local",)"
            R"("jwks_uri":"https://10.0.0.1:6443/openid/v1/jwks","response_types_supported":["id_token"],)"
            R"("subject_types_supported":["public"]})");
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
  for (const char* header : {R"({"alg":"none"})", R"({"alg":"HS256"})", "{}", "[]"}) {
    const auto claims = (*key)->verify(api::encode_base64_url(header) + rest);
    ASSERT_FALSE(claims) << header;
    EXPECT_THAT(claims.error().message, HasSubstr("not signed with ES256 or RS256"));
  }
  EXPECT_FALSE((*key)->verify(api::encode_base64_url(R"({"alg":"RS256"})") + rest));
  EXPECT_FALSE((*key)->verify(api::encode_base64_url(R"({"alg":"none"})") + "." + api::encode_base64_url("{}") + "."));
  EXPECT_FALSE((*key)->verify(std::string(TokenKey::kTokenBytesMax + 1, 'a')));
}

TEST(TokenKey, MalformedTokensAreDistinguished) {
  for (const char* text : {"", "secret", "a.b", "a.b.c", "..", "e30.e30.x.y"}) {
    EXPECT_FALSE(TokenKey::has_token_form(text)) << text;
  }
  EXPECT_TRUE(TokenKey::has_token_form("e30.e30.x"));
}

std::string rsa_key(int bits) {
  const KeyPtr key(EVP_RSA_gen(static_cast<unsigned>(bits)));
  return pem_of(key.get(), true);
}

TEST(TokenKey, AGivenKeySignsAndOthersAreAccepted) {
  const TempFolder folder;
  const auto own = TokenKey::open(folder / "pki");
  ASSERT_TRUE(own);
  const std::string given = folder / "given.key";
  ASSERT_TRUE(replace_file(given, rsa_key(2048)));
  const auto rsa = TokenKey::open(folder / "none", {.signing = given, .accepted = {folder / "pki/sa.key"}});
  ASSERT_TRUE(rsa) << rsa.error().text();
  const std::string token = (*rsa)->sign(kClaims).value();
  EXPECT_TRUE((*rsa)->verify(token));
  EXPECT_TRUE((*rsa)->verify((*own)->sign(kClaims).value())) << "a key that is accepted besides";
  EXPECT_FALSE((*own)->verify(token)) << "one that is not";
  EXPECT_NE((*rsa)->id(), (*own)->id());
  // The public key is enough to verify tokens of the private one.
  const auto read = parse_key(read_file(given).value(), given);
  ASSERT_TRUE(read);
  const std::string half = folder / "given.pub";
  ASSERT_TRUE(replace_file(half, pem_of(read->get(), false)));
  const auto accepting = TokenKey::open(folder / "pki", {.signing = {}, .accepted = {half}});
  ASSERT_TRUE(accepting) << accepting.error().text();
  EXPECT_TRUE((*accepting)->verify(token));
  EXPECT_EQ((*accepting)->id(), (*own)->id());
  for (std::size_t i = 0; i + 2 < token.size(); i += 7) {
    std::string bad = token;
    bad[i] = bad[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE((*accepting)->verify(bad)) << i;
  }
}

TEST(TokenKey, AnotherKeyUnderTheNameOfAKnownOneIsRefused) {
  const TempFolder folder;
  const auto one = TokenKey::open(folder / "one");
  const auto other = TokenKey::open(folder / "other");
  ASSERT_TRUE(one && other);
  const std::string token = (*other)->sign(kClaims).value();
  const std::string header = api::encode_base64_url(R"({"alg":"ES256","kid":")" + (*one)->id() + R"("})");
  EXPECT_FALSE((*one)->verify(header + token.substr(token.find('.'))));
}

TEST(TokenKey, FilesThatCannotBeUsedAreNamed) {
  const TempFolder folder;
  ASSERT_TRUE(replace_file(folder / "small", rsa_key(1024)));
  ASSERT_TRUE(replace_file(folder / "empty", ""));
  std::string many;
  for (std::size_t i = 0; i < TokenKey::kKeysMax; ++i) many += pem_of(KeyPtr(EVP_EC_gen("P-256")).get(), false);
  ASSERT_TRUE(replace_file(folder / "many", many));
  const auto problem = [&](const TokenKey::Files& files) {
    const auto key = TokenKey::open(folder / "pki", files);
    return key ? std::string() : key.error().text();
  };
  EXPECT_THAT(problem({.signing = folder / "small", .accepted = {}}),
              HasSubstr("small: expected an ECDSA P-256 key, or"));
  EXPECT_THAT(problem({.signing = folder / "none", .accepted = {}}), HasSubstr("none"));
  EXPECT_THAT(problem({.signing = {}, .accepted = {folder / "empty"}}), HasSubstr("empty: expected a public key"));
  EXPECT_THAT(problem({.signing = {}, .accepted = {folder / "many"}}), HasSubstr("many: more than 16 keys"));
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
