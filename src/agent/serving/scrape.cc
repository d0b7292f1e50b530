#include "agent/serving/scrape.h"

#include "api/object/pod_requests.h"
#include "telemetry/exposition.h"

#include <algorithm>
#include <optional>

namespace spillway::agent {

namespace {

using telemetry::Exposition;
using Labels = Exposition::Labels;
using Type = Exposition::Type;

constexpr double kNanosPerSecond = 1e9;

double seconds_of(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// A figure of one set of statistics, with the time at which it was measured.
struct Figure {
  double value = 0;
  std::optional<WallTime> at;
};

using SwapFigure = std::optional<Figure> (*)(const std::optional<api::SwapStats>&);
using CpuFigure = std::optional<Figure> (*)(const std::optional<api::CpuStats>&);
using MemoryFigure = std::optional<Figure> (*)(const std::optional<api::MemoryStats>&);

std::optional<Figure> cpu_seconds(const std::optional<api::CpuStats>& cpu) {
  if (!cpu || !cpu->usage_core_nano_seconds) return std::nullopt;
  return Figure{static_cast<double>(*cpu->usage_core_nano_seconds) / kNanosPerSecond, cpu->time};
}

template <auto Member>
std::optional<Figure> memory_bytes(const std::optional<api::MemoryStats>& memory) {
  if (!memory) return std::nullopt;
  const std::optional<std::uint64_t>& bytes = (*memory).*Member;
  return bytes ? std::optional(Figure{static_cast<double>(*bytes), memory->time}) : std::nullopt;
}

std::optional<Figure> swap_bytes(const std::optional<api::SwapStats>& swap) {
  if (!swap || !swap->usage_bytes) return std::nullopt;
  return Figure{static_cast<double>(*swap->usage_bytes), swap->time};
}

/// The figure of a node, a pod or a container.
template <typename Stats>
std::optional<Figure> figure_in(CpuFigure read, const Stats& stats) {
  return read(stats.cpu);
}

template <typename Stats>
std::optional<Figure> figure_in(MemoryFigure read, const Stats& stats) {
  return read(stats.memory);
}

template <typename Stats>
std::optional<Figure> figure_in(SwapFigure read, const Stats& stats) {
  return read(stats.swap);
}

void write(Exposition& out, const Labels& labels, const std::optional<Figure>& figure) {
  if (figure) out.sample(labels, figure->value, figure->at);
}

/// Pods of the API server and of the node's own files, counted apart.
struct PodCount {
  std::int64_t from_server = 0;
  std::int64_t from_files = 0;

  void add(const api::Pod& pod) { ++(api::is_static(pod) ? from_files : from_server); }

  void write(Exposition& out) const {
    out.sample({{"static", ""}}, static_cast<double>(from_server));
    out.sample({{"static", "true"}}, static_cast<double>(from_files));
  }
};

const api::Pod* find_pod(std::span<const api::Pod> pods, const std::string& uid) {
  const auto found =
      std::ranges::find(pods, uid, [](const api::Pod& pod) -> const std::string& { return pod.metadata.uid; });
  return found == pods.end() ? nullptr : &*found;
}

template <typename Named>
const Named* find_named(const std::vector<Named>& list, const std::string& name) {
  const auto found = std::ranges::find(list, name, &Named::name);
  return found == list.end() ? nullptr : &*found;
}

const api::ContainerStatus* find_status(const api::Pod& pod, const std::string& name) {
  const api::ContainerStatus* status = find_named(pod.status.container_statuses, name);
  if (status == nullptr) status = find_named(pod.status.init_container_statuses, name);
  return status != nullptr ? status : find_named(pod.status.ephemeral_container_statuses, name);
}

const api::Container* find_container(const api::Pod& pod, const std::string& name) {
  const api::Container* container = find_named(pod.spec.containers, name);
  if (container == nullptr) container = find_named(pod.spec.init_containers, name);
  return container != nullptr ? container : find_named(pod.spec.ephemeral_containers, name);
}

std::optional<WallTime> start_of(const api::Pod& pod, const std::string& name) {
  const api::ContainerStatus* status = find_status(pod, name);
  return status != nullptr && status->state.running ? status->state.running->started_at : std::nullopt;
}

/// Calls `each` for every container of the summary whose pod is known.
template <typename Each>
void each_container(const api::Summary& summary, std::span<const api::Pod> pods, Each each) {
  for (const api::PodStats& pod : summary.pods) {
    const api::Pod* known = find_pod(pods, pod.uid);
    if (known == nullptr) continue;
    for (const api::ContainerStats& container : pod.containers) each(pod, *known, container);
  }
}

Labels labels_of(const api::PodStats& pod, const api::ContainerStats& container) {
  return {{"container", container.name}, {"namespace", pod.ns}, {"pod", pod.name}};
}

Labels labels_of(const api::PodStats& pod) {
  return {{"namespace", pod.ns}, {"pod", pod.name}};
}

template <typename Read>
void write_containers(Exposition& out, const api::Summary& summary, Read read) {
  for (const api::PodStats& pod : summary.pods) {
    for (const api::ContainerStats& container : pod.containers) {
      write(out, labels_of(pod, container), figure_in(read, container));
    }
  }
}

template <typename Read>
void write_pods(Exposition& out, const api::Summary& summary, Read read) {
  for (const api::PodStats& pod : summary.pods) write(out, labels_of(pod), figure_in(read, pod));
}

constexpr CpuFigure kCpu = cpu_seconds;
constexpr MemoryFigure kWorkingSet = memory_bytes<&api::MemoryStats::working_set_bytes>;
constexpr MemoryFigure kUsage = memory_bytes<&api::MemoryStats::usage_bytes>;
constexpr MemoryFigure kRss = memory_bytes<&api::MemoryStats::rss_bytes>;
constexpr MemoryFigure kFaults = memory_bytes<&api::MemoryStats::page_faults>;
constexpr MemoryFigure kMajorFaults = memory_bytes<&api::MemoryStats::major_page_faults>;
constexpr SwapFigure kSwap = swap_bytes;

constexpr std::string_view kNothing;

/// The labels that cAdvisor gives to every cgroup, and `extra`.
Labels cgroup_labels(std::string_view container, std::string_view id, std::string_view image, const api::PodStats* pod,
                     const Labels& extra) {
  Labels labels{{"container", container},
                {"id", id},
                {"image", image},
                {"name", container},
                {"namespace", pod == nullptr ? kNothing : std::string_view(pod->ns)},
                {"pod", pod == nullptr ? kNothing : std::string_view(pod->name)}};
  labels.insert(labels.end(), extra.begin(), extra.end());
  return labels;
}

/// One figure of cAdvisor over the node, its pods and its containers.
template <typename Read>
void write_everywhere(Exposition& out, const api::Summary& summary, std::span<const api::Pod> pods, Read read,
                      const Labels& extra = {}) {
  const auto without_time = [](std::optional<Figure> figure) {
    if (figure) figure->at.reset();
    return figure;
  };
  write(out, cgroup_labels("", "/", "", nullptr, extra), without_time(figure_in(read, summary.node)));
  for (const api::PodStats& pod : summary.pods) {
    const std::string id = "/kubepods/pod" + pod.uid;
    write(out, cgroup_labels("", id, "", &pod, extra), without_time(figure_in(read, pod)));
    const api::Pod* known = find_pod(pods, pod.uid);
    for (const api::ContainerStats& container : pod.containers) {
      const api::Container* declared = known == nullptr ? nullptr : find_container(*known, container.name);
      const std::string inner = id + "/" + container.name;
      write(out, cgroup_labels(container.name, inner, declared == nullptr ? kNothing : declared->image, &pod, extra),
            without_time(figure_in(read, container)));
    }
  }
}

using FsFigure = std::optional<std::uint64_t> api::FsStats::*;

void write_file_systems(Exposition& out, const api::Summary& summary, std::string_view name, std::string_view help,
                        FsFigure figure) {
  out.family(name, Type::kGauge, help);
  for (const api::PodStats& pod : summary.pods) {
    for (const api::ContainerStats& container : pod.containers) {
      if (!container.rootfs || !((*container.rootfs).*figure)) continue;
      out.sample(labels_of(pod, container), static_cast<double>(*((*container.rootfs).*figure)));
    }
  }
}

using InterfaceFigure = std::optional<std::uint64_t> api::InterfaceStats::*;

void write_networks(Exposition& out, const api::Summary& summary, std::string_view name, std::string_view help,
                    InterfaceFigure figure) {
  out.family(name, Type::kCounter, help);
  const auto write_one = [&](const std::optional<api::NetworkStats>& network, const Labels& labels) {
    if (!network) return;
    for (const api::InterfaceStats& each : network->interfaces) {
      if (!(each.*figure)) continue;
      Labels all = labels;
      all.emplace_back("interface", each.name);
      out.sample(all, static_cast<double>(*(each.*figure)));
    }
  };
  write_one(summary.node.network, {{"id", "/"}, {"namespace", ""}, {"pod", ""}});
  for (const api::PodStats& pod : summary.pods) {
    const std::string id = "/kubepods/pod" + pod.uid;
    write_one(pod.network, {{"id", id}, {"namespace", pod.ns}, {"pod", pod.name}});
  }
}

/// Writes memory, files, network and processes beyond the families of resource_metrics().
void write_details(Exposition& out, const api::Summary& summary, std::span<const api::Pod> pods) {
  out.family("container_memory_swap", Type::kGauge, "Container swap usage in bytes.");
  write_everywhere(out, summary, pods, kSwap);
  out.family("container_memory_failures_total", Type::kCounter, "Cumulative count of memory allocation failures.");
  write_everywhere(out, summary, pods, kFaults, {{"failure_type", "pgfault"}, {"scope", "container"}});
  write_everywhere(out, summary, pods, kMajorFaults, {{"failure_type", "pgmajfault"}, {"scope", "container"}});
  write_file_systems(out, summary, "container_fs_usage_bytes",
                     "Number of bytes that are consumed by the container on this filesystem.",
                     &api::FsStats::used_bytes);
  write_file_systems(out, summary, "container_fs_limit_bytes",
                     "Number of bytes that can be consumed by the container on this filesystem.",
                     &api::FsStats::capacity_bytes);
  write_file_systems(out, summary, "container_fs_inodes_total", "Number of Inodes", &api::FsStats::inodes);
  write_file_systems(out, summary, "container_fs_inodes_free", "Number of available Inodes",
                     &api::FsStats::inodes_free);
  write_networks(out, summary, "container_network_receive_bytes_total", "Cumulative count of bytes received",
                 &api::InterfaceStats::rx_bytes);
  write_networks(out, summary, "container_network_receive_errors_total",
                 "Cumulative count of errors encountered while receiving", &api::InterfaceStats::rx_errors);
  write_networks(out, summary, "container_network_transmit_bytes_total", "Cumulative count of bytes transmitted",
                 &api::InterfaceStats::tx_bytes);
  write_networks(out, summary, "container_network_transmit_errors_total",
                 "Cumulative count of errors encountered while transmitting", &api::InterfaceStats::tx_errors);
  out.family("container_processes", Type::kGauge, "Number of processes running inside the container.");
  for (const api::PodStats& pod : summary.pods) {
    if (pod.process_count) out.sample(labels_of(pod), static_cast<double>(*pod.process_count));
  }
}

}  // namespace

std::string resource_metrics(const api::Summary* summary, std::span<const api::Pod> pods) {
  Exposition out;
  if (summary != nullptr) {
    out.family("container_cpu_usage_seconds_total", Type::kCounter,
               "Cumulative cpu time consumed by the container in core-seconds");
    write_containers(out, *summary, kCpu);
    out.family("container_memory_working_set_bytes", Type::kGauge, "Current working set of the container in bytes");
    write_containers(out, *summary, kWorkingSet);
    out.family("container_start_time_seconds", Type::kGauge, "Start time of the container since unix epoch in seconds");
    each_container(*summary, pods,
                   [&](const api::PodStats& pod, const api::Pod& known, const api::ContainerStats& container) {
                     const std::optional<WallTime> start = start_of(known, container.name);
                     if (start) out.sample(labels_of(pod, container), seconds_of(*start));
                   });
    out.family("container_swap_usage_bytes", Type::kGauge,
               "Current amount of the container swap usage in bytes. Reported only on non-windows systems");
    write_containers(out, *summary, kSwap);
    out.family("node_cpu_usage_seconds_total", Type::kCounter,
               "Cumulative cpu time consumed by the node in core-seconds");
    write(out, {}, kCpu(summary->node.cpu));
    out.family("node_memory_working_set_bytes", Type::kGauge, "Current working set of the node in bytes");
    write(out, {}, kWorkingSet(summary->node.memory));
    out.family("node_swap_usage_bytes", Type::kGauge,
               "Current swap usage of the node in bytes. Reported only on non-windows systems");
    write(out, {}, kSwap(summary->node.swap));
    out.family("pod_cpu_usage_seconds_total", Type::kCounter,
               "Cumulative cpu time consumed by the pod in core-seconds");
    write_pods(out, *summary, kCpu);
    out.family("pod_memory_working_set_bytes", Type::kGauge, "Current working set of the pod in bytes");
    write_pods(out, *summary, kWorkingSet);
    out.family("pod_swap_usage_bytes", Type::kGauge,
               "Current amount of the pod swap usage in bytes. Reported only on non-windows systems");
    write_pods(out, *summary, kSwap);
  }
  out.family("resource_scrape_error", Type::kGauge,
             "1 if there was an error while getting container metrics, 0 otherwise");
  out.sample({}, summary == nullptr ? 1 : 0);
  return out.text();
}

std::string cadvisor_metrics(const api::Summary* summary, std::span<const api::Pod> pods, const MachineInfo& machine) {
  Exposition out;
  if (summary != nullptr) {
    out.family("container_cpu_usage_seconds_total", Type::kCounter, "Cumulative cpu time consumed in seconds.");
    write_everywhere(out, *summary, pods, kCpu);
    out.family("container_memory_usage_bytes", Type::kGauge,
               "Current memory usage in bytes, including all memory regardless of when it was accessed");
    write_everywhere(out, *summary, pods, kUsage);
    out.family("container_memory_working_set_bytes", Type::kGauge, "Current working set in bytes.");
    write_everywhere(out, *summary, pods, kWorkingSet);
    out.family("container_memory_rss", Type::kGauge, "Size of RSS in bytes.");
    write_everywhere(out, *summary, pods, kRss);
    write_details(out, *summary, pods);
    out.family("container_spec_memory_limit_bytes", Type::kGauge, "Memory limit for the container.");
    each_container(*summary, pods,
                   [&](const api::PodStats& pod, const api::Pod& known, const api::ContainerStats& container) {
                     const api::Container* declared = find_container(known, container.name);
                     if (declared == nullptr) return;
                     const api::Quantity* limit = api::limit_in_force(known.spec, *declared, "memory");
                     const double bytes = limit == nullptr ? 0 : static_cast<double>(limit->value());
                     out.sample(labels_of(pod, container), bytes);
                   });
    out.family("container_start_time_seconds", Type::kGauge,
               "Start time of the container since unix epoch in seconds.");
    each_container(*summary, pods,
                   [&](const api::PodStats& pod, const api::Pod& known, const api::ContainerStats& container) {
                     const std::optional<WallTime> start = start_of(known, container.name);
                     if (start) out.sample(labels_of(pod, container), seconds_of(*start));
                   });
    out.family("container_last_seen", Type::kGauge, "Last time a container was seen by the exporter");
    each_container(*summary, pods,
                   [&](const api::PodStats& pod, const api::Pod&, const api::ContainerStats& container) {
                     if (container.cpu && container.cpu->time) {
                       out.sample(labels_of(pod, container), seconds_of(*container.cpu->time));
                     }
                   });
  }
  out.family("cadvisor_version_info", Type::kGauge,
             "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor "
             "version & cadvisor revision.");
  out.sample({{"cadvisorRevision", ""},
              {"cadvisorVersion", ""},
              {"dockerVersion", ""},
              {"kernelVersion", machine.kernel_version},
              {"osVersion", machine.os_image}},
             1);
  out.family("machine_cpu_cores", Type::kGauge, "Number of logical CPU cores.");
  out.sample({{"machine_id", machine.machine_id}, {"system_uuid", machine.system_uuid}, {"boot_id", machine.boot_id}},
             static_cast<double>(machine.cpu_milli) / 1000);
  out.family("machine_memory_bytes", Type::kGauge, "Amount of memory installed on the machine.");
  out.sample({{"machine_id", machine.machine_id}, {"system_uuid", machine.system_uuid}, {"boot_id", machine.boot_id}},
             static_cast<double>(machine.memory.count()));
  return out.text();
}

std::string health_metrics(std::span<const CheckFact> checks) {
  Exposition out;
  out.family("kubernetes_healthcheck", Type::kGauge, "This metric records the result of a single healthcheck.");
  for (const CheckFact& each : checks) out.sample({{"name", each.name}, {"type", "healthz"}}, each.well ? 1 : 0);
  return out.text();
}

std::string kubelet_metrics(const KubeletFacts& facts, std::span<const api::Pod> pods) {
  PodCount desired;
  PodCount active;
  std::int64_t running_pods = 0;
  std::int64_t running = 0;
  std::int64_t exited = 0;
  for (const api::Pod& pod : pods) {
    desired.add(pod);
    if (pod.status.phase != "Succeeded" && pod.status.phase != "Failed") active.add(pod);
    const std::int64_t before = running;
    for (const auto* statuses : {&pod.status.init_container_statuses, &pod.status.container_statuses,
                                 &pod.status.ephemeral_container_statuses}) {
      for (const api::ContainerStatus& status : *statuses) {
        if (status.state.running) ++running;
        if (status.state.terminated) ++exited;
      }
    }
    if (running > before) ++running_pods;
  }
  Exposition out;
  out.family("kubelet_node_name", Type::kGauge, "The node's name. The count is always 1.");
  out.sample({{"node", facts.node_name}}, 1);
  out.family("kubelet_cgroup_version", Type::kGauge, "cgroup version on the hosts.");
  out.sample({}, facts.cgroup_version);
  out.family("kubelet_running_pods", Type::kGauge, "Number of pods that have a running pod sandbox");
  out.sample({}, static_cast<double>(running_pods));
  out.family("kubelet_running_containers", Type::kGauge, "Number of containers currently running");
  out.sample({{"container_state", "exited"}}, static_cast<double>(exited));
  out.sample({{"container_state", "running"}}, static_cast<double>(running));
  out.family("kubelet_desired_pods", Type::kGauge,
             "The number of pods the kubelet is being instructed to run. static is true if the pod is not from the "
             "apiserver.");
  desired.write(out);
  out.family("kubelet_active_pods", Type::kGauge,
             "The number of pods the kubelet considers active and which are being considered when admitting new pods. "
             "static is true if the pod is not from the apiserver.");
  active.write(out);
  if (facts.registration_seconds) {
    out.family("kubelet_node_startup_registration_duration_seconds", Type::kGauge,
               "Duration in seconds of node startup during registration.");
    out.sample({}, *facts.registration_seconds);
  }
  out.family("spillway_stats_age_seconds", Type::kGauge, "Age of the statistics that decisions rest on, by their part");
  for (const StatsAge& each : facts.ages) out.sample({{"part", each.part}}, each.seconds);
  out.family("spillway_node_registered", Type::kGauge,
             "1 if this instance of the agent has registered the node and written its status");
  out.sample({}, facts.registered ? 1 : 0);
  return out.text();
}

}  // namespace spillway::agent
