#include "controllers/scheduling/volume_binding.h"

#include "policy/storage/claim_rules.h"
#include "policy/storage/volume_match.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace spillway::controllers {

VolumeBinding::VolumeBinding(client::ApiClient& client, const client::Informer<api::Node>& nodes, StorageCache& storage,
                             Duration timeout, Hooks hooks)
    : client_(client), nodes_(nodes), storage_(storage), timeout_(timeout), hooks_(std::move(hooks)) {}

void VolumeBinding::begin(const PodPtr& pod, const std::string& node, storage::ClaimPlan plan, Now now) {
  auto wait = std::make_shared<Wait>();
  wait->pod = pod;
  wait->node = node;
  wait->plan = std::move(plan);
  wait->until = now.mono + timeout_;
  for (const auto& [claim, volume] : wait->plan.bindings) taken_.insert(volume->metadata.name);
  waits_[pod->metadata.uid] = wait;
  std::vector<storage::StorageWrite> writes;
  for (const auto& [claim, volume] : wait->plan.bindings) {
    if (auto write = storage::reserve(*volume, *claim)) writes.push_back(*std::move(write));
  }
  for (const storage::ClaimPtr& claim : wait->plan.provisions) {
    if (auto write = storage::ask_for_volume(*claim, node)) writes.push_back(*std::move(write));
  }
  wait->writes = writes.size();
  for (const storage::StorageWrite& write : writes) {
    client_.patch(path_of(write), client::PatchType::kMerge, write.patch,
                  [this, wait](const Result<api::Json>& outcome, Now then) {
                    on_written(wait, outcome ? Outcome() : Outcome(outcome.error()), then);
                  });
  }
  client_.at(wait->until, [this](Now then) { check_waits(then); });
  if (writes.empty()) {
    hooks_.on_waits();
    ++waiting_;
    check_waits(now);
  }
}

void VolumeBinding::on_written(const WaitPtr& wait, const Outcome& outcome, Now now) {
  if (!outcome && wait->failure.empty()) wait->failure = outcome.error().text();
  if (--wait->writes > 0) return;
  hooks_.on_waits();  // binding the claims may take long; it does not hold up other pods
  const auto known = waits_.find(wait->pod->metadata.uid);
  if (known == waits_.end() || known->second != wait) return;  // the pod was deleted
  ++waiting_;
  if (!wait->failure.empty()) {
    end(wait->pod->metadata.uid);
    return hooks_.on_failed(wait->pod, wait->node, wait->failure, now);
  }
  check_waits(now);
}

void VolumeBinding::end(const std::string& pod_uid) {
  const auto found = waits_.find(pod_uid);
  if (found == waits_.end()) return;
  for (const auto& [claim, volume] : found->second->plan.bindings) taken_.erase(volume->metadata.name);
  if (found->second->writes == 0) --waiting_;
  waits_.erase(found);
}

storage::ClaimPtr VolumeBinding::claim_now(const storage::ClaimPtr& claim) {
  auto current = storage_.claims().find(client::key_of(claim->metadata));
  return current && current->metadata.uid == claim->metadata.uid ? current : nullptr;
}

/// The progress of a claim that was given an existing volume.
VolumeBinding::Progress VolumeBinding::progress_of_binding(
    const std::pair<storage::ClaimPtr, storage::VolumePtr>& binding) {
  const storage::ClaimPtr claim = claim_now(binding.first);
  const bool is_bound =
      claim && storage::is_bind_completed(*claim) && claim->volume_name == binding.second->metadata.name;
  return is_bound ? Progress{} : Progress{.waits = true};
}

/// The progress of a claim whose volume is made for the node. The provisioner removes the node from the claim if it
/// cannot make the volume there; a volume that was made elsewhere may be out of the node's reach.
VolumeBinding::Progress VolumeBinding::progress_of_provision(Wait& wait, const storage::ClaimPtr& given) {
  const storage::ClaimPtr claim = claim_now(given);
  const std::string failed = fmt::format("provisioning failed for PVC \"{}\"", given->metadata.name);
  if (!claim) return {.failure = failed};
  const client::ObjectKey key = client::key_of(claim->metadata);
  if (storage::selected_node(*claim) == wait.node) {
    wait.asked.insert(key);
  } else if (wait.asked.contains(key)) {
    return {.failure = failed};
  }
  if (!storage::is_bind_completed(*claim) || claim->volume_name.empty()) return {.waits = true};
  const auto volume = storage_.volumes().find(claim->volume_name);
  if (!volume) return {.waits = true};
  const auto node = nodes_.cache().find(wait.node);
  if (node && storage_.reaches(*volume, node->metadata)) return {};
  return {.failure = fmt::format("pv \"{}\" node affinity doesn't match node \"{}\"", claim->volume_name, wait.node)};
}

VolumeBinding::Progress VolumeBinding::progress_of(Wait& wait, Now now) {
  if (!nodes_.cache().find(wait.node)) return {.failure = fmt::format("node \"{}\" not found", wait.node)};
  Progress all;
  const auto merge = [&all](Progress one) {
    if (all.failure.empty()) all.failure = std::move(one.failure);
    all.waits = all.waits || one.waits;
  };
  for (const auto& binding : wait.plan.bindings) merge(progress_of_binding(binding));
  for (const storage::ClaimPtr& claim : wait.plan.provisions) merge(progress_of_provision(wait, claim));
  if (all.failure.empty() && all.waits && wait.until <= now.mono)
    all.failure = "binding volumes: context deadline exceeded";
  return all;
}

void VolumeBinding::check_waits(Now now) {
  std::vector<std::pair<WaitPtr, std::string>> ended;  // with the reason of the failure
  for (const auto& [uid, wait] : waits_) {
    Progress progress = progress_of(*wait, now);  // also while writes are open: an answer may be late
    if (wait->writes > 0 || (progress.waits && progress.failure.empty())) continue;
    ended.emplace_back(wait, std::move(progress.failure));
  }
  for (const auto& [wait, failure] : ended) {
    end(wait->pod->metadata.uid);
    if (!failure.empty()) {
      hooks_.on_failed(wait->pod, wait->node, failure, now);
      continue;
    }
    hooks_.on_bound(wait->pod, wait->node, now);
  }
}

}  // namespace spillway::controllers
