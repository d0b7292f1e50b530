// Goal: devices of plugins reach the containers that request them, one pod at a time, across a restart of the agent,
// and the node never offers a missing device.
#include "agent/devices/device_manager.h"
#include "agent/scripted_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::string_view kResource = "example.com/gpu";

std::vector<Device> devices(int healthy, int unhealthy = 0) {
  std::vector<Device> all;
  for (int i = 0; i < healthy + unhealthy; ++i) all.push_back({fmt::format("gpu{}", i), i < healthy, {}});
  return all;
}

Json pod_with(const std::string& name, int count) {
  Json document = pod_document({.name = name, .memory_request = "16Mi"});
  Json& container = document.at({"spec", "containers"})->if_array()->front();
  const Json amount = Json(fmt::format("{}", count));
  container.make({"resources", "limits"})[kResource] = amount;
  container.make({"resources", "requests"})[kResource] = amount;
  return document;
}

/// A node whose plugin the test plays.
struct Node : ScriptedCluster {
  /// Commands to plugins since the last call; checkpoints are kept aside.
  std::vector<DeviceCommand> take() {
    std::vector<DeviceCommand> asked;
    for (DeviceCommand& command : agent().take_device_commands()) {
      if (auto* save = std::get_if<SaveDevices>(&command)) {
        device_checkpoint = save->text;
      } else {
        asked.push_back(std::move(command));
      }
    }
    return asked;
  }

  void report(const DeviceEvent& event) { send(event); }

  void plug_in(int healthy, PluginOptions options = {}) {
    report(PluginRegistered{++plugin, std::string(kResource), options});
    report(PluginListed{plugin, devices(healthy)});
    run(seconds(1));
  }

  /// Answers every Allocate with a variable that lists the devices; the devices, in order of the calls.
  std::vector<std::vector<std::string>> allocate() {
    std::vector<std::vector<std::string>> given;
    for (const DeviceCommand& command : take()) {
      const auto* call = std::get_if<AllocateDevices>(&command);
      if (call == nullptr) continue;
      EXPECT_EQ(call->plugin, plugin);
      given.push_back(call->ids);
      DeviceGrant grant;
      grant.env["GPUS"] = fmt::format("{}", fmt::join(call->ids, ","));
      report(DevicesAllocated{call->call, grant});
    }
    run(seconds(1));
    return given;
  }

  void add(const std::string& name, int count) {
    put(pod_with(name, count));
    run(seconds(1));
  }

  std::string offered(std::string_view list) const {
    const Json* amount = api.find("/api/v1/nodes/n1")->at({"status", list, kResource});
    return amount == nullptr ? "absent" : *amount->if_string();
  }

  std::string message(const std::string& name) const { return std::string(pod(name).string_at({"status", "message"})); }

  std::string variable(const std::string& name) const {
    const auto* start = host.last<StartContainer>();
    if (start == nullptr) return "not started";
    const auto found = std::ranges::find(start->env, name, &std::pair<std::string, std::string>::first);
    return found == start->env.end() ? "absent" : found->second;
  }

  /// Starts another agent with the checkpoint of this one.
  void reboot() {
    take();
    host.take_commands();
    restart();
  }

  PluginId plugin = 0;
};

struct Started : Node {
  Started() {
    start();
    run(seconds(1));
  }
};

TEST(Devices, ShowOnTheNodeAsTheyAre) {
  Started node;
  EXPECT_EQ(node.offered("capacity"), "absent");
  node.plug_in(4);
  EXPECT_EQ(node.offered("capacity"), "4");
  EXPECT_EQ(node.offered("allocatable"), "4");
  node.report(PluginListed{node.plugin, devices(3, 1)});
  node.run(seconds(1));
  EXPECT_EQ(node.offered("capacity"), "4");
  EXPECT_EQ(node.offered("allocatable"), "3");
}

