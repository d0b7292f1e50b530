#include "policy/admission_policies/params.h"

namespace spillway::admission_policies {

namespace {

using Params = std::vector<api::DocumentPtr>;

Result<Params> found_params(const ParamKind& kind, const ParamRef& ref, std::string_view ns,
                            const ParamSource& source) {
  if (!ref.name.empty()) {
    api::DocumentPtr found = source.find(kind, ns, ref.name);
    return found == nullptr ? Params{} : Params{std::move(found)};
  }
  if (!ref.selector) return make_error(ErrorCode::kInvalid, "one of name or selector must be provided");
  SPILLWAY_TRY(found, source.select(kind, ns, *ref.selector));
  if (found.size() > kParamsMax) {
    return make_error(ErrorCode::kInvalid, "paramRef.selector selects more than {} objects", kParamsMax);
  }
  return found;
}

}  // namespace

std::optional<Error> kind_problem(const AdmissionPolicy& policy, const ParamSource& source) {
  if (!policy.param_kind || source.is_namespaced(*policy.param_kind)) return std::nullopt;
  return make_error(ErrorCode::kInvalid, "failed to find resource referenced by paramKind: '{}, Kind={}'",
                    policy.param_kind->api_version, policy.param_kind->kind);
}

Result<Params> collect_params(const AdmissionPolicy& policy, const PolicyBinding& binding, std::string_view ns,
                              const ParamSource& source) {
  if (!policy.param_kind || !binding.params) return Params{nullptr};
  const ParamRef& ref = *binding.params;
  std::string_view place;
  if (source.is_namespaced(*policy.param_kind).value_or(false)) {
    place = ref.ns.empty() ? ns : std::string_view(ref.ns);
    if (place.empty()) {
      return make_error(ErrorCode::kInvalid,
                        "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources");
    }
  } else if (!ref.ns.empty()) {
    return make_error(ErrorCode::kInvalid, "paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
  }
  SPILLWAY_TRY(found, found_params(*policy.param_kind, ref, place, source));
  if (found.empty() && ref.needed) {
    return make_error(ErrorCode::kInvalid, "no params found for policy binding with `Deny` parameterNotFoundAction");
  }
  return found;
}

}  // namespace spillway::admission_policies
