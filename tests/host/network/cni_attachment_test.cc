// Attachments by plug-ins that are shell scripts and write down how they were called.
#include "host/network/cni_attachment.h"

#include "base/file.h"
#include "host/network/plugin_call.h"
#include "host/network/pod_networks.h"
#include "support/patience.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace spillway::host {
namespace {

using api::Json;
using ::testing::HasSubstr;
using ::testing::Not;

class Attachment : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    tools.directories = {(folder / "none").string(), folder.string()};
    tools.plugin_time_max = support::kPatience;
    attachment.id = "uid-1";
    attachment.netns = "/run/none";
    attachment.arguments = cni_arguments({"shop", "cart"}, "uid-1", "uid-1");
    attachment.configuration = R"({"cniVersion":"1.0.0","name":"net","plugins":[{"type":"first"},{"type":"second"}]})";
  }

  void TearDown() override { std::filesystem::remove_all(folder); }

  /// `act`: further shell commands of the plug-in, which also records its name, command and input.
  void add_plugin(const std::string& name, const std::string& act) {
    const std::filesystem::path file = folder / name;
    std::ofstream(file) << "#!/bin/sh\necho \"" << name << " $CNI_COMMAND $(cat) $CNI_NETNS\" >> " << calls().string()
                        << "\n"
                        << act << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  std::filesystem::path calls() const { return folder / "calls"; }

  std::string called() const { return read_file(calls().string()).value_or(""); }

  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("cni_" + std::to_string(::getpid()));
  CniTools tools;
  CniAttachment attachment;
};

TEST_F(Attachment, IsMadeInOrderAndEndedInReverse) {
  add_plugin("first", R"([ $CNI_COMMAND != ADD ] || echo '{"ips":[{"address":"10.0.0.7/24"}],"by":"first"}')");
  add_plugin("second", R"([ $CNI_COMMAND != ADD ] || echo '{"ips":[{"address":"10.0.0.7/24"}],"by":"second"}')");
  const Outcome added = cni_add(attachment, tools);
  ASSERT_TRUE(added) << added.error().text();
  EXPECT_EQ(attachment.result.string_at({"by"}), "second");
  const std::string adds = called();
  EXPECT_LT(adds.find("first ADD"), adds.find("second ADD"));
  EXPECT_THAT(adds.substr(adds.find("second ADD")), HasSubstr(R"("prevResult":{"by":"first")"));
  EXPECT_THAT(adds, HasSubstr("/run/none"));
  const auto kept = CniAttachment::parse(attachment.text());
  ASSERT_TRUE(kept) << kept.error().text();
  std::filesystem::remove(calls());
  ASSERT_TRUE(cni_check(*kept, tools));
  ASSERT_TRUE(cni_remove(*kept, tools));
  const std::string ends = called();
  EXPECT_LT(ends.find("first CHECK"), ends.find("second CHECK"));
  EXPECT_LT(ends.find("second CHECK"), ends.find("second DEL"));
  EXPECT_LT(ends.find("second DEL"), ends.find("first DEL"));
  EXPECT_THAT(ends.substr(ends.find("first DEL")), HasSubstr(R"("prevResult":{"by":"second")"));
  EXPECT_THAT(ends, Not(HasSubstr("/run/none"))) << "there is no namespace any more";
}

TEST_F(Attachment, ThatFailsHalfWayIsEndedWhole) {
  add_plugin("first", R"([ $CNI_COMMAND != ADD ] || echo '{"ips":[]}')");
  add_plugin("second", R"([ $CNI_COMMAND = DEL ] || { echo '{"code":7,"msg":"no rules","details":"here"}'; exit 1; })");
  const Outcome added = cni_add(attachment, tools);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().message, R"(plugin type="second" failed (add): no rules: here)");
  EXPECT_THAT(called(), HasSubstr("second DEL"));
  EXPECT_THAT(called(), HasSubstr("first DEL"));
  EXPECT_TRUE(attachment.result.is_null());
}

TEST_F(Attachment, EachPluginIsAskedToEndWhateverAnotherSays) {
  add_plugin("first", "echo broken >&2; exit 3");
  add_plugin("second", "echo worse >&2; exit 3");
  const Outcome removed = cni_remove(attachment, tools);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().message, R"(plugin type="second" failed (delete): worse)");
  EXPECT_THAT(called(), HasSubstr("first DEL"));
}

TEST_F(Attachment, APluginThatIsMissingIsNamed) {
  EXPECT_THAT(cni_add(attachment, tools).error().message, HasSubstr("failed to find plugin \"first\" in path ["));
}

/// The plug-in is killed with its children.
TEST_F(Attachment, APluginThatTakesTooLongIsKilled) {
  add_plugin("first", "sleep 1000 & wait");
  tools.plugin_time_max = milliseconds(300);
  EXPECT_THAT(cni_add(attachment, tools).error().message, HasSubstr("failed (add): no answer within 300ms"));
}

TEST_F(Attachment, ALongAnswerIsReadWholeAndAnEndlessOneIsNot) {
  add_plugin("long", "head -c 500000 /dev/zero | tr '\\0' x");
  const auto whole = call_plugin({.program = (folder / "long").string(), .environment = {}, .input = "{}"});
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(whole->output.size(), 500'000U);
  add_plugin("endless", "cat /dev/zero");
  const auto endless = call_plugin({.program = (folder / "endless").string(), .environment = {}, .input = "{}"});
  ASSERT_FALSE(endless);
  EXPECT_THAT(endless.error().message, HasSubstr("exceeded"));
}

TEST_F(Attachment, APluginThatReadsNothingIsStillAnswered) {
  std::ofstream(folder / "deaf") << "#!/bin/sh\nexec 0<&-\necho ok\n";
  std::filesystem::permissions(folder / "deaf", std::filesystem::perms::owner_all);
  const auto answer =
      call_plugin({.program = (folder / "deaf").string(), .environment = {}, .input = std::string(1 << 20, ' ')});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->output, "ok\n");
}

TEST(PodCapabilities, AreHostPortsAndBandwidth) {
  api::Pod pod;
  EXPECT_EQ(api::to_text(capabilities_of(pod)), "{}");
  api::Container container;
  container.ports.push_back({.name = "a", .container_port = 80, .host_port = 8080, .host_ip = "", .protocol = "UDP"});
  container.ports.push_back({.name = "b", .container_port = 81, .host_port = 0, .host_ip = "", .protocol = "TCP"});
  pod.spec.containers.push_back(container);
  pod.metadata.annotations["kubernetes.io/ingress-bandwidth"] = "10M";
  pod.metadata.annotations["kubernetes.io/egress-bandwidth"] = "10";
  EXPECT_EQ(api::to_text(capabilities_of(pod)),
            R"({"bandwidth":{"ingressBurst":2147483647,"ingressRate":10000000},)"
            R"("portMappings":[{"containerPort":80,"hostPort":8080,"protocol":"udp"}]})");
}

}  // namespace
}  // namespace spillway::host
