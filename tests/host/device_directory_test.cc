// Goal: the meeting place of agent and plugins is clean after a start, the checkpoint is whole, and the error of a
// container names the devices that it cannot have.
#include "base/file.h"
#include "host/devices/device_access.h"
#include "host/devices/plugin_directory.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

class PluginDirectoryTest : public ::testing::Test {
 protected:
  PluginDirectoryTest() { folder_ = mkdtemp(pattern_); }

  ~PluginDirectoryTest() override { fs::remove_all(folder_); }

  void make_socket(const std::string& path) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(socket);
  }

  char pattern_[32] = "/tmp/spillway-plugins-XXXXXX";
  fs::path folder_;
};

TEST_F(PluginDirectoryTest, IsMadeAndRidOfSocketsAlone) {
  const fs::path path = folder_ / "a" / "plugins";
  ASSERT_TRUE(PluginDirectory::open(path, "kubelet.sock"));
  make_socket(path / "kubelet.sock");
  make_socket(path / "gpu.sock");
  std::ofstream(path / "notes") << "mine";
  ASSERT_TRUE(PluginDirectory::open(path, "kubelet.sock"));
  EXPECT_FALSE(fs::exists(path / "kubelet.sock"));
  EXPECT_FALSE(fs::exists(path / "gpu.sock"));
  EXPECT_TRUE(fs::exists(path / "notes"));
}

TEST_F(PluginDirectoryTest, FindsTheCheckpointThatWasSaved) {
  auto directory = PluginDirectory::open(folder_, "kubelet.sock");
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->checkpoint(), std::nullopt);
  ASSERT_TRUE(replace_file(directory->path_of(PluginDirectory::kCheckpointName), "what was saved"));
  EXPECT_EQ(PluginDirectory::open(folder_, "kubelet.sock")->checkpoint(), "what was saved");
}

TEST_F(PluginDirectoryTest, SaysThatAPathIsTooLongForASocket) {
  const auto opened = PluginDirectory::open(folder_ / std::string(100, 'd'), "kubelet.sock");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text().find("at most 107 bytes"), std::string::npos) << opened.error().text();
}

TEST(DeviceAccess, IsToWhatTheHostHasUnderTheSamePath) {
  agent::DeviceGrant grant;
  grant.nodes.push_back({"/dev/null", "/dev/null", "rw"});
  grant.mounts.push_back({"/etc", "/etc", true});
  EXPECT_TRUE(check_device_access(grant));
  agent::DeviceGrant elsewhere = grant;
  elsewhere.nodes.front().container_path = "/dev/other";
  EXPECT_FALSE(check_device_access(elsewhere));
  agent::DeviceGrant missing = grant;
  missing.mounts.push_back({"/no/such/thing", "/no/such/thing", true});
  EXPECT_FALSE(check_device_access(missing));
  grant.cdi_devices.push_back("example.com/gpu=0");
  EXPECT_FALSE(check_device_access(grant));
}

}  // namespace
}  // namespace spillway::host