TEST(Devices, AreReportedByContainer) {
  Started node;
  node.plug_in(3);
  node.report(PluginListed{node.plugin, {{"gpu0", true, {0, 1}}, {"gpu1", true, {}}, {"gpu2", false, {}}}});
  node.add("train", 1);
  node.allocate();
  const std::vector<PodParts> pods = node.agent().held_parts();
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(pods[0].containers[0].held.devices, std::vector<HeldDevice>({{std::string(kResource), "gpu0", {0, 1}}}));
  EXPECT_EQ(node.agent().allocatable_parts().devices,
            std::vector<HeldDevice>({{std::string(kResource), "gpu0", {0, 1}}, {std::string(kResource), "gpu1", {}}}));
}

TEST(Devices, OfAPluginThatIsGoneAreNotAllocatableAndGivenUpAfterTheGrace) {
  Started node;
  node.plug_in(4);
  node.report(PluginGone{node.plugin});
  node.run(seconds(1));
  EXPECT_EQ(node.offered("capacity"), "4");
  EXPECT_EQ(node.offered("allocatable"), "0");
  node.run(kPluginGrace);
  EXPECT_EQ(node.offered("capacity"), "0");
  EXPECT_EQ(node.offered("allocatable"), "0");
  node.plug_in(2);
  EXPECT_EQ(node.offered("allocatable"), "2");
}

TEST(Devices, OfAnEarlierRegistrationAreIgnored) {
  Started node;
  node.plug_in(4);
  const PluginId old = node.plugin;
  node.plug_in(2);
  node.report(PluginGone{old});
  node.report(PluginListed{old, devices(9)});
  node.run(seconds(1));
  EXPECT_EQ(node.offered("allocatable"), "2");
}

TEST(Devices, AreAllocatedBeforeTheContainerStarts) {
  Started node;
  node.plug_in(4);
  node.add("train", 2);
  EXPECT_EQ(node.phase("train"), "Pending");
  EXPECT_FALSE(node.host.is_running("uid-train", "c"));
  EXPECT_EQ(node.allocate(), (std::vector<std::vector<std::string>>{{"gpu0", "gpu1"}}));
  EXPECT_EQ(node.phase("train"), "Running");
  EXPECT_EQ(node.variable("GPUS"), "gpu0,gpu1");
}

TEST(Devices, AreHeldByOnePodUntilItEnds) {
  Started node;
  node.plug_in(3);
  node.add("first", 2);
  node.allocate();
  node.add("second", 1);
  EXPECT_EQ(node.allocate(), (std::vector<std::vector<std::string>>{{"gpu2"}}));
  node.add("third", 1);
  EXPECT_EQ(node.phase("third"), "Failed");
  EXPECT_EQ(node.pod("third").string_at({"status", "reason"}), "UnexpectedAdmissionError");
  EXPECT_EQ(node.message("third"),
            "Pod was rejected: Allocate failed due to requested number of devices unavailable for example.com/gpu. "
            "Requested: 1, Available: 0, which is unexpected");
  node.delete_pod("first", 0);
  node.run(seconds(2));
  node.add("fourth", 2);
  EXPECT_EQ(node.allocate(), (std::vector<std::vector<std::string>>{{"gpu0", "gpu1"}}));
}

TEST(Devices, ThatThePluginRefusesRejectThePod) {
  Started node;
  node.plug_in(1);
  node.add("train", 1);
  for (const DeviceCommand& command : node.take()) {
    node.report(DevicesAllocated{std::get<AllocateDevices>(command).call,
                                 Error{ErrorCode::kServiceUnavailable, "rpc error: code = Unknown desc = burnt", {}}});
  }
  node.run(seconds(1));
  EXPECT_EQ(node.phase("train"), "Failed");
  EXPECT_EQ(node.message("train"),
            "Pod was rejected: Allocate failed due to rpc error: code = Unknown desc = burnt, which is unexpected");
  EXPECT_EQ(node.host.count<StartContainer>(), 0u);
  EXPECT_EQ(node.host.count<RemovePod>(), 1u);
  node.add("again", 1);
  EXPECT_EQ(node.allocate().size(), 1u);  // the device is free
}

