// Goal: an environment file is read from a volume of its pod and from nowhere else. Method: a volume on disk, without a
// mount namespace.
#include "host/volumes/volume_set.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace spillway::host {
namespace {

class EnvironmentFile : public ::testing::Test {
 protected:
  EnvironmentFile() {
    std::filesystem::create_directories(base_);
    const Outcome made = volumes_.set_up(
        {.name = "shared", .plugin = "empty-dir", .content = agent::EmptyDirectory{}, .fs_group = {}}, WallTime());
    EXPECT_TRUE(made) << (made ? "" : made.error().text());
  }

  ~EnvironmentFile() override { std::filesystem::remove_all(base_); }

  void write(const std::string& path, std::string_view text) {
    std::filesystem::create_directories((inside_ / path).parent_path());
    std::ofstream(inside_ / path) << text;
  }

  std::filesystem::path base_ =
      std::filesystem::path(::testing::TempDir()) / ("spillway-volume-set-" + std::to_string(::getpid()));
  std::filesystem::path inside_ = base_ / "volumes/kubernetes.io~empty-dir/shared";
  VolumeSet volumes_{VolumeSetOptions{.directory = (base_ / "volumes").string(), .hidden = {}, .mounts = {}}};
};

TEST_F(EnvironmentFile, IsReadWhole) {
  write("env", "A='b'\n");
  write("below/env", "");
  EXPECT_EQ(volumes_.read_file("shared", "env").value(), "A='b'\n");
  EXPECT_EQ(volumes_.read_file("shared", "/env").value(), "A='b'\n") << "a path from the root of the volume";
  EXPECT_EQ(volumes_.read_file("shared", "below/env").value(), "");
}

TEST_F(EnvironmentFile, IsMissedAsSuch) {
  EXPECT_EQ(volumes_.read_file("shared", "env").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(volumes_.read_file("other", "env").error().code, ErrorCode::kNotFound);
}

TEST_F(EnvironmentFile, IsInItsVolume) {
  std::ofstream(base_ / "secret") << "S='s'";
  std::filesystem::create_symlink(base_ / "secret", inside_ / "link");
  std::filesystem::create_symlink("../../../secret", inside_ / "climb");
  std::filesystem::create_directory(inside_ / "folder");
  for (const std::string path : {"link", "climb", "../../../secret", "folder"}) {
    EXPECT_FALSE(volumes_.read_file("shared", path)) << path;
  }
}

TEST_F(EnvironmentFile, HasABound) {
  write("most", std::string(agent::kVolumeFileMax, 'x'));
  write("more", std::string(agent::kVolumeFileMax + 1, 'x'));
  EXPECT_EQ(volumes_.read_file("shared", "most").value().size(), agent::kVolumeFileMax);
  EXPECT_EQ(volumes_.read_file("shared", "more").error().code, ErrorCode::kRequestEntityTooLarge);
}

}  // namespace
}  // namespace spillway::host
