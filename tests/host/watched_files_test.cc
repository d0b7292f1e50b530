// Goal: a change of a watched file is read once, however the file is replaced; the same texts are not
// reported again.
#include "host/files/watched_files.h"

#include "support/patience.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

class WatchedFilesTest : public ::testing::Test {
 protected:
  WatchedFilesTest() {
    std::string name = (fs::temp_directory_path() / "watched-files-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    write("certificate", "c1");
    write("key", "k1");
  }

  ~WatchedFilesTest() override {
    files_.reset();
    fs::remove_all(folder_);
  }

  void write(const std::string& name, std::string_view text) { std::ofstream(folder_ / name) << text; }

  void watch(const std::string& folder = "", Duration period = hours(1)) {
    const fs::path at = folder_ / folder;
    files_.emplace(
        loop_, std::vector{(at / "certificate").string(), (at / "key").string()}, WatchedFiles::Texts{"c1", "k1"},
        [this](const WatchedFiles::Texts& texts) {
          reported_.push_back(fmt::format("{} {}", texts[0].value_or("none"), texts[1].value_or("none")));
        },
        period);
  }

  bool run_until_last(const std::string& wanted) {
    const Instant deadline = loop_.now().mono + support::kPatience;
    bool reached = false;
    std::function<void()> check = [&] {
      reached = !reported_.empty() && reported_.back() == wanted;
      if (reached || loop_.now().mono > deadline) return loop_.stop();
      loop_.at(loop_.now().mono + milliseconds(1), [&] { check(); });
    };
    loop_.post([&] { check(); });
    loop_.run({});
    return reached;
  }

  runtime::Loop loop_;
  fs::path folder_;
  std::optional<WatchedFiles> files_;
  std::vector<std::string> reported_;
};

TEST_F(WatchedFilesTest, AreReadAgainWhenOneIsWritten) {
  watch();
  write("key", "k2");
  EXPECT_TRUE(run_until_last("c1 k2"));
  fs::remove(folder_ / "certificate");
  EXPECT_TRUE(run_until_last("none k2"));
  write("beside", "");
  fs::rename(folder_ / "beside", folder_ / "certificate");
  EXPECT_TRUE(run_until_last(" k2"));
  // The first reading, on the thread of the files, may find one that is just being written.
  EXPECT_EQ(std::ranges::count(reported_, "c1 k1"), 0) << "texts that are known are not reported";
}

TEST_F(WatchedFilesTest, AreReadAgainWhenTheLinkToTheirFolderChanges) {
  for (const char* version : {"v1", "v2"}) fs::create_directory(folder_ / version);
  for (const char* name : {"certificate", "key"}) {
    fs::rename(folder_ / name, folder_ / "v1" / name);
    std::ofstream(folder_ / "v2" / name) << "new";
  }
  fs::create_directory(folder_ / "mounted");
  fs::create_symlink("../v1", folder_ / "mounted/data");
  for (const char* name : {"certificate", "key"})
    fs::create_symlink(fs::path("data") / name, folder_ / "mounted" / name);
  watch("mounted");
  fs::create_symlink("../v2", folder_ / "mounted/next");
  fs::rename(folder_ / "mounted/next", folder_ / "mounted/data");
  EXPECT_TRUE(run_until_last("new new"));
}

TEST_F(WatchedFilesTest, OfAFolderThatCannotBeWatchedAreReadPeriodically) {
  watch("late", milliseconds(5));
  EXPECT_TRUE(run_until_last("none none"));
  fs::create_directory(folder_ / "late");
  write("late/certificate", "c2");
  write("late/key", "k2");
  EXPECT_TRUE(run_until_last("c2 k2"));
}

}  // namespace
}  // namespace spillway::host
