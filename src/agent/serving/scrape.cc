#include "agent/serving/scrape.h"

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

std::optional<Figure> figure_of(CpuFigure read, const std::optional<api::CpuStats>& cpu,
                                const std::optional<api::MemoryStats>&) {
  return read(cpu);
}

std::optional<Figure> figure_of(MemoryFigure read, const std::optional<api::CpuStats>&,
                                const std::optional<api::MemoryStats>& memory) {
  return read(memory);
}

void write(Exposition& out, const Labels& labels, const std::optional<Figure>& figure) {
  if (figure) out.sample(labels, figure->value, figure->at);
}

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
  return status != nullptr ? status : find_named(pod.status.init_container_statuses, name);
}

const api::Container* find_container(const api::Pod& pod, const std::string& name) {
  const api::Container* container = find_named(pod.spec.containers, name);
  return container != nullptr ? container : find_named(pod.spec.init_containers, name);
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
      write(out, labels_of(pod, container), figure_of(read, container.cpu, container.memory));
    }
  }
}

template <typename Read>
void write_pods(Exposition& out, const api::Summary& summary, Read read) {
  for (const api::PodStats& pod : summary.pods) write(out, labels_of(pod), figure_of(read, pod.cpu, pod.memory));
}

constexpr CpuFigure kCpu = cpu_seconds;
constexpr MemoryFigure kWorkingSet = memory_bytes<&api::MemoryStats::working_set_bytes>;
constexpr MemoryFigure kUsage = memory_bytes<&api::MemoryStats::usage_bytes>;
constexpr MemoryFigure kRss = memory_bytes<&api::MemoryStats::rss_bytes>;

/// One family of cAdvisor over the node, its pods and its containers.
template <typename Read>
void write_everywhere(Exposition& out, const api::Summary& summary, std::span<const api::Pod> pods, Read read) {
  const auto without_time = [](std::optional<Figure> figure) {
    if (figure) figure->at.reset();
    return figure;
  };
  write(out, {{"container", ""}, {"id", "/"}, {"image", ""}, {"name", ""}, {"namespace", ""}, {"pod", ""}},
        without_time(figure_of(read, summary.node.cpu, summary.node.memory)));
  for (const api::PodStats& pod : summary.pods) {
    const std::string id = "/kubepods/pod" + pod.uid;
    write(out, {{"container", ""}, {"id", id}, {"image", ""}, {"name", ""}, {"namespace", pod.ns}, {"pod", pod.name}},
          without_time(figure_of(read, pod.cpu, pod.memory)));
    const api::Pod* known = find_pod(pods, pod.uid);
    for (const api::ContainerStats& container : pod.containers) {
      const api::Container* declared = known == nullptr ? nullptr : find_container(*known, container.name);
      const std::string inner = id + "/" + container.name;
      const std::string image = declared == nullptr ? std::string() : declared->image;
      write(out,
            {{"container", container.name},
             {"id", inner},
             {"image", image},
             {"name", container.name},
             {"namespace", pod.ns},
             {"pod", pod.name}},
            without_time(figure_of(read, container.cpu, container.memory)));
    }
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
    out.family("node_cpu_usage_seconds_total", Type::kCounter,
               "Cumulative cpu time consumed by the node in core-seconds");
    write(out, {}, kCpu(summary->node.cpu));
    out.family("node_memory_working_set_bytes", Type::kGauge, "Current working set of the node in bytes");
    write(out, {}, kWorkingSet(summary->node.memory));
    out.family("pod_cpu_usage_seconds_total", Type::kCounter,
               "Cumulative cpu time consumed by the pod in core-seconds");
    write_pods(out, *summary, kCpu);
    out.family("pod_memory_working_set_bytes", Type::kGauge, "Current working set of the pod in bytes");
    write_pods(out, *summary, kWorkingSet);
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
    out.family("container_spec_memory_limit_bytes", Type::kGauge, "Memory limit for the container.");
    each_container(*summary, pods,
                   [&](const api::PodStats& pod, const api::Pod& known, const api::ContainerStats& container) {
                     const api::Container* declared = find_container(known, container.name);
                     if (declared == nullptr) return;
                     const auto limit = declared->resources.limits.find("memory");
                     const double bytes =
                         limit == declared->resources.limits.end() ? 0 : static_cast<double>(limit->second.value());
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
  out.family("machine_cpu_cores", Type::kGauge, "Number of logical CPU cores.");
  out.sample({{"machine_id", machine.machine_id}, {"system_uuid", machine.system_uuid}, {"boot_id", machine.boot_id}},
             static_cast<double>(machine.cpu_milli) / 1000);
  out.family("machine_memory_bytes", Type::kGauge, "Amount of memory installed on the machine.");
  out.sample({{"machine_id", machine.machine_id}, {"system_uuid", machine.system_uuid}, {"boot_id", machine.boot_id}},
             static_cast<double>(machine.memory.count()));
  return out.text();
}

std::string kubelet_metrics(const KubeletFacts& facts, std::span<const api::Pod> pods) {
  std::int64_t active = 0;
  std::int64_t running_pods = 0;
  std::int64_t running = 0;
  std::int64_t exited = 0;
  for (const api::Pod& pod : pods) {
    if (pod.status.phase != "Succeeded" && pod.status.phase != "Failed") ++active;
    const std::int64_t before = running;
    for (const auto* statuses : {&pod.status.init_container_statuses, &pod.status.container_statuses}) {
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
  out.sample({{"static", ""}}, static_cast<double>(pods.size()));
  out.family("kubelet_active_pods", Type::kGauge,
             "The number of pods the kubelet considers active and which are being considered when admitting new pods. "
             "static is true if the pod is not from the apiserver.");
  out.sample({{"static", ""}}, static_cast<double>(active));
  out.family("spillway_node_registered", Type::kGauge,
             "1 if this instance of the agent has registered the node and written its status");
  out.sample({}, facts.registered ? 1 : 0);
  return out.text();
}

}  // namespace spillway::agent
