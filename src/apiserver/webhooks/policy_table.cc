#include "apiserver/webhooks/policy_table.h"

#include "apiserver/webhooks/compile_in_slices.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

using admission_policies::AdmissionPolicy;
using admission_policies::BoundPolicy;
using admission_policies::PolicyBinding;
using admission_policies::PolicyList;

PolicyTable::PolicyTable(Core& core)
    : core_(core),
      stored_policies_(core.cache.of(core.registry.get("validatingadmissionpolicies.admissionregistration.k8s.io"))),
      stored_bindings_(
          core.cache.of(core.registry.get("validatingadmissionpolicybindings.admissionregistration.k8s.io"))) {}

bool PolicyTable::asks(const webhooks::Subject& subject) const {
  return std::ranges::any_of(*list_, [&](const BoundPolicy& bound) {
    std::vector<webhooks::Rule> rules = bound.policy->match.rules;
    for (webhooks::Rule& rule : rules) rule.names.clear();
    return webhooks::matched_name(rules, bound.policy->match.equivalent, subject) != nullptr;
  });
}

void PolicyTable::load() {
  policies_.clear();
  bindings_.clear();
  is_loading_ = true;
  for (const auto& [key, object] : stored_policies_.objects()) compile(*object);
  for (const auto& [key, object] : stored_bindings_.objects()) {
    compile_in_slices(core_, stored_bindings_, key, admission_policies::binding_of,
                      [this, name = object->name](PolicyBinding binding) {
                        bindings_[name] = std::make_shared<const PolicyBinding>(std::move(binding));
                      });
  }
  core_.compilations->when_done([this] {
    is_loading_ = false;
    join();
  });
}

void PolicyTable::compile(const StoredObject& policy) {
  compile_in_slices(core_, stored_policies_, policy.key, admission_policies::policy_of,
                    [this, name = policy.name](AdmissionPolicy compiled) {
                      policies_[name] = std::make_shared<const AdmissionPolicy>(std::move(compiled));
                      join();
                    });
}

void PolicyTable::on_event(const ResourceCache& cache, const EventPtr& event) {
  const bool is_policy = &cache == &stored_policies_;
  if (!is_policy && &cache != &stored_bindings_) return;
  if (!event->object) {
    if (!event->previous) return;
    is_policy ? policies_.erase(event->previous->name) : bindings_.erase(event->previous->name);
  } else if (is_policy) {
    return compile(*event->object);
  } else {
    bindings_[event->object->name] =
        std::make_shared<const PolicyBinding>(admission_policies::binding_of(event->object->document()));
  }
  join();
}

void PolicyTable::join() {
  if (is_loading_) return;
  auto list = std::make_shared<PolicyList>();
  std::map<std::string, std::vector<std::shared_ptr<const PolicyBinding>>> bound;
  for (const auto& [name, binding] : bindings_) bound[binding->policy].push_back(binding);
  for (const auto& [name, policy] : policies_) {
    const auto found = bound.find(name);
    if (found != bound.end()) list->push_back({policy, std::move(found->second)});
  }
  list_ = std::move(list);
  ++version_;
}

}  // namespace spillway::apiserver
