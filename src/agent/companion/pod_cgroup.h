// The cgroup of a pod by its uid, and the names that runtimes give to those of its containers, for both cgroup drivers
// (policy/cgroups/cgroup_name.h): "<ID>" or "cri-containerd-<ID>.scope". Names only: nothing is opened here.
// Thread: any (pure). Source: spec "Node agent", 9.4; Kubernetes docs, "About cgroup v2"; systemd.slice(5).
#pragma once

#include "api/object/pod.h"
#include "policy/cgroups/cgroup_name.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

using cgroups::CgroupDriver;
using cgroups::parse_cgroup_driver;

/// The cgroup of all pods, below the kubelet's cgroupRoot ("" and "/": the root of the hierarchy): "/kubepods",
/// "/kubepods.slice", "/edge.slice/edge-kubepods.slice".
std::string kubepods_cgroup(CgroupDriver driver, std::string_view cgroup_root);

/// The cgroup of a pod. `uid`: of cgroup_uid(). kInvalid: it names no cgroup.
Result<std::string> pod_cgroup(CgroupDriver driver, std::string_view cgroup_root, api::QosClass qos,
                               std::string_view uid);

/// The UID that names the pod's cgroup: for a mirror pod that of its static pod, from the annotation with its hash.
std::string cgroup_uid(const api::Pod& pod);

/// The container that a child of a pod's cgroup belongs to.
struct ContainerCgroup {
  std::string id;
  /// CRI-O's monitor of a container, which must outlive it: "crio-conmon-<ID>.scope".
  bool monitor = false;

  friend bool operator==(const ContainerCgroup&, const ContainerCgroup&) = default;
};

/// "<ID>", "cri-containerd-<ID>.scope", "crio-<ID>", "crio-<ID>.scope", "docker-<ID>.scope". nullopt: no container's.
std::optional<ContainerCgroup> parse_container_cgroup(std::string_view name);

/// The part of a pod's status that names its containers: "containerd://<ID>" → name.
struct NamedContainer {
  std::string id;
  std::string name;

  friend bool operator==(const NamedContainer&, const NamedContainer&) = default;
};

/// Containers and init containers that have an id, in the order of the status.
std::vector<NamedContainer> named_containers(const api::Pod& pod);

}  // namespace spillway::agent
