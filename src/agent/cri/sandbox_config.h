// A pod as the sandbox that the runtime is to run for it.
// Thread: any (pure). The result is a PodSandboxConfig: a document with the field names of the CRI, zero values left
// out. Source: spec "Pod lifecycle", 6.1-6.3, 13.2; vectors pod-lifecycle/sandbox_config.
#pragma once

#include "agent/containers/dns_config.h"
#include "agent/cri/linux_resources.h"
#include "agent/cri/namespace_options.h"
#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

inline constexpr std::string_view kPodNameLabel = "io.kubernetes.pod.name";
inline constexpr std::string_view kPodNamespaceLabel = "io.kubernetes.pod.namespace";
inline constexpr std::string_view kPodUidLabel = "io.kubernetes.pod.uid";
inline constexpr std::string_view kContainerNameLabel = "io.kubernetes.container.name";

struct SandboxWish {
  std::int32_t attempt = 0;
  std::string cgroup_parent;  // "/kubepods/burstable/poduid", "kubepods-burstable-poduid.slice"
  std::string log_directory;  // the pod's directory
  DnsFacts dns;
  ResourceFacts resources;
  std::vector<std::int64_t> extra_groups;
  NamespaceWish namespaces;
  std::string unknown_class;  // the pod's RuntimeClass, if there is none of that name
};

struct SandboxConfig {
  api::Json config;
  std::vector<DnsWarning> warnings;
};

/// kInvalid, in upstream's words.
Result<SandboxConfig> sandbox_config(const api::Pod& pod, const SandboxWish& wish);

}  // namespace spillway::agent
