// The directory of a local volume: it has to be there, and is given to a group without end of folders or files.
#include "host/volumes/group_access.h"
#include "host/volumes/host_path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

class LocalDirectory : public ::testing::Test {
 protected:
  LocalDirectory() {
    std::string name = fs::temp_directory_path() / "spillway-local-XXXXXX";
    folder_ = fs::canonical(::mkdtemp(name.data()));
  }

  ~LocalDirectory() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string error_of(const fs::path& path, const std::string& hidden = "/no/such") {
    const std::array<std::string, 1> kept{hidden};
    const auto opened = open_local_directory(path.string(), kept);
    return opened ? "" : opened.error().message;
  }

  fs::path folder_;
};

TEST_F(LocalDirectory, HasToBeADirectoryThatIsThere) {
  EXPECT_EQ(error_of(folder_), "");
  EXPECT_EQ(error_of(folder_ / "none"), "path \"" + (folder_ / "none").string() + "\" does not exist");
  std::ofstream(folder_ / "file").put('x');
  EXPECT_EQ(error_of(folder_ / "file"), "only directory and block device are supported");
  EXPECT_FALSE(fs::exists(folder_ / "none"));
}

TEST_F(LocalDirectory, HoldsNothingOfTheNode) {
  fs::create_directories(folder_ / "state/pods");
  EXPECT_NE(error_of(folder_ / "state", folder_ / "state"), "");
  EXPECT_NE(error_of(folder_ / "state/pods", folder_ / "state"), "");
  EXPECT_NE(error_of(folder_, folder_ / "state"), "");
  fs::create_directories(folder_ / "disk");
  EXPECT_EQ(error_of(folder_ / "disk", folder_ / "state"), "");
}

/// All entries of a tree, as paths with their types.
std::set<std::string> tree_of(const fs::path& folder) {
  std::set<std::string> found;
  for (const auto& each : fs::recursive_directory_iterator(folder))
    found.insert(each.path().string() + (each.is_symlink() ? "@" : each.is_directory() ? "/" : ""));
  return found;
}

class MadePath : public LocalDirectory {
 protected:
  MadePath() {
    fs::create_directories(folder_ / "state/n1/pods");
    fs::create_directories(folder_ / "data");
    std::ofstream(folder_ / "state/n1/journal.jsonl").put('x');
    fs::create_directory_symlink(folder_ / "state/n1", folder_ / "data/link");
    fs::create_directory_symlink("../state/n1", folder_ / "data/relative");
    fs::create_directory_symlink("link", folder_ / "data/second");
    fs::create_symlink(folder_ / "state/n1/not-there", folder_ / "data/dangling");
  }

  Result<UniqueFd> open(const std::string& path, const std::string& type) {
    const std::array<std::string, 2> hidden{(folder_ / "state/n1").string(), (folder_ / "later/state").string()};
    return open_host_path({path, type}, hidden);
  }
};

TEST_F(MadePath, IsNotMadeAmongTheNodesOwnFiles) {
  const std::set<std::string> before = tree_of(folder_);
  const std::string top = folder_.string();
  for (const std::string type : {"FileOrCreate", "DirectoryOrCreate", "File", "Directory", ""}) {
    for (const std::string way : {"/state/n1", "/data/link", "/data/relative", "/data/second", "/state/n1/pods/..",
                                  "/data/../state/n1", "/data/link/../n1", "/state/./n1//", "/data/link/pods/.."}) {
      for (const std::string name : {"/planted", "/planted/below", "/planted/a/b/c", "/pods/planted", "/planted/",
                                     "/planted/../again", "/planted/../../../data/new"}) {
        EXPECT_FALSE(open(top + way + name, type)) << type << " " << way << name;
        EXPECT_FALSE(open((top + way + name).substr(1), type)) << "relative: " << type << " " << way << name;
        ASSERT_EQ(tree_of(folder_), before) << type << " " << way << name;
      }
    }
    for (const std::string path : {"/data/dangling", "/data/dangling/below", "/data/new/../../state/n1/planted",
                                   "/later/state", "/later", "/later/state/below", "/state/n1", "/state"}) {
      EXPECT_FALSE(open(top + path, type)) << type << " " << path;
      ASSERT_EQ(tree_of(folder_), before) << type << " " << path;
    }
  }
}

