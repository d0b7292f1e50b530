// Goal: a recording is served segment by segment as it is on the disk, with everything that was recorded before the
// request; no path leads to another file; and neither too many questions nor a ring that moves on do harm.
#include "host/files/recording_pages.h"

#include "api/json/json.h"
#include "base/file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

class RecordingPagesTest : public ::testing::Test {
 protected:
  RecordingPagesTest() : folder_(::mkdtemp(pattern_)) {
    auto ring = RecordingRing::open(
        {.directory = folder_ + "/recording", .bytes_max = mebibytes(1), .kept_max = 2, .keep_interval = {}});
    EXPECT_TRUE(ring) << ring.error().text();
    ring_ = std::move(*ring);
    pages_->set_ring(ring_.get());
  }

  ~RecordingPagesTest() override {
    ring_.reset();
    fs::remove_all(folder_);
  }

  api::Response get(const std::string& below) {
    api::Response answer{.status = 0};
    pages_->get(std::string(kRecordingPage) + below, [&](api::Response response) {
      answer = std::move(response);
      loop_.stop();
    });
    loop_.run({});  // an earlier stop() ends it at once
    return answer;
  }

  api::Json list() { return api::parse_json(get("").body).value(); }

  char pattern_[32] = "/tmp/spillway-pages-XXXXXX";
  std::string folder_;
  runtime::Loop loop_;
  std::unique_ptr<RecordingRing> ring_;
  std::unique_ptr<RecordingPages> pages_ = std::make_unique<RecordingPages>(loop_);
};

TEST_F(RecordingPagesTest, ListsSegmentsAndCopiesWithTheirSizes) {
  ASSERT_TRUE(ring_->begin_segment("first"));
  ring_->keep("oom-kill");
  ASSERT_TRUE(ring_->begin_segment("second"));
  ASSERT_TRUE(ring_->append(" and more"));
  const api::Json all = list();
  const auto& segments = *all.find("segments")->if_array();
  ASSERT_EQ(segments.size(), 2u) << "what was recorded before is written by then";
  EXPECT_EQ(segments[0].string_at({"name"}), "1");
  EXPECT_EQ(segments[0].at({"bytes"})->if_int64(), 5);
  EXPECT_EQ(segments[1].string_at({"name"}), "2");
  EXPECT_EQ(segments[1].at({"bytes"})->if_int64(), 15);
  const auto& kept = *all.find("kept")->if_array();
  ASSERT_EQ(kept.size(), 1u);
  const std::string name(kept[0].string_at({"name"}));
  EXPECT_TRUE(name.ends_with("-oom-kill"));
  ASSERT_EQ(kept[0].find("segments")->if_array()->size(), 1u);
  EXPECT_EQ(get("/segments/2").body, "second and more");
  const api::Response first = get("/kept/" + name + "/1");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "first");
  EXPECT_EQ(first.header("content-type"), "application/octet-stream");
  EXPECT_EQ(first.header("x-content-type-options"), "nosniff");
  EXPECT_EQ(get("/kept/" + name + "/2").status, 404) << "the copy is of before it";
}

TEST_F(RecordingPagesTest, NoPathLeadsElsewhere) {
  ASSERT_TRUE(ring_->begin_segment("first"));
  ring_->keep("a");
  ASSERT_EQ(list().find("kept")->if_array()->size(), 1u);
  std::ofstream(folder_ + "/ring-00000000000000000001.rec") << "outside";
  std::ofstream(folder_ + "/recording/kept/plain") << "no copy";
  for (const char* below : {"/",
                            "/segments",
                            "/segments/",
                            "/segments/0",
                            "/segments/01",
                            "/segments/+1",
                            "/segments/ 1",
                            "/segments/1/",
                            "/segments/2",
                            "/segments/18446744073709551617",
                            "/segments/ring-00000000000000000001.rec",
                            "/segments/../kept",
                            "/kept",
                            "/kept/",
                            "/kept//1",
                            "/kept/../1",
                            "/kept/.././1",
                            "/kept/../../1",
                            "/kept/./1",
                            "/kept/plain/1",
                            "/kept/none/1",
                            "/kept/none",
                            "/other",
                            "/journal.jsonl"}) {
    const api::Response answer = get(below);
    EXPECT_EQ(answer.status, 404) << below << ": " << answer.body;
    EXPECT_FALSE(answer.body.contains("outside")) << below;
    EXPECT_FALSE(answer.body.contains(folder_)) << below;
  }
  EXPECT_FALSE(RecordingPages::serves("/debug/spillway"));
  EXPECT_FALSE(RecordingPages::serves("/debug/spillway/recordings"));
  EXPECT_TRUE(RecordingPages::serves("/debug/spillway/recording/"));
}

TEST_F(RecordingPagesTest, WhatTheRingHasDroppedIsNotFound) {
  ASSERT_TRUE(ring_->begin_segment("first"));
  EXPECT_EQ(get("/segments/1").status, 200);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ring_->begin_segment(std::string(100'000, 'x')));
  const api::Response gone = get("/segments/1");
  EXPECT_EQ(gone.status, 404);
  EXPECT_TRUE(gone.body.contains("it may have been removed since the list")) << gone.body;
}

TEST_F(RecordingPagesTest, ASegmentThatIsNoFileOrTooLongIsNotServed) {
  ASSERT_TRUE(ring_->begin_segment("first"));
  EXPECT_EQ(get("/segments/1").status, 200);
  const std::string second = folder_ + "/recording/ring-00000000000000000002.rec";
  std::ofstream(second) << "x";
  fs::resize_file(second, static_cast<std::uintmax_t>(RecordingPages::kSegmentAnswerMax) + 1);
  EXPECT_EQ(get("/segments/2").status, 500);
  EXPECT_FALSE(get("/segments/2").body.contains(folder_));
  fs::create_directory(folder_ + "/recording/ring-00000000000000000003.rec");
  EXPECT_EQ(get("/segments/3").status, 500);
  EXPECT_EQ(list().find("segments")->if_array()->size(), 2u) << "a folder is no segment";
}

TEST_F(RecordingPagesTest, NothingIsRecorded) {
  pages_->set_ring(nullptr);
  for (const char* below : {"", "/segments/1"}) {
    const api::Response answer = get(below);
    EXPECT_EQ(answer.status, 503);
    EXPECT_TRUE(answer.body.contains("nothing is recorded here")) << answer.body;
  }
}

TEST_F(RecordingPagesTest, OnlySoManyAreReadAtATime) {
  ASSERT_TRUE(ring_->begin_segment("first"));
  std::vector<int> codes;
  const auto count = [&](const api::Response& response) {
    codes.push_back(response.status);
    if (codes.size() == RecordingPages::kWaitingMax + 1) loop_.stop();
  };
  for (std::size_t i = 0; i <= RecordingPages::kWaitingMax; ++i) pages_->get(std::string(kRecordingPage), count);
  ASSERT_EQ(codes, std::vector{429});
  loop_.run({});
  EXPECT_EQ(codes, (std::vector{429, 200, 200, 200, 200}));
  EXPECT_EQ(get("").status, 200) << "and then others again";
}

TEST_F(RecordingPagesTest, WhoWaitsWhenThePagesEndIsNotAnswered) {
  ASSERT_TRUE(ring_->begin_segment("first"));
  pages_->get(std::string(kRecordingPage), [](const api::Response&) { ADD_FAILURE() << "answered"; });
  pages_.reset();
  ring_->flush([this] { loop_.post([this] { loop_.stop(); }); });
  loop_.run({});
}

}  // namespace
}  // namespace spillway::host
