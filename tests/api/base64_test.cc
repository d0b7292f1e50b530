#include "api/text/base64.h"

#include <gtest/gtest.h>

namespace spillway::api {
namespace {

// Source: RFC 4648, section 10.
TEST(Base64, FollowsTheRfcVectors) {
  for (const auto& [plain, coded] :
       {std::pair("", ""), std::pair("f", "Zg=="), std::pair("fo", "Zm8="), std::pair("foo", "Zm9v"),
        std::pair("foob", "Zm9vYg=="), std::pair("fooba", "Zm9vYmE="), std::pair("foobar", "Zm9vYmFy")}) {
    EXPECT_EQ(encode_base64(plain), coded);
    EXPECT_EQ(decode_base64(coded).value(), plain);
  }
}

TEST(Base64, EveryByteRoundTrips) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    const std::string part = bytes.substr(bytes.size() - length);
    EXPECT_EQ(decode_base64(encode_base64(part)).value(), part);
  }
}

TEST(Base64, LineBreaksAreSkipped) {
  EXPECT_EQ(decode_base64("Zm9v\r\nYmFy\n").value(), "foobar");
}

TEST(Base64, ForeignCharactersAndBadPaddingAreRefused) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Zm9v=", "Zm9v====", "Zg==Zg==", "Z===",
                                      "Zm9 v", "Zm9-", "Zm9_", "Zg=a"}) {
    const Result<std::string> result = decode_base64(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kBadRequest);
  }
}

TEST(Base64Url, OtherAlphabetNoPadding) {
  EXPECT_EQ(encode_base64_url("\xfb\xff\xfe!"), "-__-IQ");
  EXPECT_EQ(decode_base64_url("-__-IQ").value(), "\xfb\xff\xfe!");
  EXPECT_EQ(decode_base64_url("").value(), "");
  for (const std::string_view text : {"-__-IQ==", "+//+IQ", "-", "-__-I", "-__\n-IQ"}) {
    EXPECT_FALSE(decode_base64_url(text)) << text;
  }
}

}  // namespace
}  // namespace spillway::api
