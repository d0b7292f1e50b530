// Kernel parameters that a pod may set: the safe ones of this kernel, and those that the operator has allowed. Thread:
// any (pure). Source: Kubernetes docs, "Using sysctls in a Kubernetes Cluster"; spec "Pod admission", 4; vectors
// admission/sysctl.
#pragma once

#include "api/object/pod.h"
#include "base/error.h"
#include "policy/admission/answer.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::admission {

/// Names that are safe on a kernel of this release ("6.1.0-18-amd64"). A release that cannot be parsed gets the names
/// that are safe on every kernel.
std::vector<std::string> safe_sysctls(std::string_view kernel_release);

/// Dots between the parts: "net/ipv4/conf/eth0.100/rp_filter" is "net.ipv4.conf.eth0/100.rp_filter".
std::string normalize_sysctl(std::string_view name);

/// The namespace that holds a parameter: set in there it does not touch the host.
enum class SysctlNamespace { kNone, kIpc, kNet };

SysctlNamespace sysctl_namespace(std::string_view normalized_name);

/// Namespaces of the host that every pod of the node shares, whatever it requests: the runtime makes no others.
struct HostNamespaces {
  bool ipc = false;
  bool net = false;

  friend bool operator==(const HostNamespaces&, const HostNamespaces&) = default;
};

/// A pod that carries this annotation with this value requests a network namespace of its own, in which there is only
/// the loopback device.
inline constexpr std::string_view kOwnNetworkAnnotation = "spillway.io/network";
inline constexpr std::string_view kOwnNetworkValue = "loopback";

bool asks_for_own_network(const api::Pod& pod);

class SysctlAllowlist {
 public:
  /// Allows nothing.
  SysctlAllowlist() = default;

  /// Names, and prefixes ending in "*". kInvalid, in upstream's words: not a name, or without a known namespace.
  static Result<SysctlAllowlist> parse(std::span<const std::string> patterns);

  /// The first sysctl of the pod that is not allowed, or that is but belongs to a namespace shared with the host,
  /// decides. Values are not checked.
  Answer admit(const api::PodSpec& spec, const HostNamespaces& shared = {}) const;

 private:
  std::map<std::string, SysctlNamespace, std::less<>> names_;
  std::map<std::string, SysctlNamespace, std::less<>> prefixes_;
};

}  // namespace spillway::admission
