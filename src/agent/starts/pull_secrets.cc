#include "agent/starts/pull_secrets.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::array<std::string_view, 7> kImageReasons = {
    "ErrImagePull",     "ImagePullBackOff",    "ErrImageNeverPull",        "ImageInspectError",
    "InvalidImageName", "RegistryUnavailable", "SignatureValidationFailed"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kSecretTypes = {
    {{".dockerconfigjson", "kubernetes.io/dockerconfigjson"}, {".dockercfg", "kubernetes.io/dockercfg"}}};

}  // namespace

void add_pull_secrets(const api::Pod& pod, std::set<DataReference>& references) {
  for (const api::SecretReference& each : pod.spec.image_pull_secrets) {
    if (!each.name.empty()) references.insert({DataReference::Kind::kSecret, each.name});
  }
}

std::vector<PullSecret> pull_secrets_of(const api::Pod& pod, const EnvSources& sources) {
  std::vector<PullSecret> found;
  for (const api::SecretReference& each : pod.spec.image_pull_secrets) {
    const auto source = sources.find({DataReference::Kind::kSecret, each.name});
    if (source == sources.end()) continue;
    for (const auto& [key, type] : kSecretTypes) {
      const auto value = source->second.find(std::string(key));
      if (value != source->second.end()) found.push_back({std::string(type), value->second});
    }
  }
  return found;
}

bool is_image_problem(std::string_view reason) {
  return std::ranges::find(kImageReasons, reason) != kImageReasons.end();
}

}  // namespace spillway::agent
