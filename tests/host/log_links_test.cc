// Goal: links to logs are replaced, go with their logs unless they are kept, and nothing but links of ours is removed.
#include "host/logs/log_links.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

class LogLinks : public ::testing::Test {
 protected:
  LogLinks() : folder_(fs::path(::testing::TempDir()) / fmt::format("links-{}", ::getpid())) {
    fs::create_directories(folder_ / "pods/a");
  }

  ~LogLinks() override { fs::remove_all(folder_); }

  std::string log(const std::string& name) const {
    std::ofstream(folder_ / "pods/a" / name) << "line\n";
    return folder_ / "pods/a" / name;
  }

  bool has(const std::string& name) const { return fs::is_symlink(fs::symlink_status(links() / name)); }

  fs::path links() const { return folder_ / "containers"; }

  fs::path folder_;
};

TEST_F(LogLinks, AreMadeReplacedAndRemoved) {
  ASSERT_TRUE(make_log_link(links(), "a.log", log("0.log")));
  ASSERT_TRUE(make_log_link(links(), "a.log", log("1.log")));
  EXPECT_EQ(fs::read_symlink(links() / "a.log"), folder_ / "pods/a/1.log");
  std::ofstream(links() / "file.log") << "x";
  const Outcome refused = make_log_link(links(), "file.log", log("0.log"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  remove_log_links(links(), {"a.log", "file.log", "absent.log"});
  EXPECT_FALSE(has("a.log"));
  EXPECT_TRUE(fs::exists(links() / "file.log"));
  EXPECT_TRUE(fs::exists(folder_ / "pods/a/1.log"));
}

TEST_F(LogLinks, GoWithTheirLogsUnlessTheContainerRuns) {
  ASSERT_TRUE(make_log_link(links(), "there.log", log("0.log")));
  ASSERT_TRUE(make_log_link(links(), "gone.log", folder_ / "pods/a/7.log"));
  ASSERT_TRUE(make_log_link(links(), "runs.log", folder_ / "pods/a/8.log"));
  ASSERT_TRUE(make_log_link(links(), "foreign.log", folder_ / "podsX/9.log"));
  const std::string pods = folder_ / "pods";
  remove_dangling_log_links(links(), pods, [](const std::string& name) { return name == "runs.log"; });
  EXPECT_TRUE(has("there.log"));
  EXPECT_FALSE(has("gone.log"));
  EXPECT_TRUE(has("runs.log"));
  EXPECT_TRUE(has("foreign.log"));
  remove_dangling_log_links(folder_ / "absent", pods, [](const std::string&) { return false; });
}

}  // namespace
}  // namespace spillway::host
