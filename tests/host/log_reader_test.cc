// Stored logs, slice by slice, at the pace of their reader.
#include "host/logs/log_reader.h"

#include "api/exchange/paced_sink.h"
#include "host/logs/log_source.h"
#include "runtime/loop.h"
#include "support/patience.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace spillway::host {
namespace {

/// A client that takes as much as the test allows.
struct SlowSink final : api::PacedSink {
  void on_response(api::Response answer) override {
    response = std::move(answer);
    ended = true;
  }

  void on_stream(api::Response head) override { response = std::move(head); }

  bool write(std::shared_ptr<const std::string> chunk) override {
    if (gone) return false;
    response.body += *chunk;
    if (on_text && !chunk->empty()) std::exchange(on_text, nullptr)();
    waiting += chunk->size();
    most_waiting = std::max(most_waiting, waiting);
    return true;
  }

  void on_end() override { ended = true; }

  std::size_t waiting_bytes() const override { return waiting; }

  api::Response response{.status = 0};
  std::size_t waiting = 0;
  std::size_t most_waiting = 0;
  bool ended = false;
  bool gone = false;
  std::function<void()> on_text;  // once
};

class LogReaderTest : public ::testing::Test {
 protected:
  LogReaderTest() : folder_(std::filesystem::path(::testing::TempDir()) / fmt::format("logs-{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
  }

  ~LogReaderTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return (folder_ / "0.log").string(); }

  /// Writes records `first` to `last`; returns the output of kubectl for them.
  std::string write_log(const std::string& file, int first, int last, const std::string& padding = "") {
    std::ofstream out(file, std::ios::app);
    std::string printed;
    for (int i = first; i <= last; ++i) {
      out << "2026-01-02T03:04:05.000000006Z stdout F line " << i << padding << '\n';
      printed += fmt::format("line {}{}\n", i, padding);
    }
    return printed;
  }

  bool run_until(const std::function<bool()>& done) {
    const Instant deadline = loop_.now().mono + support::kPatience;
    bool reached = false;
    std::function<void()> check = [&] {
      reached = done();
      if (reached || loop_.now().mono > deadline) return loop_.stop();
      loop_.at(loop_.now().mono + milliseconds(1), [&] { check(); });
    };
    loop_.post([&] { check(); });
    loop_.run({});
    return reached;
  }

  std::shared_ptr<SlowSink> open(LogQuery query = {}) {
    auto sink = std::make_shared<SlowSink>();
    last_id_ = reader_->open(path(), query, [this] { return running_; }, sink);
    return sink;
  }

  static void take_all(SlowSink& sink) { sink.waiting = 0; }

