#include "controllers/storage/claim_users.h"

#include "api/object/pod_volumes.h"
#include "policy/storage/pod_claims.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::controllers {

ClaimUsers::ClaimUsers(client::ObjectCache<api::Pod>& pods) : pods_(pods) {
  pods_.listen({[this](const auto& before, const auto& after, Now now) { on_pod(before, after, now); }});
}

void ClaimUsers::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  const bool same =
      before && after && before->metadata.uid == after->metadata.uid && before->spec.node_name == after->spec.node_name;
  if (same) return;  // the volumes of a pod never change
  std::set<client::ObjectKey> touched;
  const auto visit = [&](const PodPtr& pod, const auto& act) {
    if (!pod || pod->spec.volumes.empty()) return;
    for (const std::string& name : api::claims_of(*pod)) {
      const client::ObjectKey claim = fmt::format("{}/{}", pod->metadata.ns, name);
      act(claim, client::key_of(pod->metadata));
      touched.insert(claim);
    }
  };
  visit(before, [this](const client::ObjectKey& claim, const client::ObjectKey& pod) {
    const auto found = users_.find(claim);
    if (found == users_.end()) return;
    found->second.erase(pod);
    if (found->second.empty()) users_.erase(found);
  });
  visit(after, [this](const client::ObjectKey& claim, const client::ObjectKey& pod) { users_[claim].insert(pod); });
  for (const client::ObjectKey& claim : touched) {
    for (const auto& listener : listeners_) listener(claim, now);
  }
}

bool ClaimUsers::is_used(const client::ObjectKey& claim) const {
  const auto found = users_.find(claim);
  if (found == users_.end()) return false;
  return std::ranges::any_of(found->second, [this](const client::ObjectKey& key) {
    const PodPtr pod = pods_.find(key);
    return pod && !pod->spec.node_name.empty();
  });
}

std::string ClaimUsers::waiting(const client::ObjectKey& claim) const {
  std::string names;
  const auto found = users_.find(claim);
  if (found == users_.end()) return names;
  for (const client::ObjectKey& key : found->second) {
    const PodPtr pod = pods_.find(key);
    if (!pod || !pod->spec.node_name.empty()) continue;
    if (!names.empty()) names += ',';
    names += pod->metadata.name;
  }
  return names;
}

}  // namespace spillway::controllers
