// Commands to a machine whose containers are made from images, and its events, beside those of ports.h. A machine
// without images (MachineInfo::runs_images) gets none of these commands, and sends none of these events.
// Thread: any (values). Source: spec "Pod lifecycle", 4, 5.10-5.13, 8, 12.1, 13.
#pragma once

#include "api/object/pod.h"
#include "base/time.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// Starts the sandbox of a created pod, once its volumes exist. Answered by SandboxRan.
struct RunSandbox {
  std::string uid;
  std::string handler = {};  // handler of its RuntimeClass; empty: the runtime's default
};

/// A Secret's credentials for registries, decoded.
struct PullSecret {
  std::string type;  // "kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"
  std::string data;

  friend bool operator==(const PullSecret&, const PullSecret&) = default;
};

/// The addresses of a pod; none: it is in the machine's network. `problem`: why there is no sandbox.
struct SandboxRan {
  std::string uid;
  std::vector<std::string> ips;
  std::string problem;
};

/// A reported sandbox of a pod is not ready any more, or is gone. Sent once for each sandbox; a RunSandbox makes the
/// next one. Containers that were in it may run on: their end is reported like that of all others.
struct SandboxLost {
  std::string uid;
};

/// The content of an event about a pod, or about one of its containers.
struct PodNotice {
  enum class Weight { kNormal, kWarning };

  std::string uid;
  std::string container;  // empty: about the pod
  Weight weight = Weight::kNormal;
  std::string reason;
  std::string message;

  friend bool operator==(const PodNotice&, const PodNotice&) = default;
};

/// The content of a warning about the node.
struct NodeNotice {
  std::string reason;
  std::string message;

  friend bool operator==(const NodeNotice&, const NodeNotice&) = default;
};

struct NodeImage {
  std::vector<std::string> repo_digests;
  std::vector<std::string> repo_tags;
  std::int64_t size_bytes = 0;

  friend bool operator==(const NodeImage&, const NodeImage&) = default;
};

/// A handler of the runtime, and what it can do.
struct RuntimeHandler {
  std::string name;  // empty: the default handler, for pods without a RuntimeClass
  bool recursive_read_only_mounts = false;
  bool user_namespaces = false;

  friend bool operator==(const RuntimeHandler&, const RuntimeHandler&) = default;
};

/// The state of the runtime; sent when it changes.
struct RuntimeReported {
  std::string problem;                             // as in the node's Ready condition; empty: none
  std::string network_problem;                     // for the node's Ready condition; empty: none
  std::vector<NodeImage> images;                   // largest first
  std::string version;                             // "containerd://1.6.20"; empty: as in MachineInfo
  std::vector<RuntimeHandler> handlers;            // as the runtime lists them; older ones list none
  std::optional<bool> supplemental_groups_policy;  // support of the policy; nullopt: the runtime does not report it

  friend bool operator==(const RuntimeReported&, const RuntimeReported&) = default;
};

/// A container that an earlier process of this node started, and that still exists on the machine.
struct FoundContainer {
  std::string name;
  std::int32_t attempt = 0;
  std::string container_id;  // "containerd://…"; empty: made from the names
  std::string image;
  std::string image_id;
  std::string hash;  // container_hash() of the definition it was made by; empty: derived from the image
  WallTime started_at;
  std::optional<api::ContainerState::Terminated> ended;  // nullopt: it runs
};

/// A pod of which something is left on the machine, be it no more than its cgroup or directory.
struct FoundPod {
  std::string uid;
  bool has_sandbox = false;  // a ready sandbox exists
  std::vector<std::string> ips;
  std::vector<FoundContainer> containers;  // the newest first among containers of one name
  /// The attempt after the last one that has left a log, by container. Missing: none has.
  std::map<std::string, std::int32_t> after_logs = {};
  std::string handler = {};  // the sandbox's
};

/// The pods that earlier processes of this node left. Sent once, before any other event about a pod, by a machine that
/// keeps pods (MachineInfo::keeps_pods); until then no pod begins.
struct PodsFound {
  std::vector<FoundPod> pods;
};

}  // namespace spillway::agent
