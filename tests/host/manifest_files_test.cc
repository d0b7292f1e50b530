// Goal: the contents of a manifest directory are reported at once and again when they change; other files in it do no
// harm.
#include "host/files/manifest_files.h"

#include "runtime/loop.h"
#include "support/patience.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <semaphore>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

Result<api::Json> as_text(const std::string& file, const std::string& text) {
  if (text == "bad") return invalid(file + ":1", "expected something better");
  return api::Json(text);
}

class ManifestFilesTest : public ::testing::Test {
 protected:
  ManifestFilesTest() { folder_ = mkdtemp(pattern_); }

  ~ManifestFilesTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  std::string path(const std::string& name = {}) const {
    return name.empty() ? folder_.string() : (folder_ / name).string();
  }

  char pattern_[32] = "/tmp/spillway-manifests-XXXXXX";
  fs::path folder_;
};

TEST_F(ManifestFilesTest, AreReadInOrderOfTheirNames) {
  write("b.yaml", "two");
  write("a.json", "one");
  write("c.yaml", "bad");
  write(".swp", "hidden");
  fs::create_directory(folder_ / "sub");
  const auto found = read_manifests(path(), as_text);
  EXPECT_EQ(found.problem, "");
  ASSERT_EQ(found.files.size(), 3u);
  EXPECT_EQ(found.files[0].file, path("a.json"));
  EXPECT_EQ(*found.files[0].document, api::Json("one"));
  EXPECT_EQ(*found.files[1].document, api::Json("two"));
  EXPECT_EQ(found.files[2].document.error().text(), path("c.yaml") + ":1: expected something better");
}

TEST_F(ManifestFilesTest, MayBeOneFileOrNothing) {
  write("a.yaml", "one");
  EXPECT_EQ(read_manifests(path("a.yaml"), as_text).files.size(), 1u);
  const auto nothing = read_manifests(path("missing"), as_text);
  EXPECT_TRUE(nothing.files.empty());
  EXPECT_EQ(nothing.problem, "");
}

TEST_F(ManifestFilesTest, AreBounded) {
  write("large", std::string(kManifestBytesMax + 1, 'x'));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const auto found = read_manifests(path(), as_text);
  ASSERT_EQ(found.files.size(), 2u);
  EXPECT_EQ(found.files[0].document.error().text(), path("large") + ": expected at most 1048576 bytes");
  EXPECT_EQ(found.files[1].document.error().text(), path("pipe") + ": expected a regular file");
  for (std::size_t i = 0; i < kManifestsMax; ++i) write("f" + std::to_string(i), "x");
  EXPECT_EQ(read_manifests(path(), as_text).problem, path() + ": expected at most 256 files, there are 258");
}

/// Runs the loop until the listener has got `wanted` files, and returns the last ones.
struct Listening {
  Listening(const std::string& path, Duration period)
      : deadline(loop.at(loop.now().mono + support::kPatience, [this] { loop.stop(); })) {
    files.emplace(loop, ManifestFiles::Options{path, period, as_text}, [this](const agent::StaticManifests& read) {
      last = read;
      if (enough && enough(last)) loop.stop();
    });
  }

  void wait(std::function<bool(const agent::StaticManifests&)> condition) {
    enough = std::move(condition);
    loop.run({});
  }

  runtime::Loop loop;
  runtime::Loop::TimerId deadline;
  agent::StaticManifests last;
  std::function<bool(const agent::StaticManifests&)> enough;
  std::optional<ManifestFiles> files;
};

/// A parser that waits in its first call; the thread of the files is in it then.
struct HeldParser {
  static inline std::binary_semaphore reads{0};
  static inline std::binary_semaphore may_go_on{0};
  static inline std::atomic<int> parsed = 0;

  static Result<api::Json> parse(const std::string& file, const std::string& text) {
    if (parsed++ == 0) {
      reads.release();
      may_go_on.acquire();
    }
    return as_text(file, text);
  }
};

TEST_F(ManifestFilesTest, AChangeDuringAReadingIsReadAfterIt) {
  HeldParser::parsed = 0;
  write("a.yaml", "one");
  runtime::Loop loop;
  std::size_t seen = 0;
  ManifestFiles files(loop, {path(), hours(1), HeldParser::parse}, [&](const agent::StaticManifests& read) {
    seen = read.files.size();
    if (seen == 2) loop.stop();
  });
  HeldParser::reads.acquire();  // the folder is listed, its only file is being read
  write("b.yaml", "two");
  loop.post(
      [&loop] { loop.post([] { HeldParser::may_go_on.release(); }); });  // after the turn in which the change is seen
  loop.at(loop.now().mono + support::kPatience, [&] { loop.stop(); });
  loop.run({});
  EXPECT_EQ(seen, 2U);
}

TEST_F(ManifestFilesTest, ChangesAreReported) {
  write("a.yaml", "one");
  Listening listening(path(), hours(1));
  listening.wait([](const auto& read) { return read.files.size() == 1; });
  EXPECT_EQ(listening.last.files.size(), 1u);
  write("b.yaml", "two");
  listening.wait([](const auto& read) { return read.files.size() == 2; });
  EXPECT_EQ(listening.last.files.size(), 2u);
  write("new", "three");
  fs::rename(folder_ / "new", folder_ / "a.yaml");
  listening.wait(
      [](const auto& read) { return read.files.size() == 2 && *read.files[0].document == api::Json("three"); });
  EXPECT_EQ(*listening.last.files[0].document, api::Json("three"));
  fs::remove(folder_ / "b.yaml");
  listening.wait([](const auto& read) { return read.files.size() == 1; });
  EXPECT_EQ(listening.last.files.size(), 1u);
}

/// As an update of a whole folder is done: the new one takes the name of the old one.
TEST_F(ManifestFilesTest, AFolderThatIsReplacedIsWatchedOn) {
  fs::create_directory(folder_ / "m");
  write("m/a.yaml", "one");
  Listening listening(path("m"), hours(1));
  listening.wait([](const auto& read) { return read.files.size() == 1; });
  fs::create_directory(folder_ / "next");
  write("next/a.yaml", "two");
  fs::rename(folder_ / "m", folder_ / "old");
  fs::rename(folder_ / "next", folder_ / "m");
  listening.wait(
      [](const auto& read) { return read.files.size() == 1 && *read.files[0].document == api::Json("two"); });
  ASSERT_EQ(listening.last.files.size(), 1u);
  EXPECT_EQ(*listening.last.files[0].document, api::Json("two"));
  write("m/b.yaml", "three");
  listening.wait([](const auto& read) { return read.files.size() == 2; });
  EXPECT_EQ(listening.last.files.size(), 2u) << "the new folder is not watched";
}

TEST_F(ManifestFilesTest, IsReadAgainInAnyCase) {
  Listening listening(path("later"), milliseconds(20));
  listening.wait([](const auto& read) { return read.files.empty(); });
  fs::create_directory(folder_ / "later");
  write("later/a.yaml", "one");
  listening.wait([](const auto& read) { return read.files.size() == 1; });
  EXPECT_EQ(listening.last.files.size(), 1u);
}

}  // namespace
}  // namespace spillway::host
