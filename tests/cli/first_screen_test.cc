// Goal: the screen that `spillway up` prints on a terminal shows a newcomer what runs and what to type.
#include "cli/text/first_screen.h"

#include <gtest/gtest.h>

namespace spillway::cli {
namespace {

FirstScreen one_node() {
  return {.nodes = {"vm"},
          .memory = gibibytes(24),
          .kubernetes = "v1.36.0",
          .container_runtime = {},
          .program = "spillway",
          .kubeconfig = "/var/lib/spillway/kubeconfig"};
}

TEST(FirstScreen, OneNodeWhosePodsAreProcesses) {
  EXPECT_EQ(first_screen(one_node(), Paint::kNone),
            "Ready: 1 node (vm, 24Gi of memory), Kubernetes 1.36, processes as pods (no images).\n"
            "\n"
            "  Use        export KUBECONFIG=/var/lib/spillway/kubeconfig\n"
            "             kubectl get pods -A\n"
            "  Dashboard  spillway dashboard --kubeconfig /var/lib/spillway/kubeconfig\n"
            "  Stop       Ctrl-C (ends the pods)\n"
            "  Log        start with --log-level info to see it here\n");
}

TEST(FirstScreen, SaysWhatImagesNeedAndWhichRuntimeIsLeftAlone) {
  FirstScreen screen = one_node();
  screen.advice = "apt install runc, then start again: pods run images";
  screen.other_runtime = "/run/crio/crio.sock";
  const std::string text = first_screen(screen, Paint::kNone);
  EXPECT_NE(text.find("\n  Images     apt install runc, then start again: pods run images\n"
                      "             /run/crio/crio.sock runs as well and is left alone (--runtime SOCKET uses it)\n"),
            std::string::npos)
      << text;
}

TEST(FirstScreen, SeveralNodesWithAContainerRuntimeWhosePodsRunOn) {
  FirstScreen screen = one_node();
  screen.nodes = {"n-1", "n-2", "n-3", "n-4"};
  screen.memory = mebibytes(256);
  screen.container_runtime = "containerd://1.7.22";
  screen.pods_run_on = true;
  const std::string text = first_screen(screen, Paint::kNone);
  EXPECT_TRUE(
      text.starts_with("Ready: 4 nodes (n-1 n-2 n-3 ..., 256Mi of memory each), Kubernetes 1.36, pods in "
                       "containerd://1.7.22.\n"))
      << text;
  EXPECT_NE(text.find("Ctrl-C (the pods keep running, and the next start takes them over)\n"), std::string::npos)
      << text;
}

TEST(FirstScreen, ThroughSudoBothLinesAreForTheUserWhoTypedIt) {
  FirstScreen screen = one_node();
  screen.by_sudo = true;
  screen.program = "build/release/src/apps/spillway";
  const std::string text = first_screen(screen, Paint::kNone);
  EXPECT_NE(text.find("  Use        sudo KUBECONFIG=/var/lib/spillway/kubeconfig kubectl get pods -A\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  sudo build/release/src/apps/spillway dashboard --kubeconfig /var/lib/spillway/kubeconfig\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("export"), std::string::npos) << "sudo drops it";
}

TEST(FirstScreen, AServerWithoutNodes) {
  FirstScreen screen = one_node();
  screen.nodes.clear();
  EXPECT_TRUE(first_screen(screen, Paint::kNone).starts_with("Ready: API server without nodes, Kubernetes 1.36.\n"));
}

TEST(FirstScreen, PathsCanBePasted) {
  FirstScreen screen = one_node();
  screen.kubeconfig = "/tmp/a b/it's";
  EXPECT_NE(first_screen(screen, Paint::kNone).find(R"(KUBECONFIG='/tmp/a b/it'\''s')"), std::string::npos);
}

TEST(FirstScreen, ColoursAreOnlyForTerminals) {
  EXPECT_EQ(first_screen(one_node(), Paint::kNone).find('\x1b'), std::string::npos);
  EXPECT_TRUE(first_screen(one_node(), Paint::kTerminal).starts_with("\x1b[1;32mReady\x1b[0m: 1 node"));
}

TEST(FirstScreen, WhatANodeWaitsFor) {
  EXPECT_EQ(waiting_line("vm", std::nullopt), "Waiting for node vm: it has not registered yet\n");
  EXPECT_EQ(waiting_line("vm", ""), "Waiting for node vm: it is not ready yet\n");
  EXPECT_EQ(waiting_line("vm", "container runtime is down\n\x1b[2J"),
            "Waiting for node vm: container runtime is down ?[2J\n");
}

TEST(FirstScreen, WhatBecomesOfThePods) {
  EXPECT_EQ(stopping_line(0, false), "Stopping.\n");
  EXPECT_EQ(stopping_line(1, false), "Stopping: ending 1 pod. Ctrl-C again does not wait for them.\n");
  EXPECT_EQ(stopping_line(3, false), "Stopping: ending 3 pods. Ctrl-C again does not wait for them.\n");
  EXPECT_EQ(stopping_line(1, true), "Stopping: 1 pod runs on, and the next start takes it over.\n");
  EXPECT_EQ(stopping_line(3, true), "Stopping: 3 pods run on, and the next start takes them over.\n");
}

}  // namespace
}  // namespace spillway::cli
