// Goal: a log that has grown too long is turned over, older parts are few and packed, what an earlier try left is
// cleaned up, and a runtime that does not follow gets its file back.
#include "host/logs/log_rotation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr WallTime kWhen{seconds(1'700'000'000)};

TEST(PlanRotation, KeepsTheNewestAndPacksThem) {
  EXPECT_EQ(plan_rotation("0.log", {"0.log", "1.log", "0.log.a", "0.log.b.gz", "0.log.c", "0.log.d", "0.logs"}, 5),
            (RotationPlan{.remove = {"0.log.a"}, .compress = {"0.log.c", "0.log.d"}}));
  EXPECT_EQ(plan_rotation("0.log", {"0.log"}, 5), RotationPlan{});
  EXPECT_EQ(plan_rotation("0.log", {"0.log", "0.log.a", "0.log.b"}, 2),
            (RotationPlan{.remove = {"0.log.a", "0.log.b"}, .compress = {}}));
}

TEST(PlanRotation, CleansUpAfterAnEarlierTry) {
  EXPECT_EQ(plan_rotation("0.log", {"0.log.a", "0.log.a.gz", "0.log.b", "0.log.b.tmp"}, 5),
            (RotationPlan{.remove = {"0.log.a", "0.log.b.tmp"}, .compress = {"0.log.b"}}));
}

class LogRotation : public ::testing::Test {
 protected:
  LogRotation() : folder_(fs::path(::testing::TempDir()) / fmt::format("rotation-{}", ::getpid())) {
    fs::create_directories(folder_);
  }

  ~LogRotation() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  void write(const std::string& name, std::size_t bytes, char with = 'x') const {
    std::ofstream(file(name)) << std::string(bytes, with);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& each : fs::directory_iterator(folder_)) found.push_back(each.path().filename().string());
    std::ranges::sort(found);
    return found;
  }

  static std::string unpacked(const std::string& path) {
    gzFile packed = ::gzopen(path.c_str(), "rb");
    std::string text(1 << 20, '\0');
    const int got = ::gzread(packed, text.data(), static_cast<unsigned>(text.size()));
    ::gzclose(packed);
    text.resize(static_cast<std::size_t>(std::max(got, 0)));
    return text;
  }

  fs::path folder_;
  LogLimits limits_{.file_max = Bytes{1000}, .files_max = 5};
};

TEST_F(LogRotation, ALogBelowItsLimitStays) {
  write("0.log", 999);
  EXPECT_EQ(turn_log(file("0.log"), limits_, kWhen)->what, LogTurn::What::kShort);
  EXPECT_EQ(names(), std::vector<std::string>{"0.log"});
}

TEST_F(LogRotation, ALogAtItsLimitIsRenamedAndBackIfTheRuntimeOpensNone) {
  write("0.log", 1000);
  const auto turn = turn_log(file("0.log"), limits_, kWhen);
  ASSERT_TRUE(turn) << turn.error().text();
  ASSERT_EQ(turn->what, LogTurn::What::kRenamed);
  EXPECT_EQ(turn->older, file("0.log.20231114-221320"));
  EXPECT_EQ(names(), std::vector<std::string>{"0.log.20231114-221320"});
  ASSERT_TRUE(turn_back(file("0.log"), turn->older));
  EXPECT_EQ(names(), std::vector<std::string>{"0.log"});
  write("new.log", 1);
  ASSERT_TRUE(turn_back(file("0.log"), file("new.log"))) << "somebody else made one";
  EXPECT_EQ(names(), (std::vector<std::string>{"0.log", "new.log"}));
}

TEST_F(LogRotation, OfManyTurnsTheNewestStayAndAreWhole) {
  for (int i = 0; i < 8; ++i) {
    write("0.log", 2000, static_cast<char>('a' + i));
    ASSERT_TRUE(turn_log(file("0.log"), limits_, kWhen + seconds(10 * i)));
  }
  write("0.log", 1, 'i');
  EXPECT_EQ(names(), (std::vector<std::string>{"0.log", "0.log.20231114-221400.gz", "0.log.20231114-221410.gz",
                                               "0.log.20231114-221420.gz", "0.log.20231114-221430"}));
  EXPECT_EQ(unpacked(file("0.log.20231114-221420.gz")), std::string(2000, 'g'));
}

TEST_F(LogRotation, AFileThatIsGoneIsSaidAndALinkIsNotFollowed) {
  EXPECT_EQ(turn_log(file("0.log"), limits_, kWhen)->what, LogTurn::What::kMissing);
  write("0.log", 1000);
  fs::create_symlink("/etc/passwd", file("0.log.a"));
  EXPECT_FALSE(turn_log(file("0.log"), limits_, kWhen));
  EXPECT_TRUE(fs::exists("/etc/passwd"));
  EXPECT_TRUE(fs::exists(file("0.log")));
}

}  // namespace
}  // namespace spillway::host
