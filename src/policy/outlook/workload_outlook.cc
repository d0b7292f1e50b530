#include "policy/outlook/workload_outlook.h"

#include "api/object/pod_volumes.h"
#include "policy/outlook/pod_outlook.h"
#include "policy/workloads/pod_complaint.h"

#include <algorithm>
#include <string>
#include <utility>

namespace spillway::outlook {

namespace {

using policy::Fact;
using policy::Verdict;
using workloads::PodPtr;

class WorkloadOutlook : OutlookMaker {
 public:
  WorkloadOutlook(const WorkloadScene& scene, WallTime now) : scene_(scene), now_(now) {
    out_.at = now;
    out_.subject = {std::string(scene.kind), scene.metadata.ns, scene.metadata.name, scene.metadata.uid};
  }

  Outlook explain() {
    take_stock();
    say_state();
    say_first_hindrance();
    if (scene_.refused && has_ < scene_.wanted) {
      std::vector<Fact> facts{{"message", scene_.refused->message}};
      add_instant(facts, "last", scene_.refused->at, now_);
      add(Code::kJobPodsRefused, std::move(facts));
    }
    if (!scene_.pods) add(Code::kNotRead, {{"what", "pods"}});
    name_pods();
    return std::move(out_);
  }

 private:
  void take_stock() {
    if (!scene_.pods) return;
    for (const PodPtr& pod : *scene_.pods) {
      if (api::is_terminal(*pod)) continue;
      ++has_;
      workloads::is_ready(*pod) ? static_cast<void>(++ready_) : waiting_.push_back(pod);
    }
  }

  void say_state() {
    const Fact wanted{"wanted", scene_.wanted};
    if (scene_.metadata.deletion_timestamp) return add(Verdict::kWaits, Code::kBeingDeleted, {});
    if (scene_.wanted == 0) {
      return add(Verdict::kRests, scene_.kind == "DaemonSet" ? Code::kWorkloadNoNode : Code::kWorkloadZero, {});
    }
    if (!scene_.pods) return add(Verdict::kWaits, Code::kWorkloadWants, {wanted});
    if (ready_ >= scene_.wanted && waiting_.empty()) return add(Verdict::kRests, Code::kWorkloadReady, {wanted});
    std::vector<Fact> facts{{"ready", ready_}, wanted};
    if (!waiting_.empty()) {
      const api::Pod& first = *waiting_.front();
      facts.push_back({"pod", first.metadata.name});
      const auto* claim = unbound_claim_of(first, scene_.claims, scene_.classes);
      if (claim != nullptr) {
        facts.push_back({"claim", claim->metadata.name});
      } else {
        facts.push_back({"why", workloads::why_not_ready(first)});
      }
    } else if (has_ < scene_.wanted) {
      facts.push_back({"missing", scene_.wanted - has_});
    }
    add(Verdict::kWaits, Code::kWorkloadWaits, std::move(facts));
  }

  /// The problem of the first pod that is not ready, in its own words.
  void say_first_hindrance() {
    if (waiting_.empty()) return;
    const api::Pod& first = *waiting_.front();
    if (const auto* claim = unbound_claim_of(first, scene_.claims, scene_.classes)) {
      Remark remark = unbound_claim(*claim, scene_.classes);
      remark.facts.insert(remark.facts.begin(), {"claim", claim->metadata.name});
      add(remark.code, std::move(remark.facts));
    } else if (const auto trouble = explain_containers(first, now_)) {
      Remark remark = trouble->remarks.front();
      remark.facts.insert(remark.facts.begin(), {"of_pod", first.metadata.name});
      add(remark.code, std::move(remark.facts));
    }
    const bool is_held_up = scene_.order == PodOrder::kOneByOne && has_ < scene_.wanted;
    if (is_held_up) add(Code::kWorkloadOneByOne, {{"pod", first.metadata.name}});
  }

  void name_pods() {
    if (waiting_.empty()) return;
    Part part{.name = "pods", .rows = {}, .total = static_cast<std::int64_t>(waiting_.size())};
    for (const PodPtr& pod : waiting_) {
      if (part.rows.size() == kRowsMax) break;
      Row row{.name = pod->metadata.name, .state = "not ready", .facts = {}};
      if (!pod->spec.node_name.empty()) row.facts.push_back({"node", pod->spec.node_name});
      row.facts.push_back({"why", workloads::why_not_ready(*pod)});
      part.rows.push_back(std::move(row));
    }
    out_.parts.push_back(std::move(part));
  }

  const WorkloadScene& scene_;
  WallTime now_;
  std::int64_t has_ = 0;  // pods that have not ended
  std::int64_t ready_ = 0;
  std::vector<PodPtr> waiting_;  // not ready
};

}  // namespace

const api::PersistentVolumeClaim* unbound_claim_of(const api::Pod& pod, const std::vector<ClaimPtr>& claims,
                                                   const std::optional<std::vector<ClassPtr>>& classes) {
  if (!pod.spec.node_name.empty()) return nullptr;
  for (const std::string& name : api::claims_of(pod)) {
    const auto found = std::ranges::find_if(claims, [&](const ClaimPtr& each) {
      return each->metadata.ns == pod.metadata.ns && each->metadata.name == name && each->status.phase != "Bound";
    });
    if (found == claims.end() || unbound_claim(**found, classes).code == Code::kClaimFirstConsumer) continue;
    return found->get();
  }
  return nullptr;
}

std::optional<Outlook> explain_claim_of(const api::Pod& pod, const std::vector<ClaimPtr>& claims,
                                        const std::optional<std::vector<ClassPtr>>& classes, WallTime now) {
  const auto* claim = unbound_claim_of(pod, claims, classes);
  if (claim == nullptr) return std::nullopt;
  Outlook outlook;
  outlook.at = now;
  outlook.subject = {std::string(api::Pod::kKind), pod.metadata.ns, pod.metadata.name, pod.metadata.uid};
  outlook.verdict = Verdict::kWaits;
  const Fact name{"claim", claim->metadata.name};
  outlook.remarks.push_back({Code::kPodClaim, {name}});
  Remark remark = unbound_claim(*claim, classes);
  remark.facts.insert(remark.facts.begin(), name);
  outlook.remarks.push_back(std::move(remark));
  return outlook;
}

Outlook explain_workload(const WorkloadScene& scene, WallTime now) {
  return WorkloadOutlook(scene, now).explain();
}

}  // namespace spillway::outlook
