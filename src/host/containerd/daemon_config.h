// The configuration of the containerd that belongs to one `spillway up`. Thread: any (pure). Source: containerd docs,
// "containerd-config.toml", "CRI Plugin Config Guide".
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace spillway::host {

/// The paths of one containerd, all below one directory that only root can enter.
struct DaemonPlaces {
  std::string base;

  std::string config() const { return base + "/config.toml"; }

  std::string root() const { return base + "/root"; }  // images and layers; kept when it ends

  std::string state() const { return base + "/state"; }

  std::string temporary() const { return base + "/tmp"; }

  std::string socket() const { return base + "/containerd.sock"; }

  std::string log() const { return base + "/containerd.log"; }

  std::string process_file() const { return base + "/process"; }
};

struct DaemonSettings {
  std::string containerd;         // the program
  std::string shim;               // containerd-shim-runc-v2; its directory is in the daemon's PATH
  std::string low_level;          // runc
  std::string cni_configuration;  // a directory
  std::string cni_programs;       // a directory
  std::string sandbox_image;
  std::string snapshotter = "overlayfs";
  bool lowers_oom_scores = true;  // false: this process may not lower OOM scores (CAP_SYS_RESOURCE)

  friend bool operator==(const DaemonSettings&, const DaemonSettings&) = default;
};

/// kInvalid: the socket's path would be longer than the kernel takes.
Outcome check_places(const DaemonPlaces& places);

/// The file's text.
std::string daemon_config(const DaemonPlaces& places, const DaemonSettings& settings);

/// A CNI configuration for a node that has no other: each pod gets an address of the machine's own, which only the
/// machine reaches. `leases`: the directory where addresses in use are recorded. Where the plug-ins are missing, pods
/// with a network of their own do not start, and their events name the plug-in.
std::string fallback_network(std::string_view leases);

}  // namespace spillway::host
