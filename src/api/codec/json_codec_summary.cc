#include "api/codec/codec.h"
#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"

namespace spillway::api {

/// Averages are percents with two decimals.
template <typename V>
void describe(V& v, Is<PsiShares> auto& shares) {
  v.kept("total", shares.total_nanos);
  v.hundredths("avg10", shares.avg10);
  v.hundredths("avg60", shares.avg60);
  v.hundredths("avg300", shares.avg300);
}

template <typename V>
void describe(V& v, Is<PsiStats> auto& psi) {
  v.object("full", psi.full);
  v.object("some", psi.some);
}

template <typename V>
void describe(V& v, Is<IoStats> auto& io) {
  v.field("time", io.time);
  v.object("psi", io.psi);
}

template <typename V>
void describe(V& v, Is<SwapStats> auto& swap) {
  v.field("time", swap.time);
  v.field("swapAvailableBytes", swap.available_bytes);
  v.field("swapUsageBytes", swap.usage_bytes);
}

template <typename V>
void describe(V& v, Is<InterfaceStats> auto& interface) {
  v.kept("name", interface.name);
  v.field("rxBytes", interface.rx_bytes);
  v.field("rxErrors", interface.rx_errors);
  v.field("txBytes", interface.tx_bytes);
  v.field("txErrors", interface.tx_errors);
}

template <typename V>
void describe(V& v, Is<NetworkStats> auto& network) {
  v.field("time", network.time);
  describe(v, network.primary);
  v.list("interfaces", network.interfaces, "name", &InterfaceStats::name);
}

template <typename V>
void describe(V& v, Is<CpuStats> auto& cpu) {
  v.field("time", cpu.time);
  v.field("usageNanoCores", cpu.usage_nano_cores);
  v.field("usageCoreNanoSeconds", cpu.usage_core_nano_seconds);
  v.object("psi", cpu.psi);
}

template <typename V>
void describe(V& v, Is<MemoryStats> auto& memory) {
  v.field("time", memory.time);
  v.field("availableBytes", memory.available_bytes);
  v.field("usageBytes", memory.usage_bytes);
  v.field("workingSetBytes", memory.working_set_bytes);
  v.field("rssBytes", memory.rss_bytes);
  v.field("pageFaults", memory.page_faults);
  v.field("majorPageFaults", memory.major_page_faults);
  v.object("psi", memory.psi);
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
  v.field("startTime", container.start_time);
  v.object("cpu", container.cpu);
  v.object("memory", container.memory);
  v.object("io", container.io);
  v.object("rootfs", container.rootfs);
  v.object("logs", container.logs);
  v.object("swap", container.swap);
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
  v.field("startTime", pod.start_time);
  v.list("containers", pod.containers, "name", &ContainerStats::name);
  v.object("cpu", pod.cpu);
  v.object("memory", pod.memory);
  v.object("io", pod.io);
  v.object("network", pod.network);
  v.list("volume", pod.volumes, "name", &VolumeStats::name);
  v.object("ephemeral-storage", pod.ephemeral_storage);
  v.nested("process_stats", [&](V& process) { process.field("process_count", pod.process_count); });
  v.object("swap", pod.swap);
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
  v.field("startTime", node.start_time);
  v.object("cpu", node.cpu);
  v.object("memory", node.memory);
  v.object("io", node.io);
  v.object("network", node.network);
  v.object("fs", node.fs);
  v.nested("runtime", [&](V& runtime) {
    runtime.object("imageFs", node.image_fs);
    runtime.object("containerFs", node.container_fs);
  });
  v.object("rlimit", node.rlimit);
  v.object("swap", node.swap);
}

template <typename V>
void describe(V& v, Is<Summary> auto& summary) {
  v.object("node", summary.node);
  v.list("pods", summary.pods);
}

template struct Codec<Summary>;

}  // namespace spillway::api
