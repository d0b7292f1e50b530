// Goal: a token's file is followed as it changes, and nothing that cannot be a token ever replaces one.
#include "wire/client/bearer_token.h"

#include "temp_folder.h"
#include <gtest/gtest.h>

#include <cstdio>

namespace spillway::wire {
namespace {

constexpr Instant kStart = Instant(hours(1));

BearerToken token_of(const std::string& token, const std::string& file) {
  const auto made = BearerToken::make(token, file);
  EXPECT_TRUE(made) << made.error().text();
  return *made;
}

TEST(BearerToken, IsAFixedText) {
  EXPECT_EQ(BearerToken().header(kStart), "");
  EXPECT_EQ(token_of("", "").header(kStart), "");
  BearerToken token = token_of("abc", "");
  EXPECT_EQ(token.header(kStart), "Bearer abc");
  token.on_refused();
  EXPECT_EQ(token.header(kStart), "Bearer abc");
}

TEST(BearerToken, HasNoLineBreak) {
  const auto made = BearerToken::make("a\nb", "");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().text(), "token: has a line break");
}

TEST(BearerToken, FollowsItsFileOnceAMinute) {
  const TempFolder folder;
  BearerToken token = token_of("old", folder.write("token", "first\n"));
  EXPECT_EQ(token.header(kStart), "Bearer first") << "what the file says wins";
  folder.write("token", "second\n");
  EXPECT_EQ(token.header(kStart + seconds(59)), "Bearer first");
  EXPECT_EQ(token.header(kStart + seconds(60)), "Bearer second");
}

TEST(BearerToken, ARefusedOneIsReadAgainAtOnce) {
  const TempFolder folder;
  BearerToken token = token_of("", folder.write("token", "expired"));
  EXPECT_EQ(token.header(kStart), "Bearer expired");
  folder.write("token", "fresh");
  token.on_refused();
  EXPECT_EQ(token.header(kStart + seconds(1)), "Bearer fresh");
}

TEST(BearerToken, StaysWhenTheFileHoldsNone) {
  const TempFolder folder;
  BearerToken token = token_of("", folder.write("token", "good"));
  EXPECT_EQ(token.header(kStart), "Bearer good");
  Instant now = kStart;
  for (const char* text : {"", " \n", "two\nlines\n"}) {
    folder.write("token", text);
    EXPECT_EQ(token.header(now += minutes(1)), "Bearer good") << text;
  }
  ASSERT_EQ(std::remove((folder / "token").c_str()), 0);
  EXPECT_EQ(token.header(now += minutes(1)), "Bearer good");
}

TEST(BearerToken, SaysWhatIsWrongWithAFile) {
  const TempFolder folder;
  EXPECT_EQ(read_bearer_token(folder.write("token", "\n")).error().text(), folder / "token" + ": no token in it");
  EXPECT_EQ(read_bearer_token(folder.write("token", "a\nb")).error().text(),
            folder / "token" + ": expected a token on one line");
  EXPECT_EQ(read_bearer_token(folder.write("token", "a\r\n")).value(), "a");
}

}  // namespace
}  // namespace spillway::wire
