// Goal: a ring holds the latest records and no more than it may, in files that only our user may read; copies outlive
// it; and a disk that takes nothing costs records, never the node.
#include "host/files/recording_ring.h"

#include "base/file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

class RecordingRings : public ::testing::Test {
 protected:
  RecordingRings() { folder_ = ::mkdtemp(pattern_); }

  ~RecordingRings() override { fs::remove_all(folder_); }

  std::unique_ptr<RecordingRing> open(Bytes bytes_max = mebibytes(1), std::size_t waiting_max = 8'000'000) {
    auto ring = RecordingRing::open(
        {.directory = directory(),
         .bytes_max = bytes_max,
         .kept_max = 2,
         .keep_interval = {},
         .waiting_max = waiting_max,
         .log = telemetry::Log([this](telemetry::Level, std::string_view event, std::span<const telemetry::Field>) {
           const std::lock_guard lock(mutex_);
           log_.emplace_back(event);
         })});
    EXPECT_TRUE(ring) << ring.error().text();
    return std::move(*ring);
  }

  std::string directory() const { return folder_ + "/recording"; }

  static void wait_for(RecordingRing& ring) {
    std::promise<void> done;
    ring.flush([&done] { done.set_value(); });
    done.get_future().wait();
  }

  std::string all(const std::string& from) const {
    std::string text;
    const auto paths = recording_segments(from);
    for (const std::string& path : paths ? *paths : std::vector<std::string>()) text += read_file(path).value_or("?");
    return text;
  }

  std::size_t logged(std::string_view event) {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count(log_, event));
  }

  char pattern_[32] = "/tmp/spillway-ring-XXXXXX";
  std::string folder_;
  std::mutex mutex_;
  std::vector<std::string> log_;
};

mode_t mode_of(const std::string& path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777U : 0;
}

TEST_F(RecordingRings, KeepWhatTheyAreGivenInOrder) {
  {
    const auto ring = open();
    EXPECT_TRUE(ring->begin_segment("a"));
    EXPECT_TRUE(ring->append("b"));
    EXPECT_TRUE(ring->append("c"));
    EXPECT_TRUE(ring->begin_segment("d"));
    EXPECT_TRUE(ring->append("e"));
  }
  EXPECT_EQ(all(directory()), "abcde");
  const auto paths = recording_segments(directory());
  ASSERT_TRUE(paths);
  EXPECT_EQ(paths->size(), 2u);
  EXPECT_EQ(mode_of(directory()), 0700u);
  for (const std::string& path : *paths) EXPECT_EQ(mode_of(path), 0600u) << path;
}

TEST_F(RecordingRings, DropTheOldestSegmentsAndStayWithinTheBound) {
  const auto ring = open();
  const std::string part(100'000, 'x');
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    ASSERT_TRUE(ring->begin_segment(std::string(1, letter) + part));
    wait_for(*ring);
    std::uintmax_t bytes = 0;
    for (const auto& each : fs::directory_iterator(directory())) bytes += each.is_regular_file() ? each.file_size() : 0;
    EXPECT_LE(bytes, static_cast<std::uintmax_t>(mebibytes(1).count()));
  }
  const std::string text = all(directory());
  EXPECT_EQ(text.front(), 'q') << "ten of them fit";
  EXPECT_TRUE(text.contains('z'));
}

