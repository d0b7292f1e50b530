#include "policy/scheduling/surroundings.h"

#include "api/json/json.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace spillway::scheduling {

namespace {

/// What a pod asks of other pods, as text; empty: nothing.
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

Surroundings::SortKey Surroundings::key_of(const api::Pod& pod) {
  return {pod.metadata.ns, pod.metadata.labels, terms_text(pod), pod.metadata.deletion_timestamp.has_value()};
}

void Surroundings::add(const std::string& node, const api::Pod& pod) {
  const Slot slot = slot_of(node);
  SortKey key = key_of(pod);
  const auto [sort, fresh] = sorts_.try_emplace(key);
  if (fresh) {
    sort->second.ns = pod.metadata.ns;
    sort->second.labels = pod.metadata.labels;
    sort->second.terms = pod_terms_of(pod);
    sort->second.leaving = pod.metadata.deletion_timestamp.has_value();
    if (!sort->second.terms.empty()) asking_.insert(key);
  }
  ++sort->second.count[slot];
  ++on_node_[slot][std::move(key)];
}

void Surroundings::clear(const std::string& node) {
  const auto slot = slots_.find(node);
  if (slot == slots_.end()) return;
  const auto here = on_node_.find(slot->second);
  if (here == on_node_.end()) return;
  for (const auto& [key, count] : here->second) {
    const auto sort = sorts_.find(key);
    sort->second.count.erase(slot->second);
    if (!sort->second.count.empty()) continue;
    asking_.erase(key);
    sorts_.erase(sort);
  }
  on_node_.erase(here);
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

void Surroundings::set_owner(const std::string& kind, const std::string& ns, const std::string& name,
                             std::optional<api::LabelSelector> selector) {
  if (selector) {
    owners_[{kind, ns, name}] = *std::move(selector);
  } else {
    owners_.erase({kind, ns, name});
  }
}

void Surroundings::nominate(const std::string& node, const std::shared_ptr<const api::Pod>& pod) {
  for (auto each = promised_.begin(); each != promised_.end();) {
    each->second.erase(pod->metadata.uid);
    each = each->second.empty() ? promised_.erase(each) : std::next(each);
  }
  if (!node.empty()) promised_[node][pod->metadata.uid] = pod;
}

const api::StringMap* Surroundings::labels_of(const std::string& ns) const {
  const auto known = namespaces_.find(ns);
  return known == namespaces_.end() ? nullptr : &known->second;
}

std::optional<api::LabelSelector> Surroundings::selector_for(const api::Pod& pod) const {
  api::LabelSelector all;
  if (const auto services = services_.find(pod.metadata.ns); services != services_.end()) {
    api::StringMap wanted;  // those that select one pod do not contradict each other
    for (const auto& [name, selector] : services->second) {
      if (selects(selector, pod.metadata.labels)) wanted.insert(selector.begin(), selector.end());
    }
    for (const auto& [key, value] : wanted) all.add({key, api::LabelRequirement::Op::kEquals, {value}});
  }
  if (const api::OwnerReference* owner = api::controller_of(pod.metadata); owner != nullptr) {
    const auto known = owners_.find({owner->kind, pod.metadata.ns, owner->name});
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
  for (const SortKey& key : asking_) visit(sorts_.at(key));
}

void Surroundings::each(const std::function<void(const PodSort&)>& visit) const {
  for (const auto& [key, sort] : sorts_) visit(sort);
}

void Surroundings::each_in(const std::string& ns, const std::function<void(const PodSort&)>& visit) const {
  for (auto sort = sorts_.lower_bound({ns, {}, {}, false}); sort != sorts_.end() && sort->second.ns == ns; ++sort) {
    visit(sort->second);
  }
}

}  // namespace spillway::scheduling
