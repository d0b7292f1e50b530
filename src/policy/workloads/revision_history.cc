#include "policy/workloads/revision_history.h"

#include "policy/workloads/pod_template.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace spillway::workloads {

namespace {

constexpr std::int32_t kHistoryMax = 10;

bool is_before(const RevisionPtr& a, const RevisionPtr& b) {
  return std::tie(a->revision, a->metadata.creation_timestamp, a->metadata.name) <
         std::tie(b->revision, b->metadata.creation_timestamp, b->metadata.name);
}

api::ControllerRevision new_revision(const api::DaemonSet& set, api::Json data, std::int64_t number) {
  const std::string hash = template_hash(template_document(set.pod_template), set.status.collision_count);
  api::ControllerRevision made;
  made.metadata.name = set.metadata.name + "-" + hash;
  made.metadata.ns = set.metadata.ns;
  made.metadata.labels = set.pod_template.labels;
  made.metadata.labels[std::string(kRevisionHash)] = hash;
  made.metadata.annotations = set.metadata.annotations;
  made.data = std::move(data);
  made.revision = number;
  return made;
}

}  // namespace

api::Json template_data(const api::PodTemplate& pod_template) {
  api::Json data = template_document(pod_template);
  data["$patch"] = "replace";
  return api::Json::object({{"spec", api::Json::object({{"template", std::move(data)}})}});
}

bool holds_data(const api::ControllerRevision& revision, const api::Json& data) {
  if (revision.data == data) return true;
  const api::Json* time = revision.data.at({"spec", "template", "metadata", "creationTimestamp"});
  if (time == nullptr || !time->is_null()) return false;
  api::Json without = revision.data;
  without.erase({"spec", "template", "metadata", "creationTimestamp"});
  return without == data;
}

std::string revision_hash(const api::ObjectMeta& metadata) {
  const auto found = metadata.labels.find(kRevisionHash);
  return found == metadata.labels.end() ? std::string() : found->second;
}

RevisionPlan plan_revisions(const api::DaemonSet& set, const std::vector<RevisionPtr>& owned,
                            const std::set<std::string>& used) {
  api::Json data = template_data(set.pod_template);
  std::vector<RevisionPtr> revisions = owned;
  std::ranges::sort(revisions, is_before);
  RevisionPlan plan;
  std::vector<RevisionPtr> old;
  for (const RevisionPtr& each : revisions) {
    if (holds_data(*each, data)) {
      plan.current = each;
    } else {
      old.push_back(each);
    }
  }
  const std::int64_t latest = (old.empty() ? 0 : old.back()->revision) + 1;
  if (!plan.current) {
    plan.create = new_revision(set, std::move(data), latest);
  } else if (plan.current->revision < latest) {
    plan.renumber = latest;
  }
  std::int64_t surplus = static_cast<std::int64_t>(old.size()) - set.revision_history_limit.value_or(kHistoryMax);
  for (const RevisionPtr& each : old) {
    if (surplus <= 0) break;
    if (used.contains(revision_hash(each->metadata))) continue;
    plan.remove.push_back(each);
    --surplus;
  }
  return plan;
}

}  // namespace spillway::workloads
