// Goal: the runtime gets a request for a checkpoint with the time that upstream gives it, and its refusal is passed on.
#include "host/containers/cri_checkpoints.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

/// Keeps the calls until the test answers them.
struct HeldCalls final : RuntimeCalls {
  struct Held {
    std::string method;
    std::string request;
    Duration deadline;
    Answer answer;
  };

  void call(std::string_view method, api::Json request, Duration deadline, Answer answer) override {
    held.push_back({std::string(method), api::to_text(request), deadline, std::move(answer)});
  }

  std::vector<Held> held;
};

class CriCheckpointsTest : public ::testing::Test {
 protected:
  void take(std::int64_t timeout_seconds = 0) {
    checkpoints_.take("id1", {.uid = "u1", .container = "c", .file = "/x/c.tar", .timeout_seconds = timeout_seconds},
                      [this](const Outcome& taken) { ends_.push_back(taken ? "taken" : taken.error().message); });
  }

  HeldCalls calls_;
  CriCheckpoints checkpoints_{calls_, minutes(2)};
  std::vector<std::string> ends_;
};

TEST_F(CriCheckpointsTest, AreWrittenByTheRuntime) {
  take();
  ASSERT_EQ(calls_.held.size(), 1U);
  EXPECT_EQ(calls_.held[0].method, "CheckpointContainer");
  EXPECT_EQ(calls_.held[0].request, R"({"container_id":"id1","location":"/x/c.tar","timeout":120})");
  EXPECT_EQ(calls_.held[0].deadline, minutes(2));
  EXPECT_TRUE(ends_.empty());
  calls_.held[0].answer(api::Json::object());
  EXPECT_EQ(ends_, std::vector<std::string>{"taken"});
}

TEST_F(CriCheckpointsTest, MayTakeLongerThanOtherCalls) {
  take(600);
  EXPECT_EQ(calls_.held[0].deadline, minutes(10));
  take(5);
  EXPECT_EQ(calls_.held[1].deadline, minutes(2));
  take(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(calls_.held[2].deadline, hours(24));
  take(-1);
  EXPECT_EQ(ends_, std::vector<std::string>{"CheckpointContainer requires the timeout value to be > 0"});
}

TEST_F(CriCheckpointsTest, EndWithTheRefusalOfTheRuntime) {
  take();
  calls_.held[0].answer(
      Error{ErrorCode::kInternalError, "method CheckpointContainer not implemented", "Unimplemented"});
  EXPECT_EQ(ends_, std::vector<std::string>{
                       "rpc error: code = Unimplemented desc = method CheckpointContainer not implemented"});
}

TEST_F(CriCheckpointsTest, AreFewAtOnce) {
  for (std::size_t i = 0; i <= CriCheckpoints::kTakenMax; ++i) take();
  EXPECT_EQ(calls_.held.size(), CriCheckpoints::kTakenMax);
  EXPECT_EQ(ends_, std::vector<std::string>{"4 checkpoints are being taken already"});
  calls_.held[0].answer(api::Json::object());
  take();
  EXPECT_EQ(calls_.held.size(), CriCheckpoints::kTakenMax + 1);
}

}  // namespace
}  // namespace spillway::host
