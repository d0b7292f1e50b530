#include "apiserver/access/param_access.h"

#include "api/text/identities.h"

#include <fmt/format.h>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kAdmissionGroup = "admissionregistration.k8s.io";

bool is_object(const Json* member) {
  return member != nullptr && member->is_object();
}

bool same(const Json* a, const Json* b) {
  return a != nullptr && b != nullptr && *a == *b;
}

api::Status refusal_at(const ValidWrite& write, std::string_view field, std::string_view why) {
  api::FieldErrors errors;
  errors.forbidden(field, why);
  return api::invalid_status(write.resource.group_kind(), std::string(write.object.string_at({"metadata", "name"})),
                             errors);
}

}  // namespace

StatusResult<void> ParamAccess::confirm(const ValidWrite& write) const {
  if (write.part != SubresourceId::kNone) return {};
  if (in_group(write.user, api::kMastersGroup)) return {};
  if (write.resource.is(kAdmissionGroup, "ValidatingAdmissionPolicy")) return confirm_policy(write);
  if (write.resource.is(kAdmissionGroup, "ValidatingAdmissionPolicyBinding")) return confirm_binding(write);
  return {};
}

/// The request for objects of a kind. One that is not served gets all resources of its group and version.
RequestAttributes ParamAccess::objects_of(const Json& kind) const {
  const std::string_view api_version = kind.string_at({"apiVersion"});
  const std::size_t slash = api_version.find('/');
  RequestAttributes asked{.is_resource = true,
                          .group = std::string(slash == std::string_view::npos ? "" : api_version.substr(0, slash)),
                          .version = std::string(api_version.substr(slash + 1)),
                          .resource = "*"};
  const Resource* row = core_.registry.find_kind(api_version, kind.string_at({"kind"}));
  if (row != nullptr) asked.resource = std::string(row->plural);
  return asked;
}

StatusResult<void> ParamAccess::confirm_policy(const ValidWrite& write) const {
  const Json* kind = write.object.at({"spec", "paramKind"});
  if (!is_object(kind)) return {};
  if (write.old != nullptr && same(kind, write.old->at({"spec", "paramKind"}))) return {};
  RequestAttributes asked = objects_of(*kind);
  asked.verb = "get";
  asked.ns = "*";
  asked.name = "*";
  if (authorizer_.authorize(write.user, asked).allowed) return {};
  return refusal_at(write, "spec.paramKind",
                    fmt::format("user {} must have \"get\" permission on all objects of the referenced paramKind "
                                "(kind={}, apiVersion={})",
                                write.user.name, kind->string_at({"kind"}), kind->string_at({"apiVersion"})));
}

StatusResult<void> ParamAccess::confirm_binding(const ValidWrite& write) const {
  const Json* ref = write.object.at({"spec", "paramRef"});
  if (!is_object(ref)) return {};
  const std::string_view policy_name = write.object.string_at({"spec", "policyName"});
  if (write.old != nullptr && same(ref, write.old->at({"spec", "paramRef"})) &&
      write.old->string_at({"spec", "policyName"}) == policy_name) {
    return {};
  }
  const ObjectPtr policy =
      core_.cache.of(core_.registry.get("validatingadmissionpolicies." + std::string(kAdmissionGroup)))
          .find(policy_name);
  const Json document = policy == nullptr ? Json() : policy->document();
  const Json* kind = document.at({"spec", "paramKind"});
  RequestAttributes asked{.is_resource = true, .group = "*", .version = "*", .resource = "*"};
  if (is_object(kind)) asked = objects_of(*kind);
  asked.name = std::string(ref->string_at({"name"}));
  asked.ns = std::string(ref->string_at({"namespace"}));
  asked.verb = asked.name.empty() ? "list" : "get";
  if (authorizer_.authorize(write.user, asked).allowed) return {};
  if (policy == nullptr) {
    return refusal_at(write, "spec.paramRef",
                      fmt::format("unable to get policy {} to determine minimum required permissions and user {} does "
                                  "not have \"{}\" permission for all groups, versions and resources",
                                  policy_name, write.user.name, asked.verb));
  }
  return refusal_at(write, "spec.paramRef",
                    fmt::format("user {} does not have \"{}\" permission on the object referenced by paramRef",
                                write.user.name, asked.verb));
}

}  // namespace spillway::apiserver
