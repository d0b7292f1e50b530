// Admission policies and a request that tests hold against them.
#pragma once

#include "policy/admission_policies/evaluator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::admission_policies {

/// JSON with ' for ".
inline api::Json json(std::string text) {
  for (char& c : text) c = c == '\'' ? '"' : c;
  const auto made = api::parse_json(text);
  EXPECT_TRUE(made) << text;
  return made.value_or(api::Json());
}

/// Objects by "KIND/ns/name".
struct TestParams final : ParamSource {
  std::map<std::string, bool, std::less<>> kinds;  // in namespaces?
  std::map<std::string, std::shared_ptr<api::Json>> objects;

  std::optional<bool> is_namespaced(const ParamKind& kind) const override {
    const auto found = kinds.find(kind.kind);
    return found == kinds.end() ? std::nullopt : std::optional(found->second);
  }

  api::DocumentPtr find(const ParamKind& kind, std::string_view ns, std::string_view name) const override {
    const auto found = objects.find(fmt::format("{}/{}/{}", kind.kind, ns, name));
    return found == objects.end() ? nullptr : found->second;
  }

  Result<std::vector<api::DocumentPtr>> select(const ParamKind& kind, std::string_view ns,
                                               const api::LabelSelector& selector) const override {
    std::vector<api::DocumentPtr> made;
    const std::string prefix = fmt::format("{}/{}/", kind.kind, ns);
    for (const auto& [key, object] : objects) {
      const api::StringMap labels{{"name", key.substr(key.rfind('/') + 1)}};
      if (key.starts_with(prefix) && selector.matches(labels)) made.push_back(object);
    }
    return made;
  }
};

/// The creation of a ConfigMap in "default" that holds a: "1".
struct World : RequestSource {
  ShownRequest request{.object = json("{'metadata':{'name':'m','labels':{'app':'x'}},'data':{'a':'1'}}"),
                       .old_object = {},
                       .facts = json("{'operation':'CREATE','userInfo':{'username':'jane'}}"),
                       .access = {}};
  api::Json ns = json("{'metadata':{'name':'default','labels':{'tier':'gold'}}}");
  TestParams params;
  PolicyList policies;
  std::vector<webhooks::ResourceName> names{{"", "v1", "configmaps"}};
  webhooks::Operation operation = webhooks::Operation::kCreate;
  std::vector<webhooks::ResourceName> asked;  // resources as which the request was shown
  cel::AccessCheck check = [](const cel::AccessRequest&) {
    return cel::AccessDecision{.allowed = false, .reason = ""};
  };

  const ShownRequest& shown(const webhooks::ResourceName& name) override {
    asked.push_back(name);
    return request;
  }

  const api::Json* namespace_object() override { return &ns; }

  /// `spec`: members besides matchConstraints.
  void add(std::string_view name, std::string_view spec,
           std::vector<std::string> bindings = {"'validationActions':['Deny']"},
           std::string_view match =
               "'resourceRules':[{'operations':['*'],'apiGroups':[''],'apiVersions':['v1'],"
               "'resources':['configmaps']}]") {
    BoundPolicy bound;
    bound.policy = std::make_shared<const AdmissionPolicy>(policy_of(json(
        fmt::format("{{'metadata':{{'name':'{}'}},'spec':{{'matchConstraints':{{{}}},{}}}}}", name, match, spec))));
    for (const std::string& members : bindings) {
      bound.bindings.push_back(std::make_shared<const PolicyBinding>(binding_of(json(fmt::format(
          "{{'metadata':{{'name':'b{}'}},'spec':{{'policyName':'{}',{}}}}}", bound.bindings.size(), name, members)))));
    }
    policies.push_back(std::move(bound));
  }

  PolicyResult evaluated() {
    static const api::StringMap kLabels{{"tier", "gold"}};
    const webhooks::Subject subject{
        .operation = operation, .subresource = {}, .ns = "default", .name = "m", .names = names};
    const webhooks::Selectable seen{.object = &request.object, .old = nullptr, .namespace_labels = &kLabels};
    return evaluate_policies(policies,
                             {.subject = subject, .seen = seen, .check = check, .source = *this, .params = params});
  }

  /// The refusal; empty: there is none.
  std::string refusal() {
    const PolicyResult made = evaluated();
    return made.refusal ? made.refusal->message : std::string();
  }

  /// The refusal by a single policy with these members.
  std::string refusal_of(std::string_view spec) {
    policies.clear();
    add("p", spec);
    return refusal();
  }
};

}  // namespace spillway::admission_policies