TEST(Devices, WithoutHealthyOnesRejectThePod) {
  Started node;
  node.report(PluginRegistered{++node.plugin, std::string(kResource), {}});
  node.report(PluginListed{node.plugin, devices(0, 2)});
  node.run(seconds(1));
  node.add("train", 1);
  EXPECT_EQ(node.message("train"),
            "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
            "example.com/gpu, which is unexpected");
}

TEST(Devices, ArePreferredByThePluginAsFarAsTheyAreFree) {
  Started node;
  node.plug_in(4, {.pre_start_required = false, .preferred_allocation_available = true});
  node.add("first", 1);
  auto asked = node.take();
  ASSERT_EQ(asked.size(), 1u);
  const auto first = std::get<PreferDevices>(asked.front());
  EXPECT_EQ(first.available, (std::vector<std::string>{"gpu0", "gpu1", "gpu2", "gpu3"}));
  EXPECT_EQ(first.size, 1);
  node.add("second", 2);  // while the first is being decided
  asked = node.take();
  const auto second = std::get<PreferDevices>(asked.front());
  EXPECT_EQ(second.available, (std::vector<std::string>{"gpu1", "gpu2", "gpu3"}));
  node.report(DevicesPreferred{first.call, std::vector<std::string>{"gpu3"}});
  node.report(DevicesPreferred{second.call, std::vector<std::string>{"gpu3", "nonsense", "gpu2"}});
  EXPECT_EQ(node.allocate(), (std::vector<std::vector<std::string>>{{"gpu3"}, {"gpu1", "gpu2"}}));
}

TEST(Devices, ArePreparedBeforeEveryStartIfThePluginWantsTo) {
  Started node;
  node.plug_in(1, {.pre_start_required = true, .preferred_allocation_available = false});
  node.add("train", 1);
  const auto allocation = node.take();
  node.report(DevicesAllocated{std::get<AllocateDevices>(allocation.front()).call, DeviceGrant{}});
  for (int run = 0; run < 2; ++run) {
    const auto asked = node.take();
    ASSERT_EQ(asked.size(), 1u);
    const auto prepare = std::get<PrepareDevices>(asked.front());
    EXPECT_EQ(prepare.ids, std::vector<std::string>{"gpu0"});
    EXPECT_FALSE(node.host.is_running("uid-train", "c"));
    node.report(DevicesPrepared{prepare.call, {}});
    node.run(seconds(1));
    EXPECT_TRUE(node.host.is_running("uid-train", "c"));
    node.exit("train", 1);
    node.run(seconds(1));
  }
}

TEST(Devices, ThatCannotBePreparedKeepTheContainerFromStarting) {
  Started node;
  node.plug_in(1, {.pre_start_required = true, .preferred_allocation_available = false});
  node.add("train", 1);
  const auto allocation = node.take();
  node.report(DevicesAllocated{std::get<AllocateDevices>(allocation.front()).call, DeviceGrant{}});
  const auto asked = node.take();
  node.report(DevicesPrepared{std::get<PrepareDevices>(asked.front()).call,
                              Error{ErrorCode::kServiceUnavailable, "rpc error: code = Internal desc = hot", {}}});
  node.run(seconds(1));
  const Json pod = node.pod("train");
  EXPECT_EQ(node.container_waiting_reason(pod), "CreateContainerConfigError");
  EXPECT_EQ(node.host.count<StartContainer>(), 0u);
}

TEST(Devices, OfAPlainInitContainerAreUsedAgain) {
  Started node;
  node.plug_in(2);
  Json document = pod_with("train", 2);
  Json init = document.at({"spec", "containers"})->if_array()->front();
  init["name"] = "prepare";
  document.make({"spec", "initContainers"}) = Json::array({init});
  node.put(document);
  node.run(seconds(1));
  EXPECT_EQ(node.allocate(), (std::vector<std::vector<std::string>>{{"gpu0", "gpu1"}, {"gpu0", "gpu1"}}));
}

