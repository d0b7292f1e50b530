#include "policy/webhooks/match.h"

#include <algorithm>
#include <array>

namespace spillway::webhooks {

namespace {

using api::Json;

constexpr std::string_view kAll = "*";

bool lists(const std::vector<std::string>& list, std::string_view word) {
  return std::ranges::any_of(list, [&](const std::string& one) { return one == kAll || one == word; });
}

/// "pods" is the object itself, "pods/*" is it and everything below it.
bool names_resource(std::string_view written, std::string_view resource, std::string_view subresource) {
  const std::size_t slash = written.find('/');
  const std::string_view name = written.substr(0, slash);
  const std::string_view part = slash == std::string_view::npos ? std::string_view() : written.substr(slash + 1);
  return (name == kAll || name == resource) && (part == kAll || part == subresource);
}

bool fits_scope(Scope scope, const Subject& subject) {
  if (scope == Scope::kAny) return true;
  const bool of_cluster = subject.is_namespace() || subject.ns.empty();
  return (scope == Scope::kCluster) == of_cluster;
}

api::StringMap labels_of(const Json& object) {
  api::StringMap labels;
  const Json* found = object.at({"metadata", "labels"});
  if (found == nullptr || found->if_object() == nullptr) return labels;
  for (const auto& [key, value] : *found->if_object()) labels.emplace(key, value.string_at({}));
  return labels;
}

bool selects_object(const api::LabelSelector& selector, const Json* object) {
  return object != nullptr && object->is_object() && object->find("metadata") != nullptr &&
         selector.matches(labels_of(*object));
}

}  // namespace

std::string_view to_string(Operation operation) {
  static constexpr std::array<std::string_view, 4> kNames{"CREATE", "UPDATE", "DELETE", "CONNECT"};
  return kNames[static_cast<std::size_t>(operation)];
}

bool fits(const Rule& rule, const Subject& subject, const ResourceName& name) {
  return lists(rule.operations, to_string(subject.operation)) && lists(rule.groups, name.group) &&
         lists(rule.versions, name.version) && fits_scope(rule.scope, subject) &&
         (rule.names.empty() || std::ranges::find(rule.names, subject.name) != rule.names.end()) &&
         std::ranges::any_of(rule.resources, [&](const std::string& written) {
           return names_resource(written, name.resource, subject.subresource);
         });
}

const ResourceName* matched_name(std::span<const Rule> rules, bool equivalent, const Subject& subject) {
  const auto names = equivalent ? subject.names : subject.names.first(1);
  const auto found = std::ranges::find_if(names, [&](const ResourceName& name) {
    return std::ranges::any_of(rules, [&](const Rule& rule) { return fits(rule, subject, name); });
  });
  return found == names.end() ? nullptr : &*found;
}

const ResourceName* matched_name(const Webhook& webhook, const Subject& subject) {
  return matched_name(webhook.rules, webhook.equivalent, subject);
}

bool is_exempt(const ResourceName& name) {
  static constexpr std::array<std::string_view, 4> kExempt{
      "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
      "validatingwebhookconfigurations"};
  return name.group == "admissionregistration.k8s.io" && std::ranges::binary_search(kExempt, name.resource);
}

bool selects(const api::LabelSelector& namespaces, const api::LabelSelector& objects, const Selectable& seen) {
  if (!namespaces.is_everything() && seen.namespace_labels != nullptr && !namespaces.matches(*seen.namespace_labels)) {
    return false;
  }
  return objects.is_everything() || selects_object(objects, seen.object) || selects_object(objects, seen.old);
}

bool selects(const Webhook& webhook, const Selectable& seen) {
  return selects(webhook.namespaces, webhook.objects, seen);
}

}  // namespace spillway::webhooks