TEST_F(RecordingRings, GoOnAfterAnEarlierProcessAndCountItsSegments) {
  {
    ASSERT_TRUE(open()->begin_segment("before" + std::string(600'000, 'x')));
  }
  const auto ring = open();
  ASSERT_TRUE(ring->begin_segment("after"));
  wait_for(*ring);
  EXPECT_TRUE(all(directory()).starts_with("before"));
  EXPECT_TRUE(all(directory()).ends_with("after"));
  ASSERT_TRUE(ring->append(std::string(600'000, 'y')));
  wait_for(*ring);
  EXPECT_TRUE(all(directory()).starts_with("after"));
}

TEST_F(RecordingRings, ACopyOutlivesTheRing) {
  const auto ring = open();
  ASSERT_TRUE(ring->begin_segment("what led to it"));
  ring->keep("oom-kill");
  wait_for(*ring);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ring->begin_segment(std::string(100'000, 'x')));
  wait_for(*ring);
  EXPECT_FALSE(all(directory()).contains("led"));
  const std::vector<std::string> copies = recording_copies(directory());
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_TRUE(copies.front().ends_with("Z-oom-kill")) << copies.front();
  EXPECT_EQ(all(directory() + "/kept/" + copies.front()), "what led to it");
  EXPECT_EQ(mode_of(directory() + "/kept/" + copies.front()), 0700u);
}

TEST_F(RecordingRings, OnlySoManyCopiesAreKept) {
  const auto ring = open();
  ASSERT_TRUE(ring->begin_segment("x"));
  for (const char* why : {"a", "b", "c/../../d"}) ring->keep(why);
  wait_for(*ring);
  const std::vector<std::string> copies = recording_copies(directory());
  ASSERT_EQ(copies.size(), 2u);
  for (const std::string& name : copies) EXPECT_EQ(name.find('/'), std::string::npos);
  EXPECT_TRUE(copies.back().ends_with("-c-------d")) << copies.back();
}

TEST_F(RecordingRings, CopiesThatFollowSoonAreOne) {
  auto ring = RecordingRing::open({.directory = directory(), .kept_max = 5, .keep_interval = hours(1)});
  ASSERT_TRUE(ring);
  ASSERT_TRUE((*ring)->begin_segment("x"));
  (*ring)->keep("oom-kill");
  (*ring)->keep("not-ready");
  wait_for(**ring);
  EXPECT_EQ(recording_copies(directory()).size(), 1u);
}

TEST_F(RecordingRings, WhatThereIsNoRoomForIsDropped) {
  const auto ring = open(mebibytes(1), 1000);
  EXPECT_TRUE(ring->begin_segment("a"));
  EXPECT_FALSE(ring->append(std::string(2000, 'x')));
  EXPECT_FALSE(ring->append("b")) << "not before a segment begins anew";
  wait_for(*ring);
  EXPECT_TRUE(ring->begin_segment("c"));
  wait_for(*ring);
  EXPECT_EQ(all(directory()), "ac");
}

/// A directory that cannot be written to acts as a full disk.
TEST_F(RecordingRings, ADiskThatTakesNothingIsSaidOnceAndTriedAgain) {
  const auto ring = open();
  ASSERT_TRUE(ring->begin_segment("a"));
  wait_for(*ring);
  const std::string aside = directory() + "-aside";
  fs::rename(directory(), aside);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(ring->begin_segment("lost"));
    wait_for(*ring);
    EXPECT_FALSE(ring->append("lost"));
  }
  EXPECT_EQ(logged("the recording cannot be written; later records are missing from it"), 1u);
  fs::rename(aside, directory());
  ASSERT_TRUE(ring->begin_segment("b"));
  EXPECT_TRUE(ring->append("c"));
  wait_for(*ring);
  EXPECT_EQ(all(directory()), "abc");
  EXPECT_EQ(logged("recording resumed"), 1u);
}

TEST_F(RecordingRings, ADirectoryThatIsALinkIsRefused) {
  fs::create_directory(folder_ + "/elsewhere");
  fs::create_symlink(folder_ + "/elsewhere", directory());
  const auto ring = RecordingRing::open({.directory = directory()});
  ASSERT_FALSE(ring);
  EXPECT_EQ(ring.error().text(), directory() + ": is no directory");
}

TEST_F(RecordingRings, NoDirectoryIsNoRecording) {
  EXPECT_FALSE(recording_segments(directory()));
  EXPECT_TRUE(recording_copies(directory()).empty());
}

}  // namespace
}  // namespace spillway::host
