// Goal: what Prometheus reads off a node has upstream's names and the time of its measurement.
#include "agent/serving/scrape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr WallTime kMeasured = WallTime(milliseconds(1'795'219'383'578));

api::Summary summary() {
  api::Summary out;
  out.node.cpu = api::CpuStats{kMeasured, 5, 7'252'980'408'156};
  out.node.memory = api::MemoryStats{.time = kMeasured, .usage_bytes = 70, .working_set_bytes = 60, .rss_bytes = 50};
  api::PodStats pod;
  pod.uid = "u1";
  pod.ns = "default";
  pod.name = "web";
  pod.cpu = api::CpuStats{kMeasured, std::nullopt, 105'020'744};
  pod.memory = api::MemoryStats{.time = kMeasured, .working_set_bytes = 37'105'664};
  pod.containers.push_back({.name = "app",
                            .cpu = api::CpuStats{kMeasured, std::nullopt, 40'546'406},
                            .memory = api::MemoryStats{.time = kMeasured, .working_set_bytes = 35'168'256}});
  pod.containers.push_back({.name = "unmeasured"});
  out.pods.push_back(pod);
  return out;
}

std::vector<api::Pod> pods() {
  api::Pod pod;
  pod.metadata.name = "web";
  pod.metadata.ns = "default";
  pod.metadata.uid = "u1";
  api::Container app;
  app.name = "app";
  app.image = "shop/web:1";
  app.resources.limits["memory"] = api::Quantity::of_units(64 * 1024 * 1024);
  pod.spec.containers.push_back(app);
  api::ContainerStatus status;
  status.name = "app";
  status.state.running = api::ContainerStateRunning{WallTime(seconds(1'795'219'235))};
  pod.status.container_statuses.push_back(status);
  pod.status.phase = "Running";
  api::Pod done;
  done.metadata.uid = "u2";
  done.status.phase = "Succeeded";
  api::ContainerStatus ended;
  ended.name = "job";
  ended.state.terminated = api::ContainerStateTerminated{};
  done.status.container_statuses.push_back(ended);
  return {pod, done};
}

TEST(Scrape, ResourceMetricsAreAsUpstreamPrintsThem) {
  const api::Summary seen = summary();
  EXPECT_EQ(resource_metrics(&seen, pods()),
            R"(# HELP container_cpu_usage_seconds_total Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="app",namespace="default",pod="web"} 0.040546406 1795219383578
# HELP container_memory_working_set_bytes Current working set of the container in bytes
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="app",namespace="default",pod="web"} 35168256 1795219383578
# HELP container_start_time_seconds Start time of the container since unix epoch in seconds
# TYPE container_start_time_seconds gauge
container_start_time_seconds{container="app",namespace="default",pod="web"} 1795219235
# HELP node_cpu_usage_seconds_total Cumulative cpu time consumed by the node in core-seconds
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 7252.980408156 1795219383578
# HELP node_memory_working_set_bytes Current working set of the node in bytes
# TYPE node_memory_working_set_bytes gauge
node_memory_working_set_bytes 60 1795219383578
# HELP pod_cpu_usage_seconds_total Cumulative cpu time consumed by the pod in core-seconds
# TYPE pod_cpu_usage_seconds_total counter
pod_cpu_usage_seconds_total{namespace="default",pod="web"} 0.105020744 1795219383578
# HELP pod_memory_working_set_bytes Current working set of the pod in bytes
# TYPE pod_memory_working_set_bytes gauge
pod_memory_working_set_bytes{namespace="default",pod="web"} 37105664 1795219383578
# HELP resource_scrape_error 1 if there was an error while getting container metrics, 0 otherwise
# TYPE resource_scrape_error gauge
resource_scrape_error 0
)");
}

TEST(Scrape, WithoutASummaryThereIsAScrapeErrorAlone) {
  EXPECT_EQ(resource_metrics(nullptr, pods()),
            "# HELP resource_scrape_error 1 if there was an error while getting container metrics, 0 otherwise\n"
            "# TYPE resource_scrape_error gauge\nresource_scrape_error 1\n");
}

TEST(Scrape, CadvisorMetricsNameNodePodsAndContainers) {
  const api::Summary seen = summary();
  const MachineInfo machine{.machine_id = "m", .cpu_milli = 2500, .memory = gibibytes(1)};
  const std::string text = cadvisor_metrics(&seen, pods(), machine);
  for (
      const char* line :
      {R"(container_cpu_usage_seconds_total{container="",id="/",image="",name="",namespace="",pod=""} 7252.980408156)",
       R"(container_memory_working_set_bytes{container="",id="/kubepods/podu1",image="",name="",namespace="default",pod="web"} 37105664)",
       R"(container_memory_working_set_bytes{container="app",id="/kubepods/podu1/app",image="shop/web:1",name="app",namespace="default",pod="web"} 35168256)",
       R"(container_spec_memory_limit_bytes{container="app",namespace="default",pod="web"} 67108864)",
       R"(machine_memory_bytes{machine_id="m",system_uuid="",boot_id=""} 1073741824)",
       R"(machine_cpu_cores{machine_id="m",system_uuid="",boot_id=""} 2.5)"}) {
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
  }
  EXPECT_THAT(text, Not(HasSubstr("unmeasured"))) << "what was not measured is not zero";
  EXPECT_THAT(cadvisor_metrics(nullptr, {}, machine), HasSubstr("machine_memory_bytes"));
}

TEST(Scrape, SwapFilesNetworkAndFaultsAreReportedWhereTheyWereMeasured) {
  api::Summary seen = summary();
  seen.node.swap = api::SwapStats{kMeasured, std::nullopt, 4096};
  seen.node.network.emplace().interfaces.push_back(
      {.name = "eth0", .rx_bytes = 11, .rx_errors = 0, .tx_bytes = 7, .tx_errors = 1});
  api::ContainerStats& app = seen.pods[0].containers[0];
  app.memory->page_faults = 12;
  app.rootfs.emplace().used_bytes = 20'480;
  seen.pods[0].process_count = 3;
  EXPECT_THAT(resource_metrics(&seen, pods()), HasSubstr("\nnode_swap_usage_bytes 4096 1795219383578\n"));
  EXPECT_THAT(resource_metrics(&seen, pods()), Not(HasSubstr("pod_swap")));
  const std::string text = cadvisor_metrics(&seen, pods(), {});
  for (
      const char* line :
      {R"(container_memory_swap{container="",id="/",image="",name="",namespace="",pod=""} 4096)",
       R"(container_memory_failures_total{container="app",id="/kubepods/podu1/app",image="shop/web:1",name="app",namespace="default",pod="web",failure_type="pgfault",scope="container"} 12)",
       R"(container_fs_usage_bytes{container="app",namespace="default",pod="web"} 20480)",
       R"(container_network_transmit_errors_total{id="/",namespace="",pod="",interface="eth0"} 1)",
       R"(container_processes{namespace="default",pod="web"} 3)"}) {
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
  }
}

TEST(Scrape, AgesAreThoseOfTheOldestFigures) {
  api::Summary seen = summary();
  seen.node.fs.emplace().time = kMeasured - seconds(20);
  seen.pods[0].ephemeral_storage.emplace().time = kMeasured - seconds(9);
  seen.pods.push_back(seen.pods[0]);
  seen.pods[1].memory->time = kMeasured - seconds(3);
  std::vector<std::pair<std::string, double>> ages;
  for (const StatsAge& each : ages_of(seen, kMeasured + seconds(1))) ages.emplace_back(each.part, each.seconds);
  using Age = std::pair<std::string, double>;
  EXPECT_THAT(ages, testing::ElementsAre(Age{"filesystem", 21}, Age{"node", 1}, Age{"pod_disk", 10}, Age{"pods", 4}));
  EXPECT_TRUE(ages_of({}, kMeasured).empty());
}

TEST(Scrape, ChecksAreWellOrNot) {
  const std::vector<CheckFact> checks{{"ping", true}, {"syncloop", false}};
  const std::string text = health_metrics(checks);
  EXPECT_THAT(text, HasSubstr("\nkubernetes_healthcheck{name=\"ping\",type=\"healthz\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nkubernetes_healthcheck{name=\"syncloop\",type=\"healthz\"} 0\n"));
}

TEST(Scrape, KubeletMetricsCountPodsAndContainers) {
  std::vector<api::Pod> all = pods();
  all.push_back(all.front());
  all.back().metadata.annotations["kubernetes.io/config.source"] = "file";
  all.back().status = {};
  const std::string text = kubelet_metrics({.node_name = "n\"1", .cgroup_version = 1, .registered = true}, all);
  for (const char* line :
       {R"(kubelet_node_name{node="n\"1"} 1)", "kubelet_cgroup_version 1", "kubelet_running_pods 1",
        R"(kubelet_running_containers{container_state="running"} 1)",
        R"(kubelet_running_containers{container_state="exited"} 1)", R"(kubelet_desired_pods{static=""} 2)",
        R"(kubelet_desired_pods{static="true"} 1)", R"(kubelet_active_pods{static=""} 1)",
        R"(kubelet_active_pods{static="true"} 1)", "spillway_node_registered 1"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + line + "\n"));
  }
}

}  // namespace
}  // namespace spillway::agent
