#include "policy/admission_policies/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace spillway::admission_policies {

namespace {

using api::Json;

constexpr std::string_view kInvalid = "Invalid";
constexpr std::size_t kSaidMax = 256;  // warnings, failures for the audit log, notes of one key: each

class Evaluator {
 public:
  explicit Evaluator(const EvaluatedRequest& request) : request_(request) {}

  void apply(const BoundPolicy& bound) {
    const AdmissionPolicy& policy = *bound.policy;
    if (!webhooks::selects(policy.match.namespaces, policy.match.objects, request_.seen)) return;
    const webhooks::ResourceName* name = matched_name(policy.match, request_.subject);
    if (name == nullptr) return;
    if (const std::optional<Error> why = kind_problem(policy, request_.params)) {
      return misconfigured(policy, nullptr, *why);
    }
    annotations_.clear();
    for (const auto& binding : bound.bindings) {
      if (binding->match && !matches_binding(*binding->match, request_.subject, request_.seen)) continue;
      const auto params = collect_params(policy, *binding, ns(), request_.params);
      if (!params) {
        misconfigured(policy, binding.get(), params.error());
        continue;
      }
      const ShownRequest& shown = request_.source.shown(*name);
      if (shown.fault) {
        misconfigured(policy, binding.get(), *shown.fault);
        continue;
      }
      for (const api::DocumentPtr& one : *params) take(policy, *binding, evaluated(policy, shown, one.get()));
    }
    for (const auto& [key, values] : annotations_) {
      made_.annotations.emplace_back(fmt::format("{}/{}", policy.name, key),
                                     fmt::format("{}", fmt::join(values, ", ")));
    }
  }

  PolicyResult made() && { return std::move(made_); }

 private:
  /// The namespace in which parameters are looked up; a Namespace counts as inside itself.
  std::string_view ns() const { return request_.subject.ns; }

  Evaluation evaluated(const AdmissionPolicy& policy, const ShownRequest& shown, const Json* params) {
    return evaluate(policy,
                    {.object = shown.object,
                     .old_object = shown.old_object,
                     .request = shown.facts,
                     .access = shown.access,
                     .check = &request_.check,
                     .params = params,
                     .namespace_object = request_.source.namespace_object()},
                    left_);
  }

  /// A misconfigured policy has neither actions nor reasons: failurePolicy alone decides if the request is refused.
  void misconfigured(const AdmissionPolicy& policy, const PolicyBinding* binding, const Error& why) {
    if (policy.fails_open) return;
    refuse(policy, binding,
           {.message = fmt::format("failed to configure {}: {}", binding == nullptr ? "policy" : "binding", why.text()),
            .fault = Fault::kOther});
  }

  void take(const AdmissionPolicy& policy, const PolicyBinding& binding, const Evaluation& evaluation) {
    if (evaluation.condition_errors > 0 || evaluation.excluded) {
      made_.conditions.push_back({policy.name, evaluation.condition_errors, evaluation.excluded});
    }
    for (const Finding& finding : evaluation.findings) take(policy, binding, finding);
    for (const AnnotationValue& annotation : evaluation.annotations) {
      std::vector<std::string>& values = annotations_[annotation.key];
      if (values.size() < kSaidMax && std::ranges::find(values, annotation.value) == values.end()) {
        values.push_back(annotation.value);
      }
    }
    for (const Finding& fault : evaluation.annotation_faults) {
      if (policy.fails_open) continue;
      refuse(policy, &binding, fault);
      count(policy, binding, Outcome::kDeny, fault);
    }
  }

  void take(const AdmissionPolicy& policy, const PolicyBinding& binding, const Finding& finding) {
    if (finding.fault != Fault::kNone && policy.fails_open) return count(policy, binding, Outcome::kAllow, finding);
    for (const Action action : binding.actions) {
      switch (action) {
        case Action::kDeny:
          refuse(policy, &binding, finding);
          count(policy, binding, Outcome::kDeny, finding);
          break;
        case Action::kWarn:
          warn(policy, binding, finding);
          count(policy, binding, Outcome::kWarn, finding);
          break;
        case Action::kAudit:
          audit(policy, binding, finding);
          count(policy, binding, Outcome::kAudit, finding);
          break;
      }
    }
  }

  void refuse(const AdmissionPolicy& policy, const PolicyBinding* binding, const Finding& finding) {
    if (made_.refusal) return;
    const std::string bound = binding == nullptr ? std::string() : fmt::format(" with binding '{}'", binding->name);
    made_.refusal = Refusal{.message = fmt::format("ValidatingAdmissionPolicy '{}'{} denied request: {}", policy.name,
                                                   bound, finding.message),
                            .reason = finding.reason.empty() ? std::string(kInvalid) : finding.reason};
  }

  void warn(const AdmissionPolicy& policy, const PolicyBinding& binding, const Finding& finding) {
    if (made_.warnings.size() >= kSaidMax) return;
    made_.warnings.push_back(fmt::format("Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                                         policy.name, binding.name, finding.message));
  }

  void audit(const AdmissionPolicy& policy, const PolicyBinding& binding, const Finding& finding) {
    if (made_.audited.size() >= kSaidMax) return;
    Json::Array actions;
    for (const Action action : binding.actions) actions.emplace_back(to_string(action));
    made_.audited.push_back(Json::object({{"message", finding.message},
                                          {"policy", policy.name},
                                          {"binding", binding.name},
                                          {"expressionIndex", static_cast<std::int64_t>(finding.index)},
                                          {"validationActions", std::move(actions)}}));
  }

  void count(const AdmissionPolicy& policy, const PolicyBinding& binding, Outcome outcome, const Finding& finding) {
    made_.checks.push_back({policy.name, binding.name, outcome, finding.fault});
  }

  const EvaluatedRequest& request_;
  std::uint64_t left_ = kRequestBudget;
  std::map<std::string, std::vector<std::string>> annotations_;  // audit annotations of one policy, by key
  PolicyResult made_;
};

}  // namespace

std::string_view to_string(Outcome outcome) {
  static constexpr std::array<std::string_view, 4> kNames{"allow", "deny", "warn", "audit"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::string_view to_string(Fault fault) {
  static constexpr std::array<std::string_view, 4> kNames{"no_error", "compile_error", "out_of_budget",
                                                          "internal_error"};
  return kNames[static_cast<std::size_t>(fault)];
}

PolicyResult evaluate_policies(const PolicyList& policies, const EvaluatedRequest& request) {
  Evaluator evaluator(request);
  for (const BoundPolicy& bound : policies) evaluator.apply(bound);
  return std::move(evaluator).made();
}

int http_code(std::string_view reason) {
  if (reason == "Forbidden") return 403;
  if (reason == "Unauthorized") return 401;
  if (reason == "RequestEntityTooLarge") return 413;
  return 422;
}

}  // namespace spillway::admission_policies