TEST_F(MadePath, IsRefusedAsForbiddenBeforeItIsMade) {
  for (const std::string type : {"FileOrCreate", "DirectoryOrCreate"}) {
    const auto made = open(folder_ / "state/n1/planted", type);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kForbidden);
    EXPECT_EQ(made.error().message,
              "hostPath " + (folder_ / "state/n1/planted").string() + ": it holds files of this node that no pod sees");
  }
}

TEST_F(MadePath, IsMadeElsewhere) {
  const std::string top = folder_.string();
  for (const std::string path : {"/data/a/b/c", "/state/n2", "/state/n1-too/x", "/data/./d//", "/data/../data/e/f"}) {
    EXPECT_TRUE(open(top + path, "DirectoryOrCreate")) << path;
    EXPECT_TRUE(fs::is_directory(top + path)) << path;
  }
  for (const std::string path : {"/data/a/file", "/state/file", "/data/../data/file"}) {
    EXPECT_TRUE(open(top + path, "FileOrCreate")) << path;
    EXPECT_TRUE(fs::is_regular_file(top + path)) << path;
  }
  EXPECT_TRUE(open((top + "/data/relative-to-root").substr(1), "DirectoryOrCreate"));
  EXPECT_TRUE(fs::is_directory(folder_ / "data/relative-to-root"));
}

TEST_F(MadePath, IsMadeWithoutATypeAsContainerRuntimesDo) {
  EXPECT_TRUE(open(folder_ / "data/run/network", ""));
  EXPECT_TRUE(fs::is_directory(folder_ / "data/run/network"));
  std::ofstream(folder_ / "data/file").put('x');
  EXPECT_TRUE(open(folder_ / "data/file", ""));
  EXPECT_TRUE(fs::is_regular_file(folder_ / "data/file"));
}

/// The last component cannot be made: its name is too long.
TEST_F(MadePath, KeepsNothingOfWhatCouldNotBeMadeToItsEnd) {
  const std::set<std::string> before = tree_of(folder_);
  EXPECT_FALSE(open(folder_ / "data/x/y" / std::string(300, 'z'), "DirectoryOrCreate"));
  EXPECT_EQ(tree_of(folder_), before);
  EXPECT_FALSE(open(folder_ / "data/x/../y", "DirectoryOrCreate")) << "as the kernel: x is not there";
  EXPECT_EQ(tree_of(folder_), before);
}

/// A path may lead to a device, on which opening alone has an effect.
TEST_F(LocalDirectory, IsGivenToAGroupWithoutOpeningFiles) {
  const std::string file = (folder_ / "file").string();
  const UniqueFd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(made);
  const UniqueFd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(watch.get(), file.c_str(), IN_OPEN), 0);
  const UniqueFd top(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(give_to_group(top.get(), ::getgid(), GroupAccess::kReadWrite));
  struct stat status = {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0660U);
  std::array<char, 256> events{};
  EXPECT_EQ(::read(watch.get(), events.data(), events.size()), -1) << "it was opened";
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(LocalDirectory, IsGivenToAGroupAHundredLevelsDeep) {
  UniqueFd at(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 150; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0700), 0);
    at.reset(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  const auto top = open_local_directory(folder_.string(), {});
  ASSERT_TRUE(top);
  EXPECT_FALSE(give_to_group(top->get(), ::getgid(), GroupAccess::kReadWrite));
  struct stat first = {};
  struct stat last = {};
  ASSERT_EQ(::stat((folder_ / "d").c_str(), &first), 0);
  ASSERT_EQ(::fstat(at.get(), &last), 0);
  EXPECT_EQ(first.st_mode & 07777, 02770U);
  EXPECT_EQ(last.st_mode & 07777, 0700U);
}

}  // namespace
}  // namespace spillway::host
