// Bootstrap tokens as bearer tokens: whose they are, and until when.
#include "wire/server/bootstrap_token_table.h"

#include "wire/server/authenticator.h"

#include <gtest/gtest.h>

namespace spillway::wire {
namespace {

constexpr std::string_view kToken = "abcdef.0123456789abcdef";
const WallTime kNow{hours(1)};

struct Room {
  Room() { table->set({"abcdef", "0123456789abcdef", {"system:bootstrappers:a"}, kNow + minutes(5)}); }

  Result<api::UserInfo> sender(std::string_view token, WallTime now = kNow) const {
    api::Request request;
    request.headers.emplace_back("authorization", fmt::format("Bearer {}", token));
    return Authenticator({.tokens = {}, .account_key = {}, .bootstrap_tokens = table}).authenticate({}, request, now);
  }

  std::shared_ptr<BootstrapTokenTable> table = std::make_shared<BootstrapTokenTable>();
};

TEST(BootstrapTokenTable, ATokenIsAUserInItsGroups) {
  const auto user = Room().sender(kToken);
  ASSERT_TRUE(user) << user.error().text();
  EXPECT_EQ(user->name, "system:bootstrap:abcdef");
  EXPECT_EQ(user->groups,
            (std::vector<std::string>{"system:bootstrappers", "system:bootstrappers:a", "system:authenticated"}));
}

TEST(BootstrapTokenTable, NothingElseIs) {
  const Room room;
  for (const std::string_view token : {"abcdef.0123456789abcdeg", "abcdef.1123456789abcdef", "abcdeg.0123456789abcdef",
                                       "abcdef.0123456789abcde", "abcdef.0123456789abcdef0", "abcdef.",
                                       ".0123456789abcdef", "ABCDEF.0123456789ABCDEF", "abcdef-0123456789abcdef"}) {
    EXPECT_FALSE(room.sender(token)) << token;
    EXPECT_FALSE(room.table->identify(token, kNow)) << token;
  }
}

TEST(BootstrapTokenTable, ItEndsAtItsInstant) {
  const Room room;
  EXPECT_TRUE(room.sender(kToken, kNow + minutes(5) - microseconds(1)));
  EXPECT_FALSE(room.sender(kToken, kNow + minutes(5)));
}

TEST(BootstrapTokenTable, ItIsForgotten) {
  const Room room;
  room.table->erase("abcdef");
  EXPECT_FALSE(room.sender(kToken));
}

TEST(BootstrapTokenTable, ItIsGoodForThisServerAlone) {
  const Room room;
  const Authenticator authenticator({.tokens = {}, .account_key = {}, .bootstrap_tokens = room.table});
  const auto for_another = authenticator.identify_token(kToken, {"vault"}, kNow);
  ASSERT_TRUE(for_another);
  EXPECT_FALSE(*for_another);
}

}  // namespace
}  // namespace spillway::wire
