#include "policy/workloads/deployment_revisions.h"

#include "policy/workloads/pod_template.h"
#include "policy/workloads/rollout_bounds.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <tuple>
#include <utility>

namespace spillway::workloads {

namespace {

constexpr std::array<std::string_view, 6> kNotCopied{"kubectl.kubernetes.io/last-applied-configuration",
                                                     kRevision,
                                                     kRevisionHistory,
                                                     kDesiredReplicas,
                                                     kMaxReplicas,
                                                     "deprecated.deployment.rollback.to"};

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

const std::string* annotation_of(const api::ObjectMeta& metadata, std::string_view name) {
  const auto found = metadata.annotations.find(name);
  return found == metadata.annotations.end() ? nullptr : &found->second;
}

bool put(api::StringMap& annotations, std::string_view name, const std::string& value) {
  const auto [entry, made] = annotations.try_emplace(std::string(name), value);
  if (made) return true;
  if (entry->second == value) return false;
  entry->second = value;
  return true;
}

void sort_oldest_first(ReplicaSets& sets) {
  std::ranges::sort(sets, [](const auto& a, const auto& b) { return older(*a, *b); });
}

/// Appends the former revision to the history annotation; the oldest ones are cut off where it gets too long.
void remember_revision(api::StringMap& annotations, const std::string& revision, std::size_t chars_max) {
  std::string& history = annotations[std::string(kRevisionHistory)];
  if (history.empty() || history.starts_with(',')) {
    history = revision;
    return;
  }
  std::size_t length = history.size() + revision.size() + 1;
  std::string_view kept = history;
  bool any = true;
  while (length > chars_max && any) {
    const std::size_t comma = kept.find(',');
    const std::size_t first = std::min(comma, kept.size());
    length -= first + 1;
    any = comma != std::string_view::npos;
    kept.remove_prefix(any ? first + 1 : kept.size());
  }
  if (length > chars_max) return;
  history = any ? std::string(kept) + "," + revision : revision;
}

}  // namespace

bool older(const api::ReplicaSet& a, const api::ReplicaSet& b) {
  return std::tie(a.metadata.creation_timestamp, a.metadata.name) <
         std::tie(b.metadata.creation_timestamp, b.metadata.name);
}

ReplicaSetPtr find_new(const api::Deployment& deployment, ReplicaSets sets) {
  sort_oldest_first(sets);
  const TemplateMatch matches(template_document(deployment.pod_template));
  const auto found = std::ranges::find_if(
      sets, [&matches](const ReplicaSetPtr& set) { return matches(template_document(set->pod_template)); });
  return found == sets.end() ? nullptr : *found;
}

ReplicaSets all_but(const ReplicaSetPtr& latest, ReplicaSets sets) {
  sort_oldest_first(sets);
  if (latest) std::erase_if(sets, [&](const ReplicaSetPtr& set) { return set->metadata.uid == latest->metadata.uid; });
  return sets;
}

ReplicaSets active_of(const ReplicaSets& sets) {
  ReplicaSets active;
  std::ranges::copy_if(sets, std::back_inserter(active),
                       [](const ReplicaSetPtr& set) { return set != nullptr && set->replicas > 0; });
  return active;
}

std::optional<std::int64_t> revision_of(const api::ObjectMeta& metadata) {
  const std::string* written = annotation_of(metadata, kRevision);
  return written == nullptr ? 0 : whole_number(*written);
}

std::int64_t max_revision(const ReplicaSets& sets) {
  std::int64_t highest = 0;
  for (const ReplicaSetPtr& set : sets) highest = std::max(highest, revision_of(set->metadata).value_or(0));
  return highest;
}

std::int64_t last_revision(const ReplicaSets& sets) {
  std::int64_t highest = 0;
  std::int64_t second = 0;
  for (const ReplicaSetPtr& set : sets) {
    const auto revision = revision_of(set->metadata);
    if (!revision) continue;
    if (*revision >= highest) {
      second = std::exchange(highest, *revision);
    } else {
      second = std::max(second, *revision);
    }
  }
  return second;
}

ReplicaSetPtr active_or_latest(const ReplicaSetPtr& latest, ReplicaSets old) {
  sort_oldest_first(old);
  ReplicaSets all = old;
  all.push_back(latest);
  const ReplicaSets active = active_of(all);
  if (active.size() > 1) return nullptr;
  if (active.size() == 1) return active.front();
  if (latest) return latest;
  return old.empty() ? nullptr : old.back();
}

std::optional<std::int64_t> number_on(const api::ObjectMeta& metadata, std::string_view annotation) {
  const std::string* written = annotation_of(metadata, annotation);
  return written == nullptr ? std::nullopt : whole_number(*written);
}

bool record_scale(api::ReplicaSet& set, const api::Deployment& deployment) {
  const std::int64_t most = deployment.replicas + rollout_bounds(deployment).surge_max;
  const bool desired = put(set.metadata.annotations, kDesiredReplicas, std::to_string(deployment.replicas));
  return put(set.metadata.annotations, kMaxReplicas, std::to_string(most)) || desired;
}

bool record_revision(api::ReplicaSet& set, const api::Deployment& deployment, std::int64_t revision, Written written,
                     std::size_t history_chars_max) {
  api::StringMap& annotations = set.metadata.annotations;
  bool changed = false;
  for (const auto& [name, value] : deployment.metadata.annotations) {
    if (std::ranges::find(kNotCopied, name) == kNotCopied.end()) changed = put(annotations, name, value) || changed;
  }
  const std::string* present = annotation_of(set.metadata, kRevision);
  const bool existed = present != nullptr;
  const std::string before = existed ? *present : "";
  const auto number = before.empty() ? std::optional<std::int64_t>(0) : whole_number(before);
  if (!number) return false;
  if (*number < revision) {
    changed = put(annotations, kRevision, std::to_string(revision)) || changed;
    if (existed) remember_revision(annotations, before, history_chars_max);
  }
  return (written == Written::kNo && record_scale(set, deployment)) || changed;
}

ReplicaSets beyond_history(const api::Deployment& deployment, const ReplicaSets& old) {
  const auto limit = deployment.revision_history_limit;
  if (!limit || *limit == std::numeric_limits<std::int32_t>::max()) return {};
  ReplicaSets sets = old;
  std::erase_if(sets, [](const ReplicaSetPtr& set) { return set->metadata.deletion_timestamp.has_value(); });
  std::ranges::sort(sets, [](const ReplicaSetPtr& a, const ReplicaSetPtr& b) {
    const std::int64_t one = revision_of(a->metadata).value_or(0);
    const std::int64_t other = revision_of(b->metadata).value_or(0);
    return one != other ? one < other : older(*a, *b);
  });
  const auto surplus = static_cast<std::int64_t>(sets.size()) - *limit;
  sets.resize(static_cast<std::size_t>(std::max<std::int64_t>(surplus, 0)));
  std::erase_if(sets, [](const ReplicaSetPtr& set) {
    return set->status.replicas != 0 || set->replicas != 0 ||
           set->metadata.generation > set->status.observed_generation;
  });
  return sets;
}

}  // namespace spillway::workloads
