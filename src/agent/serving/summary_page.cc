#include "agent/serving/summary_page.h"

#include "api/codec/codec.h"

#include <string>
#include <utility>

namespace spillway::agent {
namespace {

api::ContainerStats cpu_and_memory_of(const api::ContainerStats& container) {
  api::ContainerStats kept;
  kept.name = container.name;
  kept.start_time = container.start_time;
  kept.cpu = container.cpu;
  kept.memory = container.memory;
  return kept;
}

api::Summary cpu_and_memory_of(const api::Summary& summary) {
  api::Summary kept;
  kept.node.node_name = summary.node.node_name;
  kept.node.start_time = summary.node.start_time;
  kept.node.cpu = summary.node.cpu;
  kept.node.memory = summary.node.memory;
  for (const api::ContainerStats& each : summary.node.system_containers) {
    kept.node.system_containers.push_back(cpu_and_memory_of(each));
  }
  for (const api::PodStats& pod : summary.pods) {
    api::PodStats& some = kept.pods.emplace_back();
    some.uid = pod.uid;
    some.ns = pod.ns;
    some.name = pod.name;
    some.start_time = pod.start_time;
    some.cpu = pod.cpu;
    some.memory = pod.memory;
    for (const api::ContainerStats& each : pod.containers) some.containers.push_back(cpu_and_memory_of(each));
  }
  return kept;
}

}  // namespace

api::Response summary_page(Result<api::Summary> summary, const api::Target& target) {
  if (!summary) {
    return {.status = 500,
            .headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}},
            .body = "Internal Error: " + summary.error().text()};
  }
  const std::string* only = target.find("only_cpu_and_memory");
  if (only != nullptr && *only == "true") *summary = cpu_and_memory_of(*summary);
  return {
      .status = 200, .headers = {{"Content-Type", "application/json"}}, .body = api::to_text(api::encode(*summary))};
}

}  // namespace spillway::agent