TEST(Devices, SurviveARestartOfTheAgent) {
  Started node;
  node.plug_in(4);
  node.add("first", 1);
  node.allocate();
  node.add("train", 2);
  node.allocate();
  node.reboot();
  node.run(seconds(2));
  EXPECT_EQ(node.offered("capacity"), "0");  // until the plugin is back
  EXPECT_NE(node.phase("train"), "Failed");
  EXPECT_EQ(node.host.count<StartContainer>(), 0u);
  node.plug_in(4);
  node.run(minutes(1));
  EXPECT_TRUE(node.allocate().empty());  // no second request
  EXPECT_EQ(node.phase("train"), "Running");
  EXPECT_EQ(node.variable("GPUS"), "gpu1,gpu2");
  node.add("more", 2);
  EXPECT_EQ(node.phase("more"), "Failed");  // one device is free
}

TEST(Devices, WhosePluginStaysAwayAfterARestartRejectThePod) {
  Started node;
  node.plug_in(1);
  node.add("train", 1);
  node.allocate();
  node.reboot();
  node.run(kPluginGrace + seconds(30));
  EXPECT_EQ(node.phase("train"), "Failed");
  EXPECT_EQ(node.message("train"),
            "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
            "example.com/gpu, which is unexpected");
}

TEST(Devices, ThatAreUnhealthyAfterARestartRejectThePod) {
  Started node;
  node.plug_in(2);
  node.add("train", 2);
  node.allocate();
  node.reboot();
  node.run(seconds(2));
  node.plug_in(1);
  EXPECT_EQ(node.message("train"),
            "Pod was rejected: Allocate failed due to previously allocated devices are no longer healthy; cannot "
            "allocate unhealthy devices example.com/gpu, which is unexpected");
}

TEST(Devices, OfAPodThatIsGoneAreFreeAfterARestart) {
  Started node;
  node.plug_in(1);
  node.add("train", 1);
  node.allocate();
  node.remove("/api/v1/namespaces/shop/pods/train");
  node.reboot();
  node.run(seconds(2));
  node.plug_in(1);
  node.add("next", 1);
  EXPECT_EQ(node.allocate().size(), 1u);
}

TEST(DeviceCheckpoint, IsReadAsItWasWrittenAndRefusedWhenDamaged) {
  Holding holding{.ids = {"gpu0", "gpu1"}};
  holding.grant.env["A"] = "b";
  holding.grant.mounts.push_back({"/lib/x", "/lib/x", true});
  holding.grant.nodes.push_back({"/dev/null", "/dev/null", "rw"});
  holding.grant.annotations["note"] = "7";
  holding.grant.cdi_devices.push_back("example.com/gpu=0");
  DeviceCheckpoint checkpoint;
  checkpoint.holdings["uid"]["c"]["example.com/gpu"] = holding;
  checkpoint.holdings["uid"]["d"]["example.com/gpu"] = {.ids = {"gpu2"}, .state = Holding::State::kAllocating};
  checkpoint.resources = {"example.com/gpu"};
  const std::string text = to_text(checkpoint);
  auto read = parse_device_checkpoint(text);
  ASSERT_TRUE(read);
  checkpoint.holdings["uid"].erase("d");  // not allocated yet: not kept
  checkpoint.holdings["uid"]["c"]["example.com/gpu"].state = Holding::State::kAwaiting;
  EXPECT_EQ(*read, checkpoint);
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = damaged[i] == 'x' ? 'y' : 'x';
    EXPECT_FALSE(parse_device_checkpoint(damaged)) << i;
    EXPECT_FALSE(parse_device_checkpoint(text.substr(0, i))) << i;
  }
}

TEST(DeviceRegistration, SaysWhatIsWrong) {
  EXPECT_TRUE(check_registration("v1beta1", "example.com/gpu", "gpu.sock"));
  EXPECT_EQ(check_registration("v1alpha1", "example.com/gpu", "gpu.sock").error().message,
            "requested API version \"v1alpha1\" is not supported by kubelet. Supported version is \"v1beta1\"");
  EXPECT_EQ(check_registration("v1beta1", "cpu", "gpu.sock").error().message, "the ResourceName \"cpu\" is invalid");
  EXPECT_FALSE(check_registration("v1beta1", "example.com/gpu", "../gpu.sock"));
  EXPECT_FALSE(check_registration("v1beta1", "example.com/gpu", ""));
}

}  // namespace
}  // namespace spillway::agent
