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
  for (const auto& [key, object] : stored_policies_.objects()) {
    policies_[object->name] =
        std::make_shared<const AdmissionPolicy>(admission_policies::policy_of(object->document()));
  }
  for (const auto& [key, object] : stored_bindings_.objects()) {
    bindings_[object->name] = std::make_shared<const PolicyBinding>(admission_policies::binding_of(object->document()));
  }
  join();
}

void PolicyTable::on_event(const ResourceCache& cache, const EventPtr& event) {
  const bool is_policy = &cache == &stored_policies_;
  if (!is_policy && &cache != &stored_bindings_) return;
  if (!event->object) {
    if (!event->previous) return;
    is_policy ? policies_.erase(event->previous->name) : bindings_.erase(event->previous->name);
  } else if (is_policy) {
    return compile_in_slices(core_, cache, event->object, admission_policies::policy_of,
                             [this, name = event->object->name](AdmissionPolicy policy) {
                               policies_[name] = std::make_shared<const AdmissionPolicy>(std::move(policy));
                               join();
                             });
  } else {
    bindings_[event->object->name] =
        std::make_shared<const PolicyBinding>(admission_policies::binding_of(event->object->document()));
  }
  join();
}

void PolicyTable::join() {
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
