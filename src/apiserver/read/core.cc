#include "apiserver/read/core.h"

#include <algorithm>

namespace spillway::apiserver {

std::string new_uid(Rng& rng) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string uid = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
  std::uint64_t bits = 0;
  int left = 0;
  for (char& c : uid) {
    if (c != 'x' && c != 'y') continue;
    if (left == 0) {
      bits = rng.next();
      left = 16;
    }
    const std::uint64_t digit = bits & 0xfU;
    c = kDigits[c == 'y' ? (digit & 0x3U) | 0x8U : digit];
    bits >>= 4U;
    --left;
  }
  return uid;
}

std::string name_suffix(Rng& rng) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix += kAlphabet[rng.below(kAlphabet.size())];
  return suffix;
}

std::string generated_name(const std::string& prefix, Rng& rng) {
  constexpr std::size_t kPrefixMax = 58;
  return prefix.substr(0, kPrefixMax) + name_suffix(rng);
}

std::optional<api::Json> CachedCluster::find(std::string_view plural, std::string_view ns,
                                             std::string_view name) const {
  const ObjectPtr found = object(plural, ns, name);
  return found ? std::optional(found->document()) : std::nullopt;
}

ObjectPtr CachedCluster::object(std::string_view plural, std::string_view ns, std::string_view name) const {
  const Resource* resource = core_.registry.find_plural(plural);
  if (resource == nullptr || !resource->stored()) return nullptr;
  return core_.cache.of(*resource).find(object_key(ns, name));
}

std::optional<std::string> CachedCluster::label(std::string_view plural, std::string_view ns, std::string_view name,
                                                std::string_view key) const {
  const ObjectPtr found = object(plural, ns, name);
  if (!found) return std::nullopt;
  const auto label = found->meta.labels.find(key);
  return label == found->meta.labels.end() ? std::string() : label->second;
}

void CachedCluster::visit(std::string_view plural, std::string_view ns,
                          const std::function<bool(const api::Json&)>& visit) const {
  const Resource* resource = core_.registry.find_plural(plural);
  if (resource == nullptr || !resource->stored()) return;
  const std::string prefix = ns.empty() ? std::string() : std::string(ns) + "/";
  core_.cache.of(*resource).visit(prefix, {},
                                  [&](const ObjectPtr& object) { return visit(*object->shared_document()); });
}

bool CachedCluster::is_held(std::string_view plural, std::string_view name) const {
  return core_.held->is_held(fmt::format("{}/{}", plural, name), core_.now.mono);
}

bool CachedCluster::is_reserved(std::string_view plural, std::string_view name, std::string_view but_for) const {
  const Resource* resource = core_.registry.find_plural(plural);
  return resource != nullptr && resource->stored() && core_.cache.of(*resource).is_reserved(name, but_for);
}

}  // namespace spillway::apiserver
