#include "policy/network/rule_book.h"

#include "policy/network/nft_text.h"

#include <algorithm>

namespace spillway::network {
namespace {

constexpr Duration kBeforeDeletion = seconds(1);

const Elements& effective(const std::map<std::string, std::map<RuleBook::Owner, Elements>>& targets,
                          const std::string& target) {
  static const Elements none;
  const auto found = targets.find(target);
  return found == targets.end() || found->second.empty() ? none : found->second.begin()->second;
}

}  // namespace

bool RuleChange::empty() const {
  return !whole && new_source_sets.empty() && chains.empty() && emptied_chains.empty() && deleted_source_sets.empty() &&
         deleted_chains.empty() && removed.empty() && added.empty();
}

void RuleBook::put(const Owner& owner, RulePart part) {
  remove(owner.name);
  for (const auto& [target, elements] : part.targets) {
    if (!whole_) touched_targets_.try_emplace(target, effective(targets_, target));
    targets_[target][owner] = elements;
  }
  for (const auto& [name, chain] : part.chains) {
    OwnedChain& slot = chains_[name];
    if (!whole_) touched_chains_.try_emplace(name, slot.owners.empty() ? "" : rules_text(family_, name, slot.chain));
    slot.chain = chain;
    slot.owners.insert(owner.name);
  }
  for (const auto& [name, seconds] : part.source_sets) {
    touched_sets_.insert(name);
    OwnedSet& slot = sets_[name];
    slot.seconds = seconds;
    slot.owners.insert(owner.name);
  }
  parts_.insert_or_assign(owner.name, std::pair(owner, std::move(part)));
}

void RuleBook::remove(const std::string& name) {
  const auto found = parts_.find(name);
  if (found == parts_.end()) return;
  withdraw(found->second.first, found->second.second);
  parts_.erase(found);
}

void RuleBook::withdraw(const Owner& owner, const RulePart& part) {
  for (const auto& [target, elements] : part.targets) {
    if (!whole_) touched_targets_.try_emplace(target, effective(targets_, target));
    const auto claims = targets_.find(target);
    claims->second.erase(owner);
    if (claims->second.empty()) targets_.erase(claims);
  }
  for (const auto& [name, chain] : part.chains) {
    const auto owned = chains_.find(name);
    if (!whole_) touched_chains_.try_emplace(name, rules_text(family_, name, owned->second.chain));
    owned->second.owners.erase(owner.name);
    if (owned->second.owners.empty()) chains_.erase(owned);
  }
  for (const auto& [name, seconds] : part.source_sets) {
    touched_sets_.insert(name);
    const auto owned = sets_.find(name);
    owned->second.owners.erase(owner.name);
    if (owned->second.owners.empty()) sets_.erase(owned);
  }
}

void RuleBook::begin_anew() {
  whole_ = true;
}

RuleChange RuleBook::take(Instant now) {
  if (whole_) return take_whole();
  RuleChange change;
  change.family = family_;
  take_chains(change, now);
  take_targets(change);
  return change;
}

RuleChange RuleBook::take_whole() {
  RuleChange change;
  change.family = family_;
  change.whole = true;
  RulePart everything = all();
  change.chains = std::move(everything.chains);
  change.new_source_sets = std::move(everything.source_sets);
  for (auto& [target, elements] : everything.targets) change.added.merge(elements);
  loaded_sets_.clear();
  for (const auto& [name, set] : sets_) loaded_sets_.insert(name);
  touched_targets_.clear();
  touched_chains_.clear();
  touched_sets_.clear();
  emptied_.clear();
  whole_ = false;
  return change;
}

void RuleBook::take_chains(RuleChange& change, Instant now) {
  for (const auto& [name, since] : emptied_) {
    if (now - since > kBeforeDeletion && !chains_.contains(name)) change.deleted_chains.push_back(name);
  }
  for (const std::string& name : change.deleted_chains) emptied_.erase(name);
  for (const auto& [name, before] : touched_chains_) {
    const auto owned = chains_.find(name);
    if (owned == chains_.end()) {
      if (before.empty()) continue;
      change.emptied_chains.push_back(name);
      emptied_[name] = now;
    } else if (rules_text(family_, name, owned->second.chain) != before) {
      change.chains[name] = owned->second.chain;
      emptied_.erase(name);
    }
  }
  touched_chains_.clear();
  for (const std::string& name : touched_sets_) {
    const auto owned = sets_.find(name);
    if (owned == sets_.end()) {
      if (loaded_sets_.erase(name) > 0) change.deleted_source_sets.push_back(name);
    } else if (loaded_sets_.insert(name).second) {
      change.new_source_sets[name] = owned->second.seconds;
    }
  }
  touched_sets_.clear();
}

void RuleBook::take_targets(RuleChange& change) {
  for (const auto& [target, before] : touched_targets_) {
    const Elements& after = effective(targets_, target);
    std::ranges::set_difference(before, after, std::inserter(change.removed, change.removed.end()));
    std::ranges::set_difference(after, before, std::inserter(change.added, change.added.end()));
  }
  touched_targets_.clear();
}

RulePart RuleBook::all() const {
  RulePart out;
  for (const auto& [name, owned] : chains_) out.chains[name] = owned.chain;
  for (const auto& [name, owned] : sets_) out.source_sets[name] = owned.seconds;
  for (const auto& [target, claims] : targets_) {
    if (!claims.empty()) out.targets[target] = claims.begin()->second;
  }
  return out;
}

}  // namespace spillway::network
