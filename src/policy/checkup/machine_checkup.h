// Problems of a machine, or of its connection to the cluster, that keep Spillway from working, or from working well;
// each with its remedy. Thread: any (pure). Source: spec "Wake-up sources", 1 (PSI, versions of cgroups); Kubernetes
// docs, "Swap memory management".
#pragma once

#include "base/bytes.h"
#include "base/time.h"
#include "policy/checkup/runtime_choice.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::checkup {

/// A port that a part listens on by default.
struct Port {
  std::uint16_t number = 0;
  std::string what;     // "the API server"
  std::string problem;  // why the port cannot be used; empty: it is free
};

struct Certificate {
  std::string file;
  std::optional<WallTime> end;  // nullopt: the certificate cannot be read
};

/// A hard threshold of a node on this machine for the free space of a disk.
struct DiskThreshold {
  std::string text;  // "imagefs.available<15%"
  Bytes amount;
};

/// The file system that a node here keeps its pods on.
struct Disk {
  std::string path;
  Bytes available;
  Bytes capacity;
  std::vector<DiskThreshold> thresholds;
};

/// The API server that a kubeconfig names.
struct Cluster {
  std::string server;   // "192.0.2.7:6443", or the kubeconfig if it names none
  std::string problem;  // why the server does not answer; empty: it does
  std::string version;  // "v1.36.0"
  bool lists_nodes = false;
};

/// A finding of the lint about the configuration of the node.
struct ConfigProblem {
  std::string place;  // "kubelet.yaml:3"
  std::string what;
  bool dangerous = false;
};

/// The container runtime that the configuration of the node names.
struct ContainerRuntime {
  std::string socket;
  std::string driver;   // "systemd"; empty: not reported
  std::string problem;  // no answer, or a cgroup driver that is not the configured one, with the remedy
};

/// The parts of `up` that give pods addresses of their own, forward Services to pods, and answer DNS queries. Each
/// string is the reason why a part cannot work here, with the package to install; empty: it can.
struct Network {
  std::string pods;
  std::string services;
  std::string names;
};

struct MachineFacts {
  bool is_root = false;
  std::optional<int> cgroup_version;     // nullopt: no hierarchy with a memory controller
  std::string cgroup_problem;            // why no node can be made, with the remedy; empty: one can
  std::optional<bool> has_psi;           // nullopt: not checked
  std::optional<Bytes> swap;             // nullopt: unknown
  std::optional<bool> clock_is_in_step;  // synchronized with a time server; nullopt: unknown
  std::optional<Disk> disk;              // nullopt: unknown
  std::optional<RuntimeFacts> images;    // the runtime that `up` would use; nullopt: not read
  std::optional<Network> network;        // nullopt: not checked
  std::vector<Port> ports;
  std::vector<Certificate> certificates;
  std::vector<ConfigProblem> config;
  std::optional<ContainerRuntime> runtime;  // nullopt: none is configured
  std::optional<Cluster> cluster;           // nullopt: no kubeconfig, which a machine of its own does not need
};

enum class Level { kFine, kWarning, kProblem };

std::string_view to_string(Level level);

struct Finding {
  Level level = Level::kFine;
  std::string subject;  // "cgroups"
  std::string what;
  std::string fix;  // a command or a setting; empty: nothing has to be done
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// A certificate with less left than this is a warning: its owner renews it a month ahead, so the renewal has failed.
inline constexpr Duration kCertificateLeftMin = std::chrono::hours(24 * 7);

/// A disk with less than this share of its capacity left above a threshold is a warning: one in 20.
inline constexpr std::int64_t kDiskLeftShare = 20;

/// Findings in the order of the members of MachineFacts.
std::vector<Finding> examine(const MachineFacts& facts, WallTime now);

/// The worst level among the findings; kFine if there are none.
Level worst_of(const std::vector<Finding>& findings);

}  // namespace spillway::checkup
