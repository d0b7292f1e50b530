#include "policy/node_volumes.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::policy {

std::string claim_key(std::string_view ns, std::string_view name) {
  return fmt::format("{}/{}", ns, name);
}

void NodeVolumes::add(const api::Pod& pod) {
  if (pod.spec.volumes.empty()) return;
  for (const std::string& name : api::claims_of(pod)) ++claims[claim_key(pod.metadata.ns, name)];
  for (api::ExclusiveDisk& disk : api::exclusive_disks_of(pod)) disks.push_back(std::move(disk));
}

}  // namespace spillway::policy
