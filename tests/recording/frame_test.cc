// Goal: what was written whole is read again, whatever a crash or a stranger did to the file.
#include "recording/frame.h"

#include "base/rng.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::recording {
namespace {

struct Written {
  std::string file{kAgentKind.header};
  std::vector<std::string> records;
  std::vector<std::size_t> ends{kAgentKind.header.size()};  // ends of the header and of each frame

  explicit Written(std::uint64_t seed) {
    Rng rng(seed);
    for (std::uint64_t count = rng.below(8) + 1; count > 0; --count) {
      std::string record;
      for (std::uint64_t left = rng.below(300); left > 0; --left) record += static_cast<char>(rng.below(256));
      EXPECT_TRUE(append_frame(file, record));
      records.push_back(std::move(record));
      ends.push_back(file.size());
    }
  }
};

TEST(RecordingFrames, AreReadAsTheyWereWritten) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Written written(seed);
    const auto read = read_frames(written.file, kAgentKind);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(std::vector<std::string>(read->records.begin(), read->records.end()), written.records) << seed;
    EXPECT_EQ(read->torn_bytes, 0u);
  }
}

TEST(RecordingFrames, ATornTailIsNoRecord) {
  const Written written(7);
  for (std::size_t size = kAgentKind.header.size(); size <= written.file.size(); ++size) {
    const auto read = read_frames(std::string_view(written.file).substr(0, size), kAgentKind);
    ASSERT_TRUE(read) << size << ": " << read.error().text();
    std::size_t whole = 0;
    while (whole + 1 < written.ends.size() && written.ends[whole + 1] <= size) ++whole;
    EXPECT_EQ(read->records.size(), whole) << size;
    EXPECT_EQ(read->torn_bytes, size - written.ends[whole]) << size;
  }
}

/// A changed bit is an error, or, in the last frame, the end of the recording: it hides no frame behind it.
TEST(RecordingFrames, AChangedBitIsSeen) {
  const Written written(7);
  const std::size_t last = written.records.size() - 1;
  for (std::size_t bit = 0; bit < 8 * written.file.size(); ++bit) {
    std::string file = written.file;
    file[bit / 8] = static_cast<char>(static_cast<unsigned char>(file[bit / 8]) ^ 1U << bit % 8);
    const auto read = read_frames(file, kAgentKind);
    if (!read) {
      EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
      continue;
    }
    ASSERT_GE(bit / 8, written.ends[last]) << bit;
    EXPECT_EQ(read->torn_bytes, file.size() - written.ends[last]) << bit;
    ASSERT_EQ(read->records.size(), last) << bit;
    for (std::size_t i = 0; i < last; ++i) EXPECT_EQ(read->records[i], written.records[i]);
  }
}

TEST(RecordingFrames, WithoutAChecksumOfTheLengthAreReadAsWell) {
  std::string file(kAgentKind.header);
  ASSERT_TRUE(append_frame(file, "earlier"));
  for (std::size_t i = 0; i < 4; ++i) file[kAgentKind.header.size() + i] = i == 0 ? 7 : 0;
  const auto read = read_frames(file, kAgentKind);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->records, std::vector<std::string_view>{"earlier"});
}

TEST(RecordingFrames, ADamagedMiddleIsNamed) {
  Written written(7);
  ASSERT_GE(written.records.size(), 2u);
  written.file[kAgentKind.header.size() + 4] ^= 1;  // in the checksum of the first frame
  const auto read = read_frames(written.file, kAgentKind);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "the recording is damaged at byte 27: wrong checksum");
}

TEST(RecordingFrames, AnotherFileIsRefused) {
  for (const std::string& file : {std::string(), std::string("{}"), std::string("spillway agent recording 1\n")}) {
    const auto read = read_frames(file, kAgentKind);
    ASSERT_FALSE(read) << file;
    EXPECT_EQ(read.error().message, "not a recording of an agent, or one of another version");
  }
  const auto huge = read_frames(std::string(kAgentKind.header) + std::string(12, '\xff'), kAgentKind);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().message, "the recording is damaged at byte 27: wrong length");
}

TEST(RecordingFrames, ARecordThatIsTooLongIsNotWritten) {
  std::string file(kAgentKind.header);
  EXPECT_FALSE(append_frame(file, std::string(kRecordBytesMax + 1, 'x')));
  EXPECT_EQ(file, kAgentKind.header);
  EXPECT_TRUE(append_frame(file, std::string(kRecordBytesMax, 'x')));
}

}  // namespace
}  // namespace spillway::recording
