#include "agent/contract/decision_log.h"

#include "policy/decision_json.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
DecisionLog::DecisionLog(Journal* journal, std::span<const JournalEntry> history, Consequence consequence)
    : journal_(journal), consequence_(consequence) {
  const std::size_t known = std::min(history.size(), kKeptMax);
  for (const JournalEntry& entry : history.last(known)) keep(entry.decision);
}

void DecisionLog::keep(policy::Decision decision) {
  kept_.push_back(std::move(decision));
  if (kept_.size() > kKeptMax) kept_.pop_front();
}

void DecisionLog::record(JournalEntry entry) {
  if (!acts() && std::exchange(entry.eviction, std::nullopt)) {
    entry.decision.verdict = policy::Verdict::kWaits;
    entry.decision.reasons.push_back({policy::ReasonCode::kShadow, {}});
  }
  if (journal_ != nullptr) journal_->append(entry);
  keep(std::move(entry.decision));
}

void DecisionLog::add_aftermath(Aftermath aftermath) {
  const auto of = std::find_if(kept_.rbegin(), kept_.rend(),
                               [&](const policy::Decision& decision) { return decision.subject.uid == aftermath.uid; });
  if (of != kept_.rend()) of->cost.insert(of->cost.end(), aftermath.facts.begin(), aftermath.facts.end());
  if (journal_ != nullptr) journal_->append(std::move(aftermath));
}

api::Json decision_list(const std::string& node, const std::optional<policy::Decision>& current,
                        const std::deque<policy::Decision>& decisions) {
  api::Json items = api::Json::array();
  for (const policy::Decision& decision : decisions) items.if_array()->push_back(policy::to_json(decision));
  api::Json document = api::Json::object(
      {{"kind", "DecisionList"}, {"apiVersion", "spillway/v1"}, {"node", node}, {"items", std::move(items)}});
  if (current) document["now"] = policy::to_json(*current);
  return document;
}

}  // namespace spillway::agent
