#include "policy/outlook/claim_outlook.h"

#include "api/object/pod_volumes.h"
#include "policy/storage/claim_rules.h"
#include "policy/workloads/pod_complaint.h"

#include <algorithm>
#include <string>
#include <utility>

namespace spillway::outlook {

namespace {

using policy::Fact;
using policy::Verdict;

class ClaimOutlook : OutlookMaker {
 public:
  ClaimOutlook(const ClaimScene& scene, WallTime now) : scene_(scene), claim_(scene.claim) {
    out_.at = now;
    out_.subject = {std::string(api::PersistentVolumeClaim::kKind), claim_.metadata.ns, claim_.metadata.name,
                    claim_.metadata.uid};
  }

  Outlook explain() {
    say_state();
    if (scene_.last_message) {
      add(Code::kClaimWarning, {{"message", *scene_.last_message}});
    }
    say_size();
    name_pods();
    return std::move(out_);
  }

 private:
  void say_state() {
    if (claim_.metadata.deletion_timestamp) return add(Verdict::kWaits, Code::kBeingDeleted, {});
    if (claim_.status.phase == "Lost") {
      return add(Verdict::kRefuses, Code::kClaimLost, {{"volume", claim_.volume_name}});
    }
    if (claim_.status.phase == "Bound") {
      return add(Verdict::kRests, Code::kClaimBound, {{"volume", claim_.volume_name}});
    }
    Remark remark = unbound_claim(claim_, scene_.classes);
    add(Verdict::kWaits, remark.code, std::move(remark.facts));
  }

  void say_size() {
    const auto wanted = claim_.requests.find("storage");
    if (wanted == claim_.requests.end()) return;
    std::vector<Fact> facts{{"wanted_bytes", wanted->second.bytes().count()}};
    const auto held = claim_.status.capacity.find("storage");
    if (held != claim_.status.capacity.end()) facts.push_back({"capacity_bytes", held->second.bytes().count()});
    add(Code::kClaimSize, std::move(facts));
  }

  void name_pods() {
    if (!scene_.pods) return add(Code::kNotRead, {{"what", "pods"}});
    Part part{.name = "pods", .rows = {}, .total = 0};
    for (const workloads::PodPtr& pod : *scene_.pods) {
      const std::vector<std::string> claims = api::claims_of(*pod);
      if (std::ranges::find(claims, claim_.metadata.name) == claims.end()) continue;
      ++part.total;
      if (part.rows.size() == kRowsMax) continue;
      Row row{.name = pod->metadata.name, .state = pod->status.phase, .facts = {}};
      if (!pod->spec.node_name.empty()) row.facts.push_back({"node", pod->spec.node_name});
      part.rows.push_back(std::move(row));
    }
    if (part.total == 0) return add(Code::kClaimUnused, {});
    out_.parts.push_back(std::move(part));
  }

  const ClaimScene& scene_;
  const api::PersistentVolumeClaim& claim_;
};

}  // namespace

Remark unbound_claim(const api::PersistentVolumeClaim& claim, const std::optional<std::vector<ClassPtr>>& classes) {
  const std::string name = storage::class_of(claim);
  if (!claim.volume_name.empty()) return {Code::kClaimBinding, {{"volume", claim.volume_name}}};
  if (name.empty()) return {Code::kClaimNoClass, {}};
  const Fact storage_class{"class", name};
  if (!classes) return {Code::kClaimWaits, {storage_class}};
  const auto found = std::ranges::find(*classes, name, [](const ClassPtr& each) { return each->metadata.name; });
  if (found == classes->end()) return {Code::kClaimClassUnknown, {storage_class}};
  const api::StorageClass& made_by = **found;
  const auto& annotations = claim.metadata.annotations;
  const bool is_placed = annotations.contains(std::string(api::kSelectedNode));
  if (made_by.volume_binding_mode == api::kWaitForFirstConsumer && !is_placed) {
    return {Code::kClaimFirstConsumer, {storage_class}};
  }
  if (made_by.provisioner.empty() || made_by.provisioner == api::kNoProvisioner) {
    return {Code::kClaimNoProvisioner, {storage_class}};
  }
  std::vector<Fact> facts{{"provisioner", made_by.provisioner}, storage_class};
  if (is_placed) facts.push_back({"node", annotations.at(std::string(api::kSelectedNode))});
  return {Code::kClaimProvisioning, std::move(facts)};
}

Outlook explain_claim(const ClaimScene& scene, WallTime now) {
  return ClaimOutlook(scene, now).explain();
}

}  // namespace spillway::outlook
