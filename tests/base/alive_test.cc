#include "base/alive.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway {

namespace {

using Tasks = std::vector<std::move_only_function<void()>>;

/// Posts one task for each text; the tasks record the texts when they run.
class Writer {
 public:
  Writer(Tasks& loop, std::vector<std::string>& lines) : loop_(loop), lines_(lines) {}

  void post(std::string text) {
    loop_.push_back(alive_.guard([this, text = std::move(text)] { lines_.push_back(text); }));
  }

  std::function<void(const std::string&)> listener() {
    return alive_.guard([this](const std::string& text) { lines_.push_back(text); });
  }

  void end() { alive_.end(); }

 private:
  Tasks& loop_;
  std::vector<std::string>& lines_;
  Alive alive_;
};

TEST(Alive, RunsTheFunctionsOfAnObjectThatExists) {
  Tasks loop;
  std::vector<std::string> lines;
  Writer writer(loop, lines);
  writer.post("a");
  for (auto& task : loop) task();
  for (auto& task : loop) task();
  EXPECT_EQ(lines, (std::vector<std::string>{"a", "a"}));
}

TEST(Alive, RunsNothingAfterTheObjectHasEnded) {
  Tasks loop;
  std::vector<std::string> lines;
  std::optional<Writer> writer(std::in_place, loop, lines);
  writer->post("a");
  const auto listener = writer->listener();
  listener("b");
  writer.reset();
  listener("c");
  for (auto& task : loop) task();
  EXPECT_EQ(lines, (std::vector<std::string>{"b"}));
}

TEST(Alive, RunsNothingAfterEnd) {
  Tasks loop;
  std::vector<std::string> lines;
  Writer writer(loop, lines);
  writer.post("a");
  writer.end();
  for (auto& task : loop) task();
  EXPECT_TRUE(lines.empty());
}

TEST(Alive, HandsArgumentsOnThatCanOnlyBeMoved) {
  Alive alive;
  int sum = 0;
  auto add = alive.guard([&sum](std::unique_ptr<int> number) { sum += *number; });
  add(std::make_unique<int>(2));
  add(std::make_unique<int>(3));
  EXPECT_EQ(sum, 5);
}

TEST(Alive, ARefOutlivesItsObjectAndSaysSo) {
  Alive::Ref ref;
  EXPECT_TRUE(ref.expired());
  {
    const Alive alive;
    ref = alive.ref();
    EXPECT_FALSE(ref.expired());
  }
  EXPECT_TRUE(ref.expired());
  int runs = 0;
  ref.guard([&runs] { ++runs; })();
  EXPECT_EQ(runs, 0);
}

}  // namespace

}  // namespace spillway
