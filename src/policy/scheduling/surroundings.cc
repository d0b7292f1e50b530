#include "policy/scheduling/surroundings.h"

#include "api/json/json.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace spillway::scheduling {

namespace {

/// The pod's affinity and anti-affinity terms as text; empty: it has none.
std::string terms_text(const api::Pod& pod) {
  std::string text;
  for (const std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
    const api::Json* terms = pod.spec.affinity.find(kind);
    if (terms != nullptr && terms->is_object()) text += std::string(kind) + api::to_text(*terms);
  }
  return text;
}

bool selects(const api::StringMap& selector, const api::StringMap& labels) {
  return std::ranges::all_of(selector, [&](const auto& wanted) {
    const auto found = labels.find(wanted.first);
    return found != labels.end() && found->second == wanted.second;
  });
}

}  // namespace

void SlotCounts::add(Slot slot) {
  const auto here = std::ranges::lower_bound(here_, slot, {}, &Here::slot);
  if (here != here_.end() && here->slot == slot) {
    ++here->pods;
  } else {
    here_.insert(here, {slot, 1});
  }
}

void SlotCounts::erase(Slot slot) {
  const auto here = std::ranges::lower_bound(here_, slot, {}, &Here::slot);
  if (here != here_.end() && here->slot == slot) here_.erase(here);
}

void Surroundings::add(const std::string& node, const api::Pod& pod) {
  const Slot slot = slot_of(node);
  const std::string terms = terms_text(pod);
  const bool terminating = pod.metadata.deletion_timestamp.has_value();
  const auto key = std::tie(pod.metadata.ns, pod.metadata.labels, terms, terminating);
  auto sort = sorts_.find(key);
  if (sort == sorts_.end()) {
    sort = sorts_.emplace(key, PodSort{pod.metadata.ns, pod.metadata.labels, pod_terms_of(pod), terminating, {}}).first;
    if (!sort->second.terms.empty()) asking_.insert(sort);
  }
  sort->second.count.add(slot);
  if (on_node_.size() <= slot) on_node_.resize(slot + 1);
  std::vector<Sorts::iterator>& here = on_node_[slot];
  if (std::ranges::find(here, sort) == here.end()) here.push_back(sort);
}

void Surroundings::clear(const std::string& node) {
  const auto slot = slots_.find(node);
  if (slot == slots_.end() || slot->second >= on_node_.size()) return;
  for (const Sorts::iterator sort : on_node_[slot->second]) {
    sort->second.count.erase(slot->second);
    if (!sort->second.count.empty()) continue;
    asking_.erase(sort);
    sorts_.erase(sort);
  }
  on_node_[slot->second].clear();
}

void Surroundings::forget(const std::string& node) {
  clear(node);
  const auto slot = slots_.find(node);
  if (slot == slots_.end()) return;
  free_slots_.push_back(slot->second);
  slots_.erase(slot);
}

Slot Surroundings::slot_of(const std::string& node) {
  const auto [slot, fresh] = slots_.try_emplace(node);
  if (!fresh) return slot->second;
  if (free_slots_.empty()) {
    slot->second = static_cast<Slot>(slots_.size() - 1);
  } else {
    slot->second = free_slots_.back();
    free_slots_.pop_back();
  }
  return slot->second;
}

std::optional<Slot> Surroundings::find_slot(const std::string& node) const {
  const auto slot = slots_.find(node);
  return slot == slots_.end() ? std::nullopt : std::optional(slot->second);
}

void Surroundings::set_namespace(const std::string& name, std::optional<api::StringMap> labels) {
  if (labels) {
    namespaces_[name] = *std::move(labels);
  } else {
    namespaces_.erase(name);
  }
}

void Surroundings::set_service(const std::string& ns, const std::string& name, api::StringMap selector) {
  if (!selector.empty()) {
    services_[ns][name] = std::move(selector);
    return;
  }
  const auto known = services_.find(ns);
  if (known == services_.end()) return;
  known->second.erase(name);
  if (known->second.empty()) services_.erase(known);
}

void Surroundings::set_owner(const api::KindId& kind, const std::string& ns, const std::string& name,
                             std::optional<api::LabelSelector> selector) {
  OwnerKey key(kind.group, kind.kind, ns, name);
  if (selector) {
    owners_[std::move(key)] = *std::move(selector);
  } else {
    owners_.erase(key);
  }
}

std::string Surroundings::nominate(const std::string& node, const std::shared_ptr<const api::Pod>& pod) {
  std::string before;
  for (auto each = promised_.begin(); each != promised_.end();) {
    if (each->second.erase(pod->metadata.uid) != 0) before = each->first;
    each = each->second.empty() ? promised_.erase(each) : std::next(each);
  }
  if (!node.empty()) promised_[node][pod->metadata.uid] = pod;
  return before;
}

const api::StringMap* Surroundings::labels_of(const std::string& ns) const {
  const auto known = namespaces_.find(ns);
  return known == namespaces_.end() ? nullptr : &known->second;
}

std::optional<api::LabelSelector> Surroundings::selector_for(const api::Pod& pod) const {
  api::LabelSelector all;
  if (const auto services = services_.find(pod.metadata.ns); services != services_.end()) {
    api::StringMap wanted;  // selectors that select the same pod do not contradict each other
    for (const auto& [name, selector] : services->second) {
      if (selects(selector, pod.metadata.labels)) wanted.insert(selector.begin(), selector.end());
    }
    for (const auto& [key, value] : wanted) all.add({key, api::LabelRequirement::Op::kEquals, {value}});
  }
  if (const api::OwnerReference* owner = api::controller_of(pod.metadata); owner != nullptr) {
    const api::KindId kind = api::kind_of(*owner);
    const auto known = owners_.find(OwnerKey(kind.group, kind.kind, pod.metadata.ns, owner->name));
    if (known != owners_.end()) {
      for (const api::LabelRequirement& requirement : known->second.requirements) all.add(requirement);
    }
  }
  return all.requirements.empty() ? std::nullopt : std::optional(std::move(all));
}

std::vector<const api::Pod*> Surroundings::promised(const std::string& node, const api::Pod& to) const {
  std::vector<const api::Pod*> pods;
  const auto here = promised_.find(node);
  if (here == promised_.end()) return pods;
  for (const auto& [uid, pod] : here->second) {
    if (uid != to.metadata.uid && api::priority_of(*pod) >= api::priority_of(to)) pods.push_back(pod.get());
  }
  return pods;
}

std::vector<std::shared_ptr<const api::Pod>> Surroundings::promised_below(const std::string& node,
                                                                          const api::Pod& than) const {
  std::vector<std::shared_ptr<const api::Pod>> pods;
  const auto here = promised_.find(node);
  if (here == promised_.end()) return pods;
  for (const auto& [uid, pod] : here->second) {
    if (api::priority_of(*pod) < api::priority_of(than)) pods.push_back(pod);
  }
  return pods;
}

void Surroundings::each_with_terms(const std::function<void(const PodSort&)>& visit) const {
  for (const Sorts::const_iterator sort : asking_) visit(sort->second);
}

void Surroundings::each(const std::function<void(const PodSort&)>& visit) const {
  for (const auto& [key, sort] : sorts_) visit(sort);
}

void Surroundings::each_in(const std::string& ns, const std::function<void(const PodSort&)>& visit) const {
  for (auto sort = sorts_.lower_bound(SortKey(ns, {}, {}, false)); sort != sorts_.end() && sort->second.ns == ns;
       ++sort) {
    visit(sort->second);
  }
}

}  // namespace spillway::scheduling
