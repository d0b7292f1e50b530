// Goal: disk usage of pods, as du counts it, measured a few files at a time.
#include "host/disk/disk_usage.h"

#include "support/patience.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

class DiskUsageTest : public ::testing::Test {
 protected:
  DiskUsageTest() {
    std::string pattern = (fs::temp_directory_path() / "spillway-disk-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }

  ~DiskUsageTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, std::size_t bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << std::string(bytes, 'x');
  }

  bool run_until(const std::function<bool()>& done) {
    const Instant limit = loop_.now().mono + support::kPatience;
    bool reached = false;
    while (!(reached = done()) && loop_.now().mono < limit) {
      loop_.at(loop_.now().mono + milliseconds(1), [&] { loop_.stop(); });
      loop_.run({});
    }
    return reached;
  }

  fs::path folder_;
  runtime::Loop loop_;
};

TEST_F(DiskUsageTest, CountsEverythingBelowAndLinksOnce) {
  write("a", 100'000);
  write("deep/er/b", 50'000);
  fs::create_hard_link(folder_ / "a", folder_ / "deep/again");
  fs::create_symlink("/", folder_ / "elsewhere");
  DirectoryWalk walk(folder_.string());
  std::size_t steps = 1;
  while (!walk.step(2)) ++steps;
  EXPECT_GT(steps, 2u) << "two entries at a time";
  ASSERT_TRUE(walk.result());
  EXPECT_EQ(walk.result()->inodes, 6u) << "three directories, two files, one link";
  EXPECT_GE(walk.result()->used_bytes, 150'000u);
  EXPECT_LT(walk.result()->used_bytes, 250'000u) << "the linked file counts once";
}

TEST_F(DiskUsageTest, WhatCannotBeReadIsMissing) {
  DirectoryWalk walk((folder_ / "absent").string());
  EXPECT_TRUE(walk.step(1));
  EXPECT_FALSE(walk.result());
}

TEST_F(DiskUsageTest, AnswersAfterARoundAndForgetsWhoIsGone) {
  write("one/file", 10'000);
  write("two/file", 20'000);
  DiskUsage usage(loop_, {.files = 1, .pause = microseconds(10), .between_rounds = {}});
  EXPECT_FALSE(usage.latest("uid-1"));
  const std::vector<DiskUsage::Place> both = {{"uid-1", (folder_ / "one").string()},
                                              {"uid-2", (folder_ / "two").string()}};
  usage.refresh(both);
  ASSERT_TRUE(run_until([&] { return usage.latest("uid-2").has_value(); }));
  EXPECT_GT(usage.latest("uid-2")->used_bytes, usage.latest("uid-1")->used_bytes);
  usage.refresh({both.front()});
  EXPECT_FALSE(usage.latest("uid-2"));
  EXPECT_TRUE(usage.latest("uid-1"));
}

TEST_F(DiskUsageTest, ARoundDoesNotFollowTheOneBeforeAtOnce) {
  write("one/file", 10'000);
  DiskUsage usage(loop_, {.files = 100, .pause = microseconds(10), .between_rounds = hours(1)});
  const std::vector<DiskUsage::Place> places = {{"uid-1", (folder_ / "one").string()}};
  usage.refresh(places);
  ASSERT_TRUE(run_until([&] { return usage.latest("uid-1").has_value(); }));
  const std::uint64_t before = usage.latest("uid-1")->used_bytes;
  write("one/more", 100'000);
  usage.refresh(places);
  loop_.at(loop_.now().mono + milliseconds(50), [&] { loop_.stop(); });
  loop_.run({});
  EXPECT_EQ(usage.latest("uid-1")->used_bytes, before);
}

}  // namespace
}  // namespace spillway::host
