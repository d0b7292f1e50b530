#include "policy/checkup/runtime_choice.h"

#include <gmock/gmock.h>

namespace spillway::checkup {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RuntimeFacts installed() {
  RuntimeFacts facts;
  facts.is_root = true;
  facts.containerd = "/usr/bin/containerd";
  facts.shim = "/usr/bin/containerd-shim-runc-v2";
  facts.low_level = "/usr/sbin/runc";
  facts.plugins_directory = "/usr/lib/cni";
  return facts;
}

TEST(RuntimeChoice, ByItselfItTakesContainerdWhereEverythingIsInstalled) {
  const auto choice = choose_runtime(installed());
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->kind, RuntimeKind::kOwnContainerd);
  EXPECT_EQ(choice->reason, RuntimeReason::kInstalled);
  EXPECT_THAT(advice_of(*choice), IsEmpty());
}

/// One package is missing: pods are processes, and the advice names it.
TEST(RuntimeChoice, ByItselfItTakesProcessesWhereSomethingIsMissing) {
  struct Row {
    void (*remove)(RuntimeFacts&);
    const char* package;
  };

  const Row rows[] = {{[](RuntimeFacts& facts) { facts.containerd.clear(); }, "containerd"},
                      {[](RuntimeFacts& facts) { facts.shim.clear(); }, "containerd"},
                      {[](RuntimeFacts& facts) { facts.low_level.clear(); }, "runc"},
                      {[](RuntimeFacts& facts) { facts.plugins_directory.clear(); }, "containernetworking-plugins"}};
  for (const Row& row : rows) {
    RuntimeFacts facts = installed();
    row.remove(facts);
    const auto choice = choose_runtime(facts);
    ASSERT_TRUE(choice) << row.package;
    EXPECT_EQ(choice->kind, RuntimeKind::kProcess) << row.package;
    EXPECT_EQ(choice->reason, RuntimeReason::kNotInstalled) << row.package;
    EXPECT_THAT(choice->missing, ElementsAre(row.package));
    EXPECT_EQ(advice_of(*choice), std::string("apt install ") + row.package + ", then start again: pods run images");
  }
}

TEST(RuntimeChoice, WithoutRootPodsAreProcesses) {
  RuntimeFacts facts = installed();
  facts.is_root = false;
  const auto choice = choose_runtime(facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->kind, RuntimeKind::kProcess);
  EXPECT_EQ(choice->reason, RuntimeReason::kNotRoot);
  EXPECT_THAT(advice_of(*choice), HasSubstr("root"));
}

/// Another owner's runtime is used on request; otherwise it is named.
TEST(RuntimeChoice, ARuntimeThatRunsAlreadyIsUsedOnlyWhenAskedFor) {
  RuntimeFacts facts = installed();
  facts.running_socket = "/run/containerd/containerd.sock";
  auto choice = choose_runtime(facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->kind, RuntimeKind::kOwnContainerd);
  EXPECT_EQ(choice->running_socket, facts.running_socket);

  facts.containerd.clear();
  choice = choose_runtime(facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->kind, RuntimeKind::kProcess);
  EXPECT_THAT(advice_of(*choice), HasSubstr("--runtime /run/containerd/containerd.sock"));

  facts.wish = RuntimeWish::kSocket;
  facts.wished_socket = facts.running_socket;
  choice = choose_runtime(facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->kind, RuntimeKind::kSocket);
  EXPECT_EQ(choice->socket, "unix:///run/containerd/containerd.sock");
}

TEST(RuntimeChoice, TheConfigurationDecidesUnlessAFlagContradictsIt) {
  RuntimeFacts facts = installed();
  facts.configured = "unix:///run/crio/crio.sock";
  const auto choice = choose_runtime(facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->kind, RuntimeKind::kSocket);
  EXPECT_EQ(choice->reason, RuntimeReason::kConfigured);
  EXPECT_EQ(choice->socket, facts.configured);
  for (const RuntimeWish wish : {RuntimeWish::kContainerd, RuntimeWish::kProcess, RuntimeWish::kSocket}) {
    facts.wish = wish;
    const auto refused = choose_runtime(facts);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().at, "--runtime");
    EXPECT_THAT(refused.error().message, HasSubstr(facts.configured));
  }
}

TEST(RuntimeChoice, AWishThatCannotBeCarriedOutIsRefused) {
  RuntimeFacts facts = installed();
  facts.wish = RuntimeWish::kContainerd;
  facts.low_level.clear();
  auto choice = choose_runtime(facts);
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().text(), HasSubstr("apt install runc"));

  facts = installed();
  facts.wish = RuntimeWish::kContainerd;
  facts.is_root = false;
  choice = choose_runtime(facts);
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().text(), HasSubstr("needs root"));
}

/// Pods of the machine's network start without plug-ins: a wish for containerd is carried out, with advice.
TEST(RuntimeChoice, AWishForContainerdIsCarriedOutWithoutPlugIns) {
  RuntimeFacts facts = installed();
  facts.wish = RuntimeWish::kContainerd;
  facts.plugins_directory.clear();
  const auto choice = choose_runtime(facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->kind, RuntimeKind::kOwnContainerd);
  EXPECT_EQ(advice_of(*choice), "apt install containernetworking-plugins: until then only pods with hostNetwork start");
}

TEST(RuntimeChoice, AWishForProcessesNeedsNothing) {
  RuntimeFacts facts;
  facts.wish = RuntimeWish::kProcess;
  const auto choice = choose_runtime(facts);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->kind, RuntimeKind::kProcess);
  EXPECT_THAT(advice_of(*choice), IsEmpty());
}

}  // namespace
}  // namespace spillway::checkup
