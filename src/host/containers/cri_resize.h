// One resize of a pod whose containers are a container runtime's: the runtime changes the limits of containers and is
// informed of those of the sandbox; the pod's cgroup is written here. Its steps are made one after the other.
// Thread: loop. Invariants: `done` is called once, unless the calls are dropped with their runtime. Source: Kubernetes
// docs, "Container Runtime Interface (CRI)"; KEP-1287.
#pragma once

#include "agent/contract/ports.h"
#include "agent/cri/linux_resources.h"
#include "api/json/json.h"
#include "base/error.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/cri/cri_calls.h"
#include "policy/containers/pod_resize.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

/// A pod that is resized, as it is at the moment.
struct ResizedPod {
  struct Container {
    std::string id;
    const CgroupDir* cgroup = nullptr;  // null: unknown
  };

  std::string sandbox;                          // id of the sandbox; empty: there is none
  const CgroupDir* cgroup = nullptr;            // the pod's cgroup; null: there is none
  std::map<std::string, Container> containers;  // running containers, by name
  std::shared_ptr<const api::Pod> before;       // with the resources in force; null: unknown
};

/// Calls by which a resize uses its runtime.
struct ResizeMeans {
  std::function<void(std::string_view method, api::Json request, RuntimeCalls::Answer answer)> call;
  std::function<std::optional<ResizedPod>()> resized_pod;  // reads the pod's present state; nullopt: the pod is gone
  std::function<void(const CgroupLimits& limits)> keep;    // passes the pod's limits on to systemd; may be empty
  agent::ResourceFacts facts;
  std::function<void(const agent::ResizePod& command, Outcome outcome)> done;
};

/// The request that changes one resource of a container, in the runtime's form.
api::Json container_update(const containers::ResizeStep& step, const api::Pod& pod, const agent::ResourceFacts& facts);

class CriResize : public std::enable_shared_from_this<CriResize> {
 public:
  /// Call begin() once the object is held by a shared_ptr; it then lives until the resize is over.
  CriResize(agent::ResizePod command, ResizeMeans means) : command_(std::move(command)), means_(std::move(means)) {}

  void begin();

 private:
  void next();
  void ask_sandbox(const ResizedPod& pod);
  void ask_container(const std::string& id);
  void on_sandbox_answer(const Result<api::Json>& answer);
  void on_container_answer(const Result<api::Json>& answer);
  void end(Outcome outcome);

  const containers::ResizeStep& step() const { return steps_[at_]; }

  agent::ResizePod command_;
  ResizeMeans means_;
  std::vector<containers::ResizeStep> steps_;
  std::size_t at_ = 0;
};

}  // namespace spillway::host
