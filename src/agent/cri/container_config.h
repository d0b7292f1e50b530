// A container as the runtime is to create it.
// Thread: any (pure). The result is a ContainerConfig: a document with the field names of the CRI, zero values left
// out. Source: spec "Pod lifecycle", 6.4-6.6, 13.2; vectors pod-lifecycle/container_config.
#pragma once

#include "agent/containers/container_env.h"
#include "agent/contract/ports.h"
#include "agent/cri/linux_resources.h"
#include "agent/cri/security_context.h"
#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/error.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spillway::agent {

struct HostMount {
  std::string container_path;
  std::string host_path;
  bool read_only = false;
  bool recursively = false;
  Propagation propagation = Propagation::kNone;
};

struct HostDevice {
  std::string host_path;
  std::string container_path;
  std::string permissions;
};

struct ContainerWish {
  std::int32_t restart_count = 0;
  std::string image_ref;  // image as the runtime resolved it
  Environment environment;
  std::vector<HostMount> mounts;
  std::string termination_log;  // a file of the machine; mounted if the container has a path for it
  std::vector<HostDevice> devices;
  std::vector<std::string> cdi_devices;
  api::StringMap annotations;    // annotations that device plugins request
  std::string target_container;  // name of the container whose processes an ephemeral container sees; empty: none
  ResourceFacts resources;
  SecurityWish security;
};

/// kInvalid, in upstream's words. Errors of words_of() as well.
Result<api::Json> container_config(const api::Pod& pod, const api::Container& container, const ContainerWish& wish);

}  // namespace spillway::agent
