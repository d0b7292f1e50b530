// Orders in which a pod's attachment is made and ended, with a plug-in that is a shell script.
#include "host/network/pod_networks.h"

#include "base/file.h"
#include "runtime/loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace spillway::host {
namespace {

class PodNetworkOrder : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "names of network namespaces are mounts, which only root can make";
    std::filesystem::remove_all(folder);
    for (const char* each : {"state", "configuration", "plugins"}) std::filesystem::create_directories(folder / each);
    std::ofstream(folder / "configuration/net.conflist")
        << R"({"cniVersion":"1.0.0","name":"net","plugins":[{"type":"only"}]})";
    // A call waits until it may end: DEL for as long as there is the file "hold".
    const std::filesystem::path plugin = folder / "plugins/only";
    std::ofstream(plugin) << "#!/bin/sh\necho $CNI_COMMAND >> " << (folder / "calls").string()
                          << "\n[ $CNI_COMMAND = ADD ] && { echo '{\"ips\":[{\"address\":\"10.0.0.7/24\"}]}'; exit; }\n"
                          << "while [ -e " << (folder / "hold").string() << " ]; do sleep 0.01; done\n";
    std::filesystem::permissions(plugin, std::filesystem::perms::owner_all);
  }

  void TearDown() override { std::filesystem::remove_all(folder); }

  /// The record of an attachment that an earlier process left.
  void write_former_record() {
    CniAttachment left{.id = "uid-1",
                       .netns = "/run/none",
                       .arguments = {},
                       .capabilities = api::Json::object({}),
                       .configuration = R"({"cniVersion":"1.0.0","name":"net","plugins":[{"type":"only"}]})",
                       .result = {}};
    std::ofstream(folder / "state/uid-1.json") << left.text();
  }

  std::unique_ptr<PodNetworks> open() {
    auto made = PodNetworks::create(loop, telemetry::Log{},
                                    {.configuration = (folder / "configuration").string(),
                                     .tools = {.directories = {(folder / "plugins").string()}},
                                     .state = (folder / "state").string()});
    EXPECT_TRUE(made) << made.error().text();
    return *std::move(made);
  }

  PodNetworks::Wish wish() const {
    return {.uid = "uid-1",
            .pod = {"shop", "cart"},
            .capabilities = api::Json::object({}),
            .network = UniqueFd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC))};
  }

  std::string called() const { return read_file((folder / "calls").string()).value_or(""); }

  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("pod_networks_" + std::to_string(::getpid()));
  runtime::Loop loop;
};

/// The attachment that an earlier process left is being ended when the pod, which still exists, gets a new one; the
/// pod is stopped before that has begun.
TEST_F(PodNetworkOrder, AnAttachmentThatWaitsIsNotMadeOnceThePodIsStopped) {
  write_former_record();
  std::ofstream(folder / "hold") << "";
  const auto networks = open();
  networks->remove_leftovers();
  std::string seen;
  networks->attach(wish(),
                   [&](const Result<std::vector<std::string>>& ips) { seen += ips ? "attached " : "refused "; });
  networks->detach("uid-1", [&] {
    seen += "detached ";
    loop.stop();
  });
  std::filesystem::remove(folder / "hold");
  loop.run({});
  EXPECT_EQ(seen, "refused detached ");
  EXPECT_EQ(called(), "DEL\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "state"));
}

/// A second request while one waits is refused, and the first one is kept.
TEST_F(PodNetworkOrder, OneAttachmentOfAPodWaits) {
  write_former_record();
  std::ofstream(folder / "hold") << "";
  const auto networks = open();
  networks->remove_leftovers();
  std::string seen;
  networks->attach(wish(), [&](const Result<std::vector<std::string>>& ips) {
    seen += ips ? "attached " : "refused ";
    networks->detach("uid-1", [&] { loop.stop(); });
  });
  networks->attach(wish(), [&](const Result<std::vector<std::string>>& ips) {
    seen += ips ? "second " : "second refused ";
    std::filesystem::remove(folder / "hold");
  });
  loop.run({});
  EXPECT_EQ(seen, "second refused attached ");
  EXPECT_EQ(called(), "DEL\nADD\nDEL\n");
}

/// The same pod is not stopped: its attachment is made when the former one has ended.
TEST_F(PodNetworkOrder, AnAttachmentWaitsForTheEndOfTheFormerOne) {
  write_former_record();
  const auto networks = open();
  networks->remove_leftovers();
  std::string seen;
  networks->attach(wish(), [&](const Result<std::vector<std::string>>& ips) {
    seen += ips ? "attached " : ips.error().text();
    networks->detach("uid-1", [&] { loop.stop(); });
  });
  loop.run({});
  EXPECT_EQ(seen, "attached ");
  EXPECT_EQ(called(), "DEL\nADD\nDEL\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "state"));
}

}  // namespace
}  // namespace spillway::host
