#include "host/logs/container_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace spillway::host {
namespace {

const WallTime kAt{std::chrono::microseconds(1'767'323'045'000'006)};

TEST(FormatLogTime, HasNineDigits) {
  EXPECT_EQ(format_log_time(kAt), "2026-01-02T03:04:05.000006000Z");
  EXPECT_EQ(format_log_time(WallTime{}), "1970-01-01T00:00:00.000000000Z");
}

TEST(ParseLogRecord, TakesWhatWeWrite) {
  const auto record = parse_log_record("2026-01-02T03:04:05.000006000Z stderr P some  text ");
  ASSERT_TRUE(record);
  EXPECT_EQ(*record, (LogRecord{"2026-01-02T03:04:05.000006000Z", LogStream::kStderr, true, "some  text "}));
  EXPECT_EQ(parse_log_record("t stdout F ")->text, "");
  for (const std::string_view line : {"", "t", "t stdout", "t stdout F", "t stdin F x", "t stdout X x", " stdout F x"})
    EXPECT_FALSE(parse_log_record(line)) << line;
}

std::string framed(std::initializer_list<std::string_view> pieces) {
  LogFramer framer(LogStream::kStdout);
  std::string out;
  for (const std::string_view piece : pieces) framer.add(piece, WallTime{}, out);
  framer.finish(WallTime{}, out);
  const std::string prefix = format_log_time(WallTime{}) + " stdout ";
  std::string bare;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.starts_with(prefix)) << line;
    bare += line.substr(prefix.size()) + "|";
  }
  return bare;
}

TEST(LogFramer, CutsAtLineEnds) {
  EXPECT_EQ(framed({}), "");
  EXPECT_EQ(framed({"a\nb\n"}), "F a|F b|");
  EXPECT_EQ(framed({"a", "b", "\n", "c"}), "F ab|P c|");
  EXPECT_EQ(framed({"\n\n"}), "F |F |");
}

TEST(LogFramer, LongLinesAreWrittenInPieces) {
  const std::string limit(16 * 1024, 'x');
  EXPECT_EQ(framed({limit, "\n"}), "F " + limit + "|") << "exactly the limit is one line";
  EXPECT_EQ(framed({limit + "y\n"}), "P " + limit + "|F y|");
  EXPECT_EQ(framed({limit, limit, "\n"}), "P " + limit + "|F " + limit + "|");
  EXPECT_EQ(framed({limit + limit + "yy"}), "P " + limit + "|P " + limit + "|P yy|");
}

class ContainerLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("container-log-{}", ::getpid());
    std::filesystem::create_directories(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string text(const std::string& name) const {
    std::stringstream all;
    all << std::ifstream(folder_ / name).rdbuf();
    return all.str();
  }

  std::filesystem::path folder_;
};

TEST_F(ContainerLogTest, RotatesAndForgetsTheOldest) {
  Result<ContainerLog> log =
      ContainerLog::create((folder_ / "0.log").string(), {.file_max = Bytes{10}, .files_max = 3});
  ASSERT_TRUE(log);
  for (const std::string_view record : {"one.....\n", "two.....\n", "three...\n", "four....\n"})
    ASSERT_TRUE(log->write(record));
  EXPECT_EQ(text("0.log"), "four....\n");
  EXPECT_EQ(text("0.log.1"), "three...\n");
  EXPECT_EQ(text("0.log.2"), "two.....\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "0.log.3"));
  EXPECT_EQ(log->size(), Bytes{27});
}

TEST_F(ContainerLogTest, OneFileStartsAnew) {
  Result<ContainerLog> log =
      ContainerLog::create((folder_ / "0.log").string(), {.file_max = Bytes{10}, .files_max = 1});
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->write("one.....\n"));
  ASSERT_TRUE(log->write("two.....\n"));
  EXPECT_EQ(text("0.log"), "two.....\n");
  EXPECT_EQ(log->size(), Bytes{9});
}

TEST_F(ContainerLogTest, ReportsWhatItCannotOpen) {
  const Result<ContainerLog> log = ContainerLog::create((folder_ / "no" / "0.log").string(), {});
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace spillway::host
