// The text that `spillway up` prints on a terminal: when its nodes are ready, while it waits for one, and at its end.
// Thread: any (pure).
#pragma once

#include "base/bytes.h"
#include "cli/text/explanation.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::cli {

struct FirstScreen {
  std::vector<std::string> nodes;
  Bytes memory;                   // of each node
  std::string kubernetes;         // version, "v1.32.0"
  std::string container_runtime;  // "containerd://1.7.22"; empty: pods are processes
  std::string program;            // as it was started: "spillway", "build/release/src/apps/spillway"
  std::string kubeconfig;         // absolute path
  bool by_sudo = false;           // the user who started it cannot read the kubeconfig
  bool pods_run_on = false;       // when it stops
  std::string no_services;        // why addresses of Services lead nowhere, and what to do; empty: they do lead to pods
};

/// What runs, how to use it, how to stop it. Ends in a newline.
std::string first_screen(const FirstScreen& screen, Paint paint);

/// "Waiting for node vm: container runtime is down." One line. `node_message`: of the node's Ready condition; nullopt:
/// there is no such node yet.
std::string waiting_line(std::string_view node, const std::optional<std::string>& node_message);

/// What becomes of the pods, at Ctrl-C. One line.
std::string stopping_line(std::size_t pods, bool pods_run_on);

}  // namespace spillway::cli
