// Claims that are given a volume when their first pod is placed.
#include "api/object/pod_volumes.h"
#include "controllers/scheduling/scheduler.h"
#include "policy/storage/claim_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

/// A pod that has a node and waits for its claims.
struct Scheduler::ClaimWait {
  PodPtr pod;
  std::string node;
  storage::ClaimPlan plan;
  std::set<client::ObjectKey> asked;  // claims that were seen to ask for a volume on the node
  Instant until;
  std::size_t writes = 0;  // not answered yet
  bool failed = false;
};

void Scheduler::bind_claims(const PodPtr& pod, const std::string& node, storage::ClaimPlan plan, Now now) {
  auto wait = std::make_shared<ClaimWait>();
  wait->pod = pod;
  wait->node = node;
  wait->plan = std::move(plan);
  wait->until = now.mono + options_.claims_timeout;
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
                    on_reserved(wait, outcome ? Outcome() : Outcome(outcome.error()), then);
                  });
  }
  client_.at(wait->until, [this](Now then) { look_at_waits(then); });
  if (writes.empty()) {
    --bindings_;
    look_at_waits(now);
  }
}

void Scheduler::on_reserved(const std::shared_ptr<ClaimWait>& wait, const Outcome& outcome, Now now) {
  if (!outcome && !std::exchange(wait->failed, true)) {
    log_.warning("a claim got no volume",
                 {{"pod", wait->pod->key().text()}, {"node", wait->node}, {"error", outcome.error().text()}});
  }
  if (--wait->writes > 0) return;
  --bindings_;  // whoever binds the claims may take long; others are not held up by it
  const auto known = waits_.find(wait->pod->metadata.uid);
  if (known == waits_.end() || known->second != wait) return;  // the pod is gone
  if (wait->failed) {
    end_wait(wait->pod->metadata.uid);
    return give_up(wait->pod, wait->node, now);
  }
  look_at_waits(now);
}

void Scheduler::end_wait(const std::string& uid) {
  const auto found = waits_.find(uid);
  if (found == waits_.end()) return;
  for (const auto& [claim, volume] : found->second->plan.bindings) taken_.erase(volume->metadata.name);
  waits_.erase(found);
}

storage::ClaimPtr Scheduler::claim_now(const storage::ClaimPtr& claim) {
  auto current = storage_.claims().find(client::key_of(claim->metadata));
  return current && current->metadata.uid == claim->metadata.uid ? current : nullptr;
}

bool Scheduler::has_claims_bound(const ClaimWait& wait) {
  const auto has_volume = [this](const auto& binding) {
    const storage::ClaimPtr claim = claim_now(binding.first);
    return claim && storage::is_bind_completed(*claim) && claim->volume_name == binding.second->metadata.name;
  };
  const auto has_any = [this](const storage::ClaimPtr& each) {
    const storage::ClaimPtr claim = claim_now(each);
    return claim && storage::is_bind_completed(*claim) && !claim->volume_name.empty();
  };
  return std::ranges::all_of(wait.plan.bindings, has_volume) && std::ranges::all_of(wait.plan.provisions, has_any);
}

bool Scheduler::is_given_up(ClaimWait& wait) {
  bool given_up = false;
  for (const storage::ClaimPtr& each : wait.plan.provisions) {
    const storage::ClaimPtr claim = claim_now(each);
    const bool asks = claim && storage::selected_node(*claim) == wait.node;
    if (asks) wait.asked.insert(client::key_of(claim->metadata));
    given_up = given_up || !claim || (!asks && wait.asked.contains(client::key_of(claim->metadata)));
  }
  return given_up;
}

void Scheduler::look_at_waits(Now now) {
  std::vector<std::shared_ptr<ClaimWait>> ended;
  for (const auto& [uid, wait] : waits_) {
    if (wait->writes > 0) continue;
    wait->failed = !has_claims_bound(*wait);
    if (!wait->failed || wait->until <= now.mono || is_given_up(*wait)) ended.push_back(wait);
  }
  for (const std::shared_ptr<ClaimWait>& wait : ended) {
    end_wait(wait->pod->metadata.uid);
    if (wait->failed) {
      give_up(wait->pod, wait->node, now);
      continue;
    }
    ++bindings_;
    bind(wait->pod, wait->node, now);
  }
}

void Scheduler::on_claim(const StorageCache::ClaimPtr& before, const StorageCache::ClaimPtr& after, Now now) {
  const api::PersistentVolumeClaim& claim = after ? *after : *before;
  look_at_waits(now);
  for (const client::ObjectKey& key : claimants_) {
    const PodPtr pod = pods_.cache().find(key);
    if (!pod || pod->metadata.ns != claim.metadata.ns) continue;
    const std::vector<std::string> names = api::claims_of(*pod);
    if (std::ranges::find(names, claim.metadata.name) != names.end()) queue_.wake(key);
  }
}

void Scheduler::try_claimants_again() {
  for (const client::ObjectKey& key : claimants_) queue_.wake(key);
}

}  // namespace spillway::controllers