  std::filesystem::path folder_;
  runtime::Loop loop_;
  std::unique_ptr<LogReader> reader_ = std::make_unique<LogReader>(loop_);
  bool running_ = true;
  LogReader::StreamId last_id_ = 0;
};

TEST_F(LogReaderTest, ReadsNoFurtherThanItsClientTakes) {
  const std::string all = write_log(path(), 1, 40'000, std::string(50, 'x'));
  for (const bool follow : {false, true}) {
    running_ = false;
    const auto sink = open({.follow = follow});
    ASSERT_TRUE(run_until([&] { return sink->waiting > LogReader::kWaitingBytesHigh; }));
    const auto other = open();  // meanwhile other readers are served
    ASSERT_TRUE(run_until([&] {
      take_all(*other);
      return other->ended;
    }));
    EXPECT_EQ(other->response.body, all);
    EXPECT_LE(sink->response.body.size(), LogReader::kWaitingBytesHigh + LogReader::kSliceBytes);
    EXPECT_FALSE(sink->ended);
    ASSERT_TRUE(run_until([&] {
      take_all(*sink);
      return sink->ended;
    }));
    EXPECT_EQ(sink->response.body, all);
    EXPECT_LE(sink->most_waiting, LogReader::kWaitingBytesHigh + LogReader::kSliceBytes);
  }
}

TEST_F(LogReaderTest, FollowsAtThePaceOfItsClient) {
  write_log(path(), 1, 1);
  const auto sink = open({.follow = true});
  ASSERT_TRUE(run_until([&] { return sink->response.body == "line 1\n"; }));
  write_log(path(), 2, 40'000, std::string(50, 'x'));
  ASSERT_TRUE(run_until([&] { return sink->waiting > LogReader::kWaitingBytesHigh; }));
  write_log(path(), 40'001, 50'000, std::string(50, 'x'));
  const auto other = open({.tail_lines = 1});
  ASSERT_TRUE(run_until([&] { return other->ended; }));
  EXPECT_LE(sink->most_waiting, LogReader::kWaitingBytesHigh + LogReader::kSliceBytes);
  running_ = false;
  ASSERT_TRUE(run_until([&] {
    take_all(*sink);
    return sink->ended;
  }));
  EXPECT_TRUE(sink->response.body.ends_with("line 50000" + std::string(50, 'x') + "\n"));
  EXPECT_EQ(std::ranges::count(sink->response.body, '\n'), 50'000);
}

TEST_F(LogReaderTest, CountsALogUntilItsClientHasTakenIt) {
  write_log(path(), 1, 2000, std::string(50, 'x'));  // one slice
  std::vector<std::shared_ptr<SlowSink>> readers;
  for (std::size_t i = 0; i < LogReader::kStreamsMax; ++i) readers.push_back(open());
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(readers, [](const auto& r) { return r->waiting > 0; }); }));
  EXPECT_EQ(open()->response.status, 429);
  EXPECT_EQ(reader_->open_count(), LogReader::kStreamsMax);
  readers.front()->gone = true;
  ASSERT_TRUE(run_until([&] { return readers.front()->ended; }));
  EXPECT_EQ(reader_->open_count(), LogReader::kStreamsMax - 1);
  for (const auto& reader : readers) take_all(*reader);
  ASSERT_TRUE(run_until([&] { return reader_->open_count() == 0; }));
  EXPECT_EQ(open()->response.status, 0) << "refused";
}

TEST_F(LogReaderTest, NoticesThatAQuietFollowersClientHasGone) {
  write_log(path(), 1, 1);
  const auto sink = open({.follow = true});
  ASSERT_TRUE(run_until([&] { return !sink->response.body.empty(); }));
  sink->gone = true;
  EXPECT_TRUE(run_until([&] { return reader_->open_count() == 0; }));
}

/// The container writes its last line and ends between two reads of the reader.
TEST_F(LogReaderTest, FollowsToTheLastLineOfAContainerThatEnds) {
  for (int round = 0; round < 20; ++round) {
    const std::string all = write_log(path(), 2 * round, 2 * round);
    bool ended = false;
    auto sink = std::make_shared<SlowSink>();
    reader_->open(
        path(), {.follow = true},
        [&] {
          if (!std::exchange(ended, true)) write_log(path(), 2 * round + 1, 2 * round + 1);
          return false;
        },
        sink);
    ASSERT_TRUE(run_until([&] { return sink->ended; }));
    EXPECT_TRUE(sink->response.body.ends_with(fmt::format("line {}\n", 2 * round + 1))) << sink->response.body;
  }
}

TEST_F(LogReaderTest, FollowsWhatIsWrittenBetweenItsEndAndTheRotation) {
  write_log(path(), 1, 1);
  const auto sink = open({.follow = true});
  ASSERT_TRUE(run_until([&] { return sink->response.body == "line 1\n"; }));
  write_log(path(), 2, 3);
  std::filesystem::rename(path(), path() + ".1");  // before the file was read
  write_log(path(), 4, 5);
  ASSERT_TRUE(run_until([&] { return sink->response.body == "line 1\nline 2\nline 3\nline 4\nline 5\n"; }))
      << sink->response.body;
  running_ = false;
  EXPECT_TRUE(run_until([&] { return sink->ended; }));
}

/// A container's last line before a rotation is written after the reader was at the end of its file, and the first line
/// of the next file before it checks for a rotation.
TEST_F(LogReaderTest, FollowsALineWrittenJustBeforeTheRotation) {
  write_log(path(), 1, 1);
  const auto sink = open({.follow = true});
  ASSERT_TRUE(run_until([&] { return sink->response.body == "line 1\n"; }));
  const std::string older = path() + ".20260102-030405";
  sink->on_text = [&] {
    write_log(path(), 3, 3);
    std::filesystem::rename(path(), older);
    write_log(path(), 4, 4);
  };
  write_log(path(), 2, 2);
  ASSERT_TRUE(run_until([&] { return sink->response.body.ends_with("line 4\n"); })) << sink->response.body;
  EXPECT_EQ(sink->response.body, "line 1\nline 2\nline 3\nline 4\n");
  running_ = false;
  EXPECT_TRUE(run_until([&] { return sink->ended; }));
}

/// A container runtime renames first and opens the new file on request.
TEST_F(LogReaderTest, FollowsAWriterThatIsSlowToTurnOver) {
  write_log(path(), 1, 1);
  const auto sink = open({.follow = true});
  ASSERT_TRUE(run_until([&] { return sink->response.body == "line 1\n"; }));
  const std::string older = path() + ".20260102-030405";
  std::filesystem::rename(path(), older);
  write_log(older, 2, 2);  // the name has no file now
  ASSERT_TRUE(run_until([&] { return sink->response.body == "line 1\nline 2\n"; }));
  std::ofstream(path()).flush();  // and now nothing is in it
  write_log(older, 3, 3);
  ASSERT_TRUE(run_until([&] { return sink->response.body == "line 1\nline 2\nline 3\n"; }));
  write_log(older, 4, 4);
  write_log(path(), 5, 5);
  ASSERT_TRUE(run_until([&] { return sink->response.body == "line 1\nline 2\nline 3\nline 4\nline 5\n"; }))
      << sink->response.body;
  std::filesystem::rename(path(), older);
  running_ = false;
  EXPECT_TRUE(run_until([&] { return sink->ended; })) << "its file does not come back";
}

TEST_F(LogReaderTest, GoesOnThroughRotatedParts) {
  std::string all = write_log(path() + ".2", 1, 30'000);
  all += write_log(path() + ".1", 30'001, 30'010);
  all += write_log(path(), 30'011, 30'020);
  const auto whole = open();
  ASSERT_TRUE(run_until([&] {
    take_all(*whole);
    return whole->ended;
  }));
  EXPECT_EQ(whole->response.body, all);
  for (const std::int64_t lines : {0, 1, 10, 11, 20, 21, 29'999, 40'000}) {
    const auto tail = open({.tail_lines = lines});
    ASSERT_TRUE(run_until([&] {
      take_all(*tail);
      return tail->ended;
    }));
    EXPECT_EQ(std::ranges::count(tail->response.body, '\n'), std::min<std::int64_t>(lines, 30'020)) << lines;
    EXPECT_TRUE(all.ends_with(tail->response.body)) << lines;
  }
}

TEST_F(LogReaderTest, OfALongLogReadsTheNewestFromTheStartOfALine) {
  std::string all = write_log(path(), 1, 200'000, std::string(60, 'x'));
  const auto sink = open();
  ASSERT_TRUE(run_until([&] {
    take_all(*sink);
    return sink->ended;
  }));
  EXPECT_LT(sink->response.body.size(), LogSource::kBytesMax);
  EXPECT_TRUE(all.ends_with("\n" + sink->response.body));
  EXPECT_TRUE(sink->response.body.starts_with("line "));
}

TEST_F(LogReaderTest, SaysWhatIsMissing) {
  const auto sink = open();
  ASSERT_TRUE(run_until([&] { return sink->ended; }));
  EXPECT_EQ(sink->response.status, 500);
  EXPECT_NE(sink->response.body.find(path()), std::string::npos);
}

}  // namespace
}  // namespace spillway::host
