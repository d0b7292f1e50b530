#include "policy/workloads/stateful_revisions.h"

#include "policy/workloads/pod_template.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace spillway::workloads {

namespace {

constexpr std::int32_t kStatefulHistoryMax = 10;
constexpr std::string_view kRevisionDataHash = "controller.kubernetes.io/hash";

void sort_revisions(std::vector<RevisionPtr>& revisions) {
  std::ranges::sort(revisions, [](const RevisionPtr& a, const RevisionPtr& b) {
    return std::tie(a->revision, a->metadata.creation_timestamp, a->metadata.name) <
           std::tie(b->revision, b->metadata.creation_timestamp, b->metadata.name);
  });
}

api::StringMap string_map(const api::Json* members) {
  api::StringMap out;
  if (members == nullptr || members->if_object() == nullptr) return out;
  for (const auto& [key, value] : *members->if_object()) out.emplace(key, value.string_at({}));
  return out;
}

}  // namespace

std::string revision_data_hash(const api::Json& data, std::optional<std::int32_t> collisions) {
  std::uint32_t hash = 2166136261U;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash * 16777619U) ^ static_cast<unsigned char>(c);
  };
  add(api::to_text(data));
  if (collisions) add(std::to_string(*collisions));
  return safe_encode(std::to_string(hash));
}

api::PodTemplate template_of(const api::ControllerRevision& revision) {
  api::PodTemplate out;
  const api::Json* metadata = revision.data.at({"spec", "template", "metadata"});
  const api::Json* spec = revision.data.at({"spec", "template", "spec"});
  if (metadata != nullptr) {
    out.metadata = *metadata;
    out.labels = string_map(metadata->find("labels"));
    out.annotations = string_map(metadata->find("annotations"));
  }
  if (spec != nullptr) out.spec = *spec;
  return out;
}

StatefulRevisions plan_stateful_revisions(const api::StatefulSet& set, std::vector<RevisionPtr> owned,
                                          std::int32_t collisions) {
  sort_revisions(owned);
  StatefulRevisions plan;
  api::Json data = template_data(set.pod_template);
  for (const RevisionPtr& each : owned) {
    if (holds_data(*each, data)) plan.update = each;
    if (each->metadata.name == set.status.current_revision) plan.current = each;
  }
  const std::int64_t next = owned.empty() ? 1 : owned.back()->revision + 1;
  if (!plan.update) {
    api::ControllerRevision made;
    const std::string hash = revision_data_hash(data, collisions);
    made.metadata.name = set.metadata.name + "-" + hash;
    made.metadata.ns = set.metadata.ns;
    made.metadata.labels = set.pod_template.labels;
    made.metadata.labels[std::string(kRevisionDataHash)] = hash;
    made.metadata.annotations = set.metadata.annotations;
    made.data = std::move(data);
    made.revision = next;
    plan.create = std::move(made);
  } else if (plan.update != owned.back()) {
    plan.renumber = next;
  }
  return plan;
}

std::vector<RevisionPtr> surplus_revisions(const api::StatefulSet& set, std::vector<RevisionPtr> owned,
                                           const api::ControllerRevision& current,
                                           const api::ControllerRevision& update, const std::vector<PodPtr>& pods) {
  std::set<std::string> live{current.metadata.name, update.metadata.name};
  for (const PodPtr& pod : pods) live.insert(revision_hash(pod->metadata));
  std::erase_if(owned, [&live](const RevisionPtr& each) { return live.contains(each->metadata.name); });
  sort_revisions(owned);
  const auto limit = static_cast<std::size_t>(std::max(set.revision_history_limit.value_or(kStatefulHistoryMax), 0));
  owned.resize(owned.size() - std::min(owned.size(), limit));
  return owned;
}

}  // namespace spillway::workloads
