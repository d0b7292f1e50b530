// The volumes of a node's pods, as far as they matter to newcomers. Thread: any (plain values).
#pragma once

#include "api/object/pod_volumes.h"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::policy {

/// "shop/data": how claims are named across namespaces.
std::string claim_key(std::string_view ns, std::string_view name);

struct NodeVolumes {
  std::map<std::string, std::size_t, std::less<>> claims;  // by claim_key; how many pods use each, at least one
  std::vector<api::ExclusiveDisk> disks;

  void add(const api::Pod& pod);
};

}  // namespace spillway::policy
