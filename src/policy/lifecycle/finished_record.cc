#include "policy/lifecycle/finished_record.h"

#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace spillway::lifecycle {
namespace {

constexpr std::size_t kReasonsMax = 5;
constexpr std::size_t kReasonBytesMax = 60;
constexpr std::size_t kMessageBytesMax = 400;

struct Collected {
  const api::Pod* last = nullptr;              // the youngest
  std::map<std::string, std::int64_t> counts;  // number of pods by the reason of their end
};

/// The pod's own reason, else that of a container, rather one that failed, else its phase.
std::string end_of(const api::Pod& pod) {
  if (!pod.status.reason.empty()) return shortened(pod.status.reason, kReasonBytesMax);
  std::string found;
  for (const api::ContainerStatus& container : pod.status.container_statuses) {
    const auto& ended = container.state.terminated;
    if (!ended || ended->reason.empty()) continue;
    if (found.empty() || ended->exit_code != 0) found = shortened(ended->reason, kReasonBytesMax);
  }
  return found.empty() ? std::string(pod.status.phase) : found;
}

std::string text_of(const Collected& collected) {
  std::vector<std::pair<std::string, std::int64_t>> most(collected.counts.begin(), collected.counts.end());
  std::ranges::stable_sort(most, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::int64_t pods = 0;
  std::int64_t named = 0;
  std::string ends;
  for (std::size_t at = 0; at < most.size(); ++at) {
    pods += most[at].second;
    if (at >= kReasonsMax) continue;
    named += most[at].second;
    ends += fmt::format("{}{} {}", ends.empty() ? "" : ", ", most[at].second, most[at].first);
  }
  if (pods > named) ends += fmt::format(", {} others", pods - named);
  const api::Pod& last = *collected.last;
  std::string text = fmt::format("{} finished {} collected: {}. The last was {}", pods,
                                 pods == 1 ? "pod was" : "pods were", ends, last.metadata.name);
  if (!last.spec.node_name.empty()) text += fmt::format(" on node {}", last.spec.node_name);
  if (!last.status.message.empty()) text += ": " + shortened(last.status.message, kMessageBytesMax);
  return text;
}

api::ObjectReference reference_of(const api::Pod& pod) {
  const api::OwnerReference* const owner = api::controller_of(pod.metadata);
  api::ObjectReference about;
  about.api_version = owner == nullptr ? "v1" : owner->api_version;
  about.kind = owner == nullptr ? "Pod" : owner->kind;
  about.ns = pod.metadata.ns;
  about.name = owner == nullptr ? pod.metadata.name : owner->name;
  about.uid = owner == nullptr ? pod.metadata.uid : owner->uid;
  return about;
}

}  // namespace

std::vector<FinishedRecord> records_of(std::span<const api::Pod* const> collected) {
  std::map<std::pair<std::string, std::string>, Collected> by_owner;
  for (const api::Pod* pod : collected) {
    const api::OwnerReference* const owner = api::controller_of(pod->metadata);
    Collected& of = by_owner[{pod->metadata.ns, owner == nullptr ? std::string() : owner->uid}];
    ++of.counts[end_of(*pod)];
    if (of.last == nullptr || pod->metadata.creation_timestamp >= of.last->metadata.creation_timestamp) of.last = pod;
  }
  std::vector<FinishedRecord> records;
  for (const auto& [owner, of] : by_owner) records.push_back({reference_of(*of.last), text_of(of)});
  return records;
}

}  // namespace spillway::lifecycle
