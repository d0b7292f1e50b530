// The storage of pods that another kubelet runs: the readings of their container runtime and of the disks, and the
// statistics made from them. A container's writable layer and the images are counted by the runtime, the file systems
// they are on, logs and volumes are measured here. A value that was not measured is absent, never zero.
// Thread: any (pure). Source: spec "Node agent", 10.2, 10.6 to 10.9; spec "Eviction manager", 3.4; CRI v1.
#pragma once

#include "api/object/pod.h"
#include "api/object/summary.h"
#include "base/time.h"
#include "policy/eviction/containerfs.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

struct RuntimeSandbox {
  std::string id;
  std::string uid;  // the pod's UID, as its kubelet has it
  bool ready = false;
  WallTime created;

  friend bool operator==(const RuntimeSandbox&, const RuntimeSandbox&) = default;
};

struct RuntimeContainer {
  std::string id;
  std::string sandbox;  // id of the sandbox
  std::string name;
  bool running = false;
  WallTime created;

  friend bool operator==(const RuntimeContainer&, const RuntimeContainer&) = default;
};

/// Usage of a file system by images, or by one container's writable layer.
struct LayerUsage {
  std::string mountpoint;  // leads to the file system
  WallTime at;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> inodes_used;

  friend bool operator==(const LayerUsage&, const LayerUsage&) = default;
};

/// Answers of a container runtime to one round of requests.
struct RuntimeReport {
  std::string runtime;  // "containerd 1.6.20"
  std::vector<RuntimeSandbox> sandboxes;
  std::vector<RuntimeContainer> containers;           // in any state
  std::map<std::string, LayerUsage> writable_layers;  // by container id; containers without a measurement are missing
  std::optional<LayerUsage> images;
  std::optional<LayerUsage> containers_apart;  // absent if containers are stored where the images are

  friend bool operator==(const RuntimeReport&, const RuntimeReport&) = default;
};

struct FileSystem {
  api::FsStats sizes;
  std::uint64_t device = 0;

  friend bool operator==(const FileSystem&, const FileSystem&) = default;
};

/// Files of a pod outside its containers: used bytes and inodes alone.
struct PodFiles {
  std::map<std::string, api::FsStats> logs;  // by container
  std::optional<api::FsStats> pod_logs;
  std::optional<api::FsStats> etc_hosts;

  friend bool operator==(const PodFiles&, const PodFiles&) = default;
};

/// The disk usage of node and pods, computed from one RuntimeReport.
struct StorageReading {
  RuntimeReport runtime;
  std::optional<std::uint64_t> node_device;        // device of the kubelet's directory
  std::map<std::string, FileSystem> file_systems;  // by mount point
  std::map<std::string, PodFiles> files;           // by the uid the kubelet has
  std::string problem;                             // the measurements that failed, and why; empty: none
  Now begun;
};

/// A volume of which the pod's node has the files.
struct DiskVolume {
  std::string name;
  std::string plugin;  // the kubelet's folder for volumes of its kind: "kubernetes.io~empty-dir"

  friend bool operator==(const DiskVolume&, const DiskVolume&) = default;
};

/// emptyDir but for those in memory, configMap and gitRepo, in the order of the spec.
std::vector<DiskVolume> disk_volumes(const api::Pod& pod);

/// Containers that run, by name: of a pod with several sandboxes those of the ready ones, or else of the newest.
std::map<std::string, const RuntimeContainer*> running_containers(const RuntimeReport& report, std::string_view uid);

/// True if the runtime still holds data that containers of this pod have written.
bool holds_containers(const RuntimeReport& report, std::string_view uid);

/// Finds a container by its id. Null: the runtime has no such container; ids of sandboxes are not found.
const RuntimeContainer* find_container(const RuntimeReport& report, std::string_view id);

/// nullopt: unknown, because a file system could not be read.
std::optional<eviction::StorageLayout> storage_layout(const StorageReading& reading);

/// Fills in the image store and the containers' file system; null: unknown.
void describe_node(api::NodeStats& node, const StorageReading* reading);

/// Writable layers, logs and their sum for one pod, with the sizes of the node's file system where they are on it.
/// `uid`: as the kubelet has it. Its volumes, if any, are in `pod` already.
void describe_pod(api::PodStats& pod, std::string_view uid, const std::optional<api::FsStats>& node_fs,
                  const StorageReading& reading);

/// Removes disk usage from a summary by which pods are to be ranked: without the runtime's answer no pod can be ranked
/// by its disk usage, and no shortage of a disk is seen.
void remove_disk_usage(api::Summary& summary);

}  // namespace spillway::agent
