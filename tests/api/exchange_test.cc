#include "api/exchange/exchange.h"

#include <gtest/gtest.h>

namespace spillway::api {
namespace {

TEST(Method, TextAndBack) {
  for (const Method method :
       {Method::kGet, Method::kHead, Method::kPost, Method::kPut, Method::kPatch, Method::kDelete, Method::kOptions}) {
    EXPECT_EQ(parse_method(to_string(method)), method);
  }
  EXPECT_EQ(parse_method("get"), Method::kOther) << "methods are case-sensitive";
  EXPECT_EQ(parse_method("CONNECT"), Method::kOther);
}

TEST(Headers, AreFoundWhateverTheirCase) {
  const Request request{.headers = {{"accept", "a"}, {"accept", "b"}}};
  EXPECT_EQ(request.header("accept"), "a");
  EXPECT_EQ(request.header("content-type"), "");
  const Response response{.headers = {{"Content-Type", "application/json"}}};
  EXPECT_EQ(response.header("content-type"), "application/json");
  EXPECT_EQ(response.header("Content-TYPE"), "application/json");
  EXPECT_EQ(response.header("content"), "");
}

TEST(PercentEncoding, RoundTripsEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const auto decoded = percent_decode(percent_encode(all));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, all);
  EXPECT_EQ(percent_encode("a-b_c.d~e/f g=h"), "a-b_c.d~e%2Ff%20g%3Dh");
}

TEST(PercentEncoding, RefusesBrokenEscapes) {
  for (const std::string_view text : {"%", "a%2", "%zz", "%2x", "abc%"}) {
    const auto decoded = percent_decode(text);
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().code, ErrorCode::kBadRequest);
  }
  EXPECT_EQ(percent_decode("a+b").value(), "a+b") << "a plus is a blank only in queries";
}

TEST(Target, IsTakenApart) {
  const auto target =
      parse_target("/api/v1/namespaces/a%2Fb/pods/?labelSelector=a%3Db%2Cc&limit=5&watch&empty=&q=1+2&limit=6#frag");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->segments, (std::vector<std::string>{"api", "v1", "namespaces", "a/b", "pods"}));
  EXPECT_EQ(*target->find("labelSelector"), "a=b,c");
  EXPECT_EQ(*target->find("limit"), "5") << "the first one counts";
  EXPECT_EQ(*target->find("watch"), "");
  EXPECT_EQ(*target->find("empty"), "");
  EXPECT_EQ(*target->find("q"), "1 2");
  EXPECT_EQ(target->find("nothing"), nullptr);
}

TEST(Target, RootAndEmptySegments) {
  EXPECT_TRUE(parse_target("/").value().segments.empty());
  EXPECT_TRUE(parse_target("/?a=b").value().segments.empty());
  EXPECT_EQ(parse_target("/a//b").value().segments, (std::vector<std::string>{"a", "", "b"}));
}

TEST(Target, RefusesWhatIsNoPath) {
  for (const std::string_view text : {"", "api/v1", "http://host/api", "*", "/a%", "/a?b=%G1"}) {
    const auto target = parse_target(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code, ErrorCode::kBadRequest);
  }
}

}  // namespace
}  // namespace spillway::api
