#include "agent/serving/running_pods.h"

#include "api/json/json.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;
using ImageMap = std::map<std::string, std::string, std::less<>>;  // by name of the container

ImageMap images_of(const api::Pod& pod) {
  ImageMap images;
  for (const auto* statuses : std::to_array({&pod.status.container_statuses, &pod.status.init_container_statuses,
                                             &pod.status.ephemeral_container_statuses}))
    for (const api::ContainerStatus& each : *statuses)
      if (!each.image.empty()) images.emplace(each.name, each.image);
  for (const auto* containers :
       std::to_array({&pod.spec.containers, &pod.spec.init_containers, &pod.spec.ephemeral_containers}))
    for (const api::Container& each : *containers) images.emplace(each.name, each.image);
  return images;
}

Json running_item(const RunningPod& pod, const ImageMap& images) {
  Json containers = Json::array();
  for (const std::string& name : pod.containers) {
    const auto image = images.find(name);
    containers.if_array()->push_back(Json::object(
        {{"name", name}, {"image", image == images.end() ? "" : image->second}, {"resources", Json::object()}}));
  }
  return Json::object(
      {{"metadata", Json::object({{"name", pod.pod.name}, {"namespace", pod.pod.ns}, {"uid", pod.uid}})},
       {"spec", Json::object({{"containers", std::move(containers)}})},
       {"status", Json::object()}});
}

}  // namespace

std::string running_pods_page(std::vector<RunningPod> running, const std::vector<api::Pod>& pods) {
  std::ranges::sort(running, [](const RunningPod& a, const RunningPod& b) {
    return std::tie(b.created, a.pod, a.uid) < std::tie(a.created, b.pod, b.uid);
  });
  Json items = Json::array();
  for (const RunningPod& each : running) {
    const auto known = std::ranges::find(pods, each.uid, [](const api::Pod& pod) { return pod.metadata.uid; });
    items.if_array()->push_back(running_item(each, known == pods.end() ? ImageMap() : images_of(*known)));
  }
  return api::to_text(Json::object(
      {{"kind", "PodList"}, {"apiVersion", "v1"}, {"metadata", Json::object()}, {"items", std::move(items)}}));
}

}  // namespace spillway::agent
