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
  Bytes memory;                   // per node
  std::string kubernetes;         // version, "v1.36.0"
  std::string container_runtime;  // "containerd://1.7.22"; empty: pods are processes
  std::string advice;             // the step that lets pods run images; empty: none
  std::string other_runtime;      // the socket of a runtime that runs and is not used; empty: none
  std::string program;            // command as the user typed it: "spillway", "build/release/src/apps/spillway"
  std::string kubeconfig;         // absolute path
  bool by_sudo = false;           // the user who started the process cannot read the kubeconfig
  bool pods_run_on = false;       // fate of the pods when the process stops
  std::string pod_network;        // the source of pod addresses, one line; empty: not shown
  std::string storage;            // the place of volumes, one line; empty: not shown
  std::string no_services;        // why addresses of Services do not work, and the remedy; empty: they do
};

/// The screen after a start: the running parts, how to use and how to stop them. Ends in a newline.
std::string first_screen(const FirstScreen& screen, Paint paint);

/// "Waiting for node vm: container runtime is down." One line. `node_message`: of the node's Ready condition; nullopt:
/// there is no such node yet.
std::string waiting_line(std::string_view node, const std::optional<std::string>& node_message);

/// One line at Ctrl-C about the fate of the pods.
std::string stopping_line(std::size_t pods, bool pods_run_on);

}  // namespace spillway::cli
