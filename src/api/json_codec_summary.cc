#include "api/codec.h"
#include "api/json_codec_instances.h"
#include "api/json_codec_meta.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<CpuStats> auto& cpu) {
  v.field("time", cpu.time);
  v.field("usageNanoCores", cpu.usage_nano_cores);
  v.field("usageCoreNanoSeconds", cpu.usage_core_nano_seconds);
}

template <typename V>
void describe(V& v, Is<MemoryStats> auto& memory) {
  v.field("time", memory.time);
  v.field("availableBytes", memory.available_bytes);
  v.field("usageBytes", memory.usage_bytes);
  v.field("workingSetBytes", memory.working_set_bytes);
  v.field("rssBytes", memory.rss_bytes);
}

template <typename V>
void describe(V& v, Is<FsStats> auto& fs) {
  v.field("time", fs.time);
  v.field("availableBytes", fs.available_bytes);
  v.field("capacityBytes", fs.capacity_bytes);
  v.field("usedBytes", fs.used_bytes);
  v.field("inodesFree", fs.inodes_free);
  v.field("inodes", fs.inodes);
  v.field("inodesUsed", fs.inodes_used);
}

template <typename V>
void describe(V& v, Is<ContainerStats> auto& container) {
  v.kept("name", container.name);
  v.object("cpu", container.cpu);
  v.object("memory", container.memory);
  v.object("rootfs", container.rootfs);
  v.object("logs", container.logs);
}

template <typename V>
void describe(V& v, Is<VolumeStats> auto& volume) {
  v.kept("name", volume.name);
  describe(v, volume.fs);
}

template <typename V>
void describe(V& v, Is<PodStats> auto& pod) {
  v.nested("podRef", [&](V& reference) {
    reference.kept("name", pod.name);
    reference.kept("namespace", pod.ns);
    reference.kept("uid", pod.uid);
  });
  v.list("containers", pod.containers, "name", &ContainerStats::name);
  v.object("cpu", pod.cpu);
  v.object("memory", pod.memory);
  v.list("volume", pod.volumes, "name", &VolumeStats::name);
  v.object("ephemeral-storage", pod.ephemeral_storage);
  v.nested("process_stats", [&](V& process) { process.field("process_count", pod.process_count); });
}

template <typename V>
void describe(V& v, Is<RlimitStats> auto& rlimit) {
  v.field("time", rlimit.time);
  v.field("maxpid", rlimit.max_pid);
  v.field("curproc", rlimit.running_processes);
}

template <typename V>
void describe(V& v, Is<NodeStats> auto& node) {
  v.kept("nodeName", node.node_name);
  v.list("systemContainers", node.system_containers, "name", &ContainerStats::name);
  v.object("cpu", node.cpu);
  v.object("memory", node.memory);
  v.object("fs", node.fs);
  v.nested("runtime", [&](V& runtime) {
    runtime.object("imageFs", node.image_fs);
    runtime.object("containerFs", node.container_fs);
  });
  v.object("rlimit", node.rlimit);
}

template <typename V>
void describe(V& v, Is<Summary> auto& summary) {
  v.object("node", summary.node);
  v.list("pods", summary.pods);
}

template struct Codec<Summary>;

}  // namespace spillway::api
