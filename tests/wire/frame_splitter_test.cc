// Watch bodies become frames wherever the network cuts them.
#include "wire/transport/frame_splitter.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::wire {
namespace {

std::vector<std::string> texts(const std::vector<FrameSplitter::Frame>& frames) {
  std::vector<std::string> all;
  for (const FrameSplitter::Frame& frame : frames) all.push_back(*frame);
  return all;
}

TEST(FrameSplitter, FindsTheSameFramesForEveryCut) {
  const std::string body = "{\"a\":1}\n\n{\"b\":2}\r\n  \n{\"c\":3}\n{\"d\":4}";
  for (std::size_t cut = 0; cut <= body.size(); ++cut) {
    FrameSplitter splitter(100);
    std::vector<std::string> all;
    for (const std::string& part : {body.substr(0, cut), body.substr(cut)}) {
      const auto frames = splitter.push(std::string_view(part));
      ASSERT_TRUE(frames);
      for (const std::string& text : texts(*frames)) all.push_back(text);
    }
    const FrameSplitter::Frame rest = splitter.finish();
    ASSERT_TRUE(rest) << cut;
    all.push_back(*rest);
    EXPECT_EQ(all, (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}\r", "{\"c\":3}", "{\"d\":4}"})) << cut;
    EXPECT_EQ(splitter.finish(), nullptr);
  }
}

TEST(FrameSplitter, SharesAChunkThatIsOneLine) {
  FrameSplitter splitter(100);
  const auto chunk = std::make_shared<const std::string>("{\"a\":1}\n");
  const auto frames = splitter.push(chunk);
  ASSERT_TRUE(frames);
  ASSERT_EQ(frames->size(), 1U);
  EXPECT_EQ(frames->front(), chunk) << "copied";
}

TEST(FrameSplitter, DoesNotShareAChunkThatEndsAnEarlierLine) {
  FrameSplitter splitter(100);
  ASSERT_TRUE(splitter.push(std::string_view("{\"a\"")));
  const auto frames = splitter.push(std::make_shared<const std::string>(":1}\n"));
  ASSERT_TRUE(frames);
  EXPECT_EQ(texts(*frames), std::vector<std::string>{"{\"a\":1}"});
}

TEST(FrameSplitter, BoundsALine) {
  FrameSplitter splitter(8);
  EXPECT_TRUE(splitter.push(std::string_view("12345678\n")));
  EXPECT_TRUE(splitter.push(std::string_view("12345")));
  const auto frames = splitter.push(std::string_view("6789"));
  ASSERT_FALSE(frames);
  EXPECT_EQ(frames.error().code, ErrorCode::kRequestEntityTooLarge);
  EXPECT_EQ(frames.error().message, "watch event longer than 8 bytes");
}

}  // namespace
}  // namespace spillway::wire
