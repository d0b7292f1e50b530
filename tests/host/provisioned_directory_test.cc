// Directories of provisioned volumes: made and removed by name, and nothing that a pod leaves there leads out.
#include "host/volumes/provisioned_directory.h"

#include "host/volumes/group_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

class ProvisionedDirectory : public ::testing::Test {
 protected:
  ProvisionedDirectory() {
    std::string name = fs::temp_directory_path() / "spillway-provisioned-XXXXXX";
    state_ = fs::canonical(::mkdtemp(name.data()));
    folder_ = provisioned_folder(state_.string());
  }

  ~ProvisionedDirectory() override {
    std::error_code ignored;
    fs::remove_all(state_, ignored);
  }

  static mode_t mode_of(const fs::path& path) {
    struct stat status = {};
    return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }

  fs::path volume(const std::string& name = "pvc-1") const { return fs::path(folder_) / name; }

  fs::path state_;
  std::string folder_;
};

TEST_F(ProvisionedDirectory, IsMadeOnceAndOpenForEveryUserBelowAFolderOfRoot) {
  ASSERT_TRUE(make_provisioned(folder_, "pvc-1"));
  EXPECT_EQ(mode_of(folder_), 0700U);
  EXPECT_EQ(mode_of(volume()), 0777U);
  std::ofstream(volume() / "kept").put('x');
  ::chmod(volume().c_str(), 0750);
  ASSERT_TRUE(make_provisioned(folder_, "pvc-1"));
  EXPECT_TRUE(fs::exists(volume() / "kept"));
  EXPECT_EQ(mode_of(volume()), 0750U) << "what its pod chose";
  EXPECT_TRUE(open_provisioned(folder_, "pvc-1"));
}

TEST_F(ProvisionedDirectory, IsRemovedWithEverythingInItAndNeedNotBeThere) {
  EXPECT_TRUE(remove_provisioned(folder_, "pvc-1")) << "not even the folder is there";
  ASSERT_TRUE(make_provisioned(folder_, "pvc-1"));
  ASSERT_TRUE(make_provisioned(folder_, "pvc-2"));
  fs::create_directories(volume() / "a/b/c");
  std::ofstream(volume() / "a/b/c/file").put('x');
  ::mkfifo((volume() / "a/pipe").c_str(), 0600);
  ASSERT_TRUE(remove_provisioned(folder_, "pvc-1"));
  EXPECT_FALSE(fs::exists(volume()));
  EXPECT_TRUE(fs::exists(volume("pvc-2")));
  EXPECT_TRUE(remove_provisioned(folder_, "pvc-1"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(ProvisionedDirectory, HasAPlainName) {
  fs::create_directories(state_ / "pods");
  for (const char* name : {"", ".", "..", "../pods", "a/b", "/etc", ".removed-pvc-1"}) {
    EXPECT_FALSE(make_provisioned(folder_, name)) << name;
    EXPECT_FALSE(remove_provisioned(folder_, name)) << name;
    EXPECT_FALSE(open_provisioned(folder_, name)) << name;
  }
  EXPECT_FALSE(make_provisioned(folder_, std::string(300, 'a')));
  EXPECT_TRUE(fs::exists(state_ / "pods"));
}

TEST_F(ProvisionedDirectory, FollowsNoLink) {
  fs::create_directories(state_ / "outside/below");
  std::ofstream(state_ / "outside/below/file").put('x');
  ASSERT_TRUE(make_provisioned(folder_, "pvc-1"));
  fs::create_directories(volume() / "deep");
  fs::create_directory_symlink(state_ / "outside", volume() / "link");
  fs::create_directory_symlink("../../../outside", volume() / "deep/link");
  fs::create_symlink(state_ / "outside/below/file", volume() / "file");
  ASSERT_TRUE(remove_provisioned(folder_, "pvc-1"));
  EXPECT_TRUE(fs::exists(state_ / "outside/below/file"));
  fs::create_directory_symlink(state_ / "outside", volume());
  EXPECT_FALSE(open_provisioned(folder_, "pvc-1"));
  EXPECT_FALSE(make_provisioned(folder_, "pvc-1"));
  ASSERT_TRUE(remove_provisioned(folder_, "pvc-1"));
  EXPECT_TRUE(fs::exists(state_ / "outside/below/file"));
  EXPECT_FALSE(fs::is_symlink(volume()));
}

/// More levels than a process has descriptors, and a path longer than any call takes.
TEST_F(ProvisionedDirectory, IsRemovedHoweverDeepItIs) {
  ASSERT_TRUE(make_provisioned(folder_, "pvc-1"));
  int directory = ::open(volume().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int level = 0; level < 3000; ++level) {
    ASSERT_EQ(::mkdirat(directory, "nested", 0700), 0);
    const int next = ::openat(directory, "nested", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(directory);
    directory = next;
  }
  ::close(directory);
  ASSERT_TRUE(remove_provisioned(folder_, "pvc-1"));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ProvisionedDirectory, GoesOnWhereAnEarlierRemovalEnded) {
  ASSERT_TRUE(make_provisioned(folder_, "pvc-1"));
  fs::create_directories(fs::path(folder_) / ".removed-pvc-1/0/left");
  fs::create_directories(fs::path(folder_) / ".removed-pvc-1/3");
  fs::create_directories(volume() / "a/b");
  ASSERT_TRUE(remove_provisioned(folder_, "pvc-1"));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ProvisionedDirectory, IsLeftWhereSomethingIsMountedInIt) {
  ASSERT_TRUE(make_provisioned(folder_, "pvc-1"));
  fs::create_directories(volume() / "a/mounted");
  fs::create_directories(state_ / "outside");
  std::ofstream(state_ / "outside/file").put('x');
  const std::string target = volume() / "a/mounted";
  if (::mount((state_ / "outside").c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "needs the right to mount";
  }
  const Outcome removed = remove_provisioned(folder_, "pvc-1");
  EXPECT_FALSE(removed);
  EXPECT_TRUE(fs::exists(state_ / "outside/file"));
  bool unmounted = false;
  for (const auto& each : fs::recursive_directory_iterator(folder_)) {
    if (each.path().filename() != "mounted") continue;
    unmounted = ::umount2(each.path().c_str(), MNT_DETACH) == 0;
    break;
  }
  EXPECT_TRUE(unmounted);
  EXPECT_TRUE(remove_provisioned(folder_, "pvc-1"));
  EXPECT_TRUE(fs::exists(state_ / "outside/file"));
}

TEST_F(ProvisionedDirectory, IsGivenToTheIdsOfTheNextPod) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_TRUE(make_provisioned(folder_, "pvc-1"));
  fs::create_directories(volume() / "database");
  std::ofstream(volume() / "database/file").put('x');
  std::ofstream(state_ / "outside").put('x');
  fs::create_symlink(state_ / "outside", volume() / "link");
  ASSERT_EQ(::chown((volume() / "database/file").c_str(), 0x00080000 + 999, 0x00080000 + 998), 0);
  const auto opened = open_provisioned(folder_, "pvc-1");
  ASSERT_TRUE(opened);
  ASSERT_TRUE(give_to_pod_ids(opened->get(), 0x00110000));
  struct stat status = {};
  ASSERT_EQ(::stat((volume() / "database/file").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0x00110000U + 999);
  EXPECT_EQ(status.st_gid, 0x00110000U + 998);
  ASSERT_EQ(::stat(volume().c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0x00110000U);
  ASSERT_EQ(::stat((state_ / "outside").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0U) << "the link itself was given, not what it names";
}

}  // namespace
}  // namespace spillway::host
