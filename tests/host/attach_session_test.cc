// Goal: no client loses what a container says to it, neither at the beginning nor in answer to its input.
#include "host/attach_client.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace spillway::host {
namespace {

constexpr std::string_view kGreeting("\x82\x01\x01", 3);

struct AttachSessionTest : ::testing::Test {
  AttachSessionTest() {
    std::array<int, 2> ends = {-1, -1};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    input_.reset(ends[0]);
    console_->open(UniqueFd(ends[1]), true);
  }

  std::string given() const {
    std::array<char, 100> text = {};
    const ssize_t got = ::read(input_.get(), text.data(), text.size());
    return got < 0 ? "nothing" : std::string(text.data(), static_cast<std::size_t>(got));
  }

  void wait(Duration time) {
    loop_.at(loop_.now().mono + time, [this] { loop_.stop(); });
    loop_.run({});
  }

  runtime::Loop loop_;
  UniqueFd input_;  // the container's end
  std::shared_ptr<ContainerConsole> console_ = std::make_shared<ContainerConsole>();
};

TEST_F(AttachSessionTest, AClientIsTalkedToWhenItHasHadTimeToBeReady) {
  const AttachClient client(loop_, console_);
  console_->say(api::Channel::kOut, "before");
  EXPECT_EQ(client.received(), "");
  wait(api::kLikelyReadyWait);
  EXPECT_EQ(client.received(), kGreeting);
  console_->say(api::Channel::kErr, "x");
  EXPECT_EQ(client.received(), std::string(kGreeting) + "\x82\x02\x02x");
}

TEST_F(AttachSessionTest, AClientThatSpeaksIsReady) {
  AttachClient client(loop_, console_);
  client.says("one");
  EXPECT_EQ(client.received(), kGreeting);
  EXPECT_EQ(given(), "one");
}

TEST_F(AttachSessionTest, InputWaitsUntilTheAnswerIsReceived) {
  int asked = 0;
  console_->set_callbacks([&] { ++asked; }, {});
  AttachClient client(loop_, console_);
  client.says("one");
  EXPECT_EQ(asked, 1);
  client.says("two");
  EXPECT_EQ(given(), "nothing");
  console_->on_output_ready();
  EXPECT_EQ(given(), "onetwo");
  console_->on_output_ready();
  client.says("three");
  EXPECT_EQ(given(), "three");
}

TEST_F(AttachSessionTest, AClientThatIsIdleIsCut) {
  AttachClient client(loop_, console_, api::kLikelyReadyWait * 3);
  client.says("one");
  EXPECT_FALSE(client.over());
  while (!client.over()) wait(milliseconds(10));
}

}  // namespace
}  // namespace spillway::host
