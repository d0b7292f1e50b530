// Goal: the newest text of each file is what is on the disk in the end, and nothing else is left there.
#include "host/files/checkpoint_files.h"

#include "base/file.h"
#include "base/file_draft.h"
#include "host/files/resolver_file.h"
#include "runtime/loop.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

class CheckpointFilesTest : public ::testing::Test {
 protected:
  CheckpointFilesTest() { folder_ = ::mkdtemp(pattern_); }

  ~CheckpointFilesTest() override { fs::remove_all(folder_); }

  std::string text_of(const std::string& file) const { return read_file(folder_ / file).value_or("missing"); }

  auto count() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  char pattern_[36] = "/tmp/spillway-checkpoints-XXXXXX";
  fs::path folder_;
  runtime::Loop loop_;
};

TEST_F(CheckpointFilesTest, AResolverFileIsReadOrRefusedInUpstreamsWords) {
  const std::string file = (folder_ / "resolv.conf").string();
  EXPECT_EQ(read_resolver_file(file).error().text(), "open " + file + ": no such file or directory");
  EXPECT_EQ(read_resolver_file(folder_.string()).error().text(), "read " + folder_.string() + ": is a directory");
  ASSERT_TRUE(replace_file(file, "nameserver 192.0.2.1\n"));
  EXPECT_EQ(read_resolver_file(file).value(), "nameserver 192.0.2.1\n");
}

TEST_F(CheckpointFilesTest, WhatWaitsAtTheEndIsWritten) {
  {
    CheckpointFiles files(loop_, folder_, {});
    for (const char* text : {"1", "2", "3"}) files.save("cpus", text);
    files.save("memory", "nodes");
  }
  EXPECT_EQ(text_of("cpus"), "3");
  EXPECT_EQ(text_of("memory"), "nodes");
  EXPECT_EQ(count(), 2);
}

TEST_F(CheckpointFilesTest, AnActionWaitsForTheFilesThatWereSavedBefore) {
  CheckpointFiles files(loop_, folder_, {});
  bool at_once = false;
  files.when_saved([&] { at_once = true; });
  EXPECT_TRUE(at_once) << "nothing waits";
  std::string seen;
  for (const char* text : {"1", "2"}) files.save("allocated", text);
  files.save("actuated", "1");
  files.when_saved([&] {
    seen = text_of("allocated") + text_of("actuated");
    loop_.stop();
  });
  EXPECT_EQ(seen, "");
  loop_.run({});
  EXPECT_EQ(seen, "21");
}

TEST_F(CheckpointFilesTest, WhatIsSavedIsWrittenWhileTheLoopTurns) {
  CheckpointFiles files(loop_, folder_, {});
  for (int i = 0; i < 100; ++i) files.save(i % 2 == 0 ? "even" : "odd", std::to_string(i));
  const auto check = [this](auto& self) -> void {
    if (text_of("even") == "98" && text_of("odd") == "99") return loop_.stop();
    loop_.at(loop_.now().mono + milliseconds(1), [&self] { self(self); });
  };
  loop_.post([&check] { check(check); });
  loop_.run({});
  EXPECT_EQ(count(), 2);
}

TEST_F(CheckpointFilesTest, AWriteThatHangsBeyondTheEndReplacesNothing) {
  std::binary_semaphore begun{0};
  std::binary_semaphore goes_on{0};
  std::binary_semaphore ended{0};
  {
    // The thread keeps its copy of the function until the write has ended.
    const std::shared_ptr<std::binary_semaphore> copies(&ended, [](auto* signal) { signal->release(); });
    const auto hang = [&, copies](const std::string& path, std::string_view text) {
      begun.release();
      goes_on.acquire();
      return FileDraft::write(path, text);
    };
    CheckpointFiles files(loop_, folder_, {}, hang);
    files.save("cpus", "1");
    begun.acquire();
    files.save("cpus", "2");
  }
  EXPECT_EQ(text_of("cpus"), "2");
  goes_on.release();
  ended.acquire();
  EXPECT_EQ(text_of("cpus"), "2") << "the older text came later";
  EXPECT_EQ(count(), 1) << "its draft stays";
}

TEST_F(CheckpointFilesTest, TheTextOfAWriteThatHangsIsWrittenAtTheEnd) {
  std::binary_semaphore begun{0};
  std::binary_semaphore goes_on{0};
  std::binary_semaphore ended{0};
  {
    const std::shared_ptr<std::binary_semaphore> copies(&ended, [](auto* signal) { signal->release(); });
    const auto hang = [&, copies](const std::string& path, std::string_view text) {
      begun.release();
      goes_on.acquire();
      return FileDraft::write(path, text);
    };
    CheckpointFiles files(loop_, folder_, {}, hang);
    files.save("cpus", "1");
    begun.acquire();
  }
  EXPECT_EQ(text_of("cpus"), "1");
  ASSERT_TRUE(replace_file(folder_ / "cpus", "of the next process"));
  goes_on.release();
  ended.acquire();
  EXPECT_EQ(text_of("cpus"), "of the next process");
}

TEST_F(CheckpointFilesTest, TheOldTextStaysIfTheNewOneCannotBeWritten) {
  ASSERT_TRUE(replace_file(folder_ / "cpus", "old"));
  {
    CheckpointFiles(loop_, folder_ / "missing", {}).save("cpus", "new");
  }
  EXPECT_EQ(text_of("cpus"), "old");
}

}  // namespace
}  // namespace spillway::host
