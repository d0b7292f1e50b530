#include "apiserver/core.h"

#include <fmt/format.h>

namespace spillway::apiserver {

std::string new_uid(Rng& rng) {
  const std::uint64_t high = (rng.next() & 0xffff'ffff'ffff'0fffULL) | 0x4000ULL;
  const std::uint64_t low = (rng.next() & 0x3fff'ffff'ffff'ffffULL) | 0x8000'0000'0000'0000ULL;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32U, (high >> 16U) & 0xffffU, high & 0xffffU,
                     low >> 48U, low & 0xffff'ffff'ffffULL);
}

std::string name_suffix(Rng& rng) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix += kAlphabet[rng.below(kAlphabet.size())];
  return suffix;
}

std::optional<api::Json> CachedCluster::find(std::string_view plural, std::string_view ns,
                                             std::string_view name) const {
  const Resource* resource = core_.registry.find_plural(plural);
  if (resource == nullptr || !resource->stored()) return std::nullopt;
  const ObjectPtr object = core_.cache.of(*resource).find(object_key(ns, name));
  if (!object) return std::nullopt;
  return object->document();
}

void CachedCluster::visit(std::string_view plural, std::string_view ns,
                          const std::function<bool(const api::Json&)>& visit) const {
  const Resource* resource = core_.registry.find_plural(plural);
  if (resource == nullptr || !resource->stored()) return;
  const std::string prefix = ns.empty() ? std::string() : std::string(ns) + "/";
  core_.cache.of(*resource).visit(prefix, {}, [&](const ObjectPtr& object) { return visit(object->document()); });
}

}  // namespace spillway::apiserver
