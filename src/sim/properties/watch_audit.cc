#include "sim/properties/watch_audit.h"

#include "api/exchange/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace spillway::sim {
namespace {

struct Watched {
  std::string_view path;
  std::string_view prefix;
  std::string_view by_node;  // the field selector that narrows it to one
};

constexpr std::array<Watched, 4> kWatched = {{{"/api/v1/nodes", "/registry/minions/", "metadata.name="},
                                              {"/api/v1/pods", "/registry/pods/", "spec.nodeName="},
                                              {"/apis/apps/v1/replicasets", "/registry/replicasets/", ""},
                                              {"/apis/apps/v1/daemonsets", "/registry/daemonsets/", ""}}};

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

void WatchAudit::on_change(std::string_view key, std::uint64_t revision, std::string_view node) {
  for (const Watched& each : kWatched) {
    if (!key.starts_with(each.prefix)) continue;
    Changes& changes = changes_[std::string(each.prefix)];
    changes.all.push_back(revision);
    if (node.empty()) continue;
    const auto known = changes.by_node.find(node);
    (known != changes.by_node.end() ? known->second : changes.by_node[std::string(node)]).push_back(revision);
  }
}

std::optional<WatchAudit::Stream> WatchAudit::begin(const std::string& target) {
  const std::string_view path = std::string_view(target).substr(0, target.find('?'));
  const auto watched = std::ranges::find(kWatched, path, &Watched::path);
  if (watched == kWatched.end()) return std::nullopt;
  const auto parsed = api::parse_target(target);
  if (!parsed) return std::nullopt;
  const std::string* const from = parsed->find("resourceVersion");
  if (from == nullptr || number_of(*from) == 0 || parsed->find("labelSelector") != nullptr) return std::nullopt;
  std::string node;
  if (const std::string* const field = parsed->find("fieldSelector")) {
    if (watched->by_node.empty() || !field->starts_with(watched->by_node)) return std::nullopt;
    node = field->substr(watched->by_node.size());
    if (node.find_first_of(",=!") != std::string::npos) return std::nullopt;
  }
  Changes& changes = changes_[std::string(watched->prefix)];
  const Stream::Revisions& due = node.empty() ? changes.all : changes.by_node[node];
  return Stream(verdicts_, due, fmt::format("{} {}", watched->prefix, node), number_of(*from));
}

void WatchAudit::Stream::on_event(std::string_view type, std::uint64_t revision, Now now) {
  if (type == "ERROR" || revision == 0) return;
  const bool is_bookmark = type == "BOOKMARK";
  if (revision < delivered_ || (revision == delivered_ && !is_bookmark)) {
    verdicts_->violate({Property::kWatchesWhole, collection_of(what_)}, now,
                       fmt::format("a watch of {} gets {} of {} after {}", what_, type, revision, delivered_));
    return;
  }
  const auto missed = std::ranges::upper_bound(*due_, delivered_);
  const bool is_missed = missed != due_->end() && (is_bookmark ? *missed <= revision : *missed < revision);
  if (is_missed) {
    verdicts_->violate({Property::kWatchesWhole, collection_of(what_)}, now,
                       fmt::format("a watch of {} received {} of {}, but missed {}", what_, type, revision, *missed));
  }
  delivered_ = revision;
}

}  // namespace spillway::sim
