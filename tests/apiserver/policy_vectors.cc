// Admission policies and match conditions of webhooks over requests: cel/policies.
#include "api/schema/schema.h"
#include "apiserver/kinds/admissionregistration/policy_rules.h"
#include "apiserver/kinds/admissionregistration/webhook_rules.h"
#include "policy/admission_policies/admission_policy.h"
#include "policy/admission_policies/kind_types.h"
#include "policy/admission_policies/policy_evaluation.h"
#include "policy/admission_policies/type_check.h"
#include "policy/webhooks/match_conditions.h"
#include "policy/webhooks/review_request.h"
#include "support/field_errors.h"
#include "support/vectors.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using admission_policies::AdmissionPolicy;
using admission_policies::Evaluation;
using admission_policies::Fault;
using admission_policies::Finding;
using api::Json;

struct Served {
  webhooks::ResourceName resource;
  std::string_view kind;
};

constexpr std::array kServed{Served{{"", "v1", "configmaps"}, "ConfigMap"}, Served{{"", "v1", "pods"}, "Pod"},
                             Served{{"apps", "v1", "deployments"}, "Deployment"}};

const Json& member_of(const Json& object, std::string_view key) {
  static const Json kNull;
  const Json* found = object.find(key);
  return found == nullptr ? kNull : *found;
}

std::vector<std::string> words_at(const Json& object, std::string_view key) {
  std::vector<std::string> words;
  if (const Json::Array* list = member_of(object, key).if_array()) {
    for (const Json& word : *list) {
      if (const std::string* text = word.if_string()) words.push_back(*text);
    }
  }
  return words;
}

/// A request of a row, as expressions see it.
class Request {
 public:
  explicit Request(const Json& row) : object_(member_of(row, "object")), old_(member_of(row, "oldObject")) {
    const Json& user = member_of(row, "userInfo");
    user_ = {.name = std::string(user.string_at({"username"})),
             .uid = std::string(user.string_at({"uid"})),
             .groups = words_at(user, "groups")};
    if (const auto* extra = member_of(user, "extra").if_object()) {
      for (const auto& [key, values] : *extra) user_.extra[std::string(key)] = words_at(member_of(user, "extra"), key);
    }
    allowed_ = words_at(row, "allowed");
    served_ = served_as(row.string_at({"resource"}));
    const Json& named = object_.is_null() ? old_ : object_;
    const webhooks::KindName kind{served_.resource.group, served_.resource.version, served_.kind};
    const std::string_view operation = row.string_at({"operation"});
    static const Json kOptions = Json::object({{"apiVersion", "meta.k8s.io/v1"}, {"kind", "CreateOptions"}});
    const webhooks::ReviewRequest review{.uid = {},
                                         .operation = operation == "CREATE"   ? webhooks::Operation::kCreate
                                                      : operation == "UPDATE" ? webhooks::Operation::kUpdate
                                                                              : webhooks::Operation::kDelete,
                                         .kind = kind,
                                         .resource = served_.resource,
                                         .asked_kind = kind,
                                         .asked_resource = served_.resource,
                                         .name = named.string_at({"metadata", "name"}),
                                         .ns = named.string_at({"metadata", "namespace"}),
                                         .user = user_,
                                         .dry_run = member_of(row, "dryRun").if_bool().value_or(false),
                                         .options = kOptions};
    facts_ = webhooks::review_facts(review);
    ns_ = review.ns;
    name_ = review.name;
    if (const Json* params = row.find("params")) params_ = *params;
    if (const Json* found = row.find("namespaceObject")) namespace_ = *found;
  }

  // The activation points into this object.
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  cel::Activation seen() const {
    return {.object = object_,
            .old_object = old_,
            .request = facts_,
            .access = {.group = std::string(served_.resource.group),
                       .resource = std::string(served_.resource.resource),
                       .ns = ns_,
                       .name = name_},
            .check = &check_,
            .params = params_ ? &*params_ : nullptr,
            .namespace_object = namespace_ ? &*namespace_ : nullptr};
  }

 private:
  static Served served_as(std::string_view plural) {
    for (const Served& one : kServed) {
      if (one.resource.resource == plural) return one;
    }
    return {};
  }

  bool is_allowed(const cel::AccessRequest& asked) const {
    const std::string user =
        asked.account ? fmt::format("system:serviceaccount:{}:{}", asked.account->ns, asked.account->name) : user_.name;
    const std::string wanted =
        fmt::format("{} {} {}", user, asked.verb, asked.path.empty() ? asked.resource : asked.path);
    return std::ranges::find(allowed_, wanted) != allowed_.end();
  }

  Json object_;
  Json old_;
  api::UserInfo user_;
  Served served_;
  std::vector<std::string> allowed_;
  Json facts_;
  std::string ns_;
  std::string name_;
  std::optional<Json> params_;
  std::optional<Json> namespace_;
  cel::AccessCheck check_ = [this](const cel::AccessRequest& asked) {
    return cel::AccessDecision{.allowed = is_allowed(asked)};
  };
};

Json decision_of(const Finding& finding, bool fails_open) {
  if (finding.fault != Fault::kNone) {
    return Json::object(
        {{"action", fails_open ? "admit" : "deny"}, {"evaluation", "error"}, {"message", finding.message}});
  }
  return Json::object({{"action", "deny"},
                       {"evaluation", "deny"},
                       {"message", finding.message},
                       {"reason", finding.reason.empty() ? std::string("Invalid") : finding.reason}});
}

/// One decision for each validation; one alone if a match condition or the budget failed.
Json decisions_of(const AdmissionPolicy& policy, const Evaluation& evaluation) {
  Json::Array list;
  if (evaluation.excluded) return list;
  const bool alone = evaluation.condition_errors > 0 ||
                     (!evaluation.findings.empty() && evaluation.findings.front().fault == Fault::kBudget);
  if (alone) {
    for (const Finding& finding : evaluation.findings) list.push_back(decision_of(finding, policy.fails_open));
    return list;
  }
  for (std::size_t i = 0; i < policy.validations.size(); ++i) {
    const auto found = std::ranges::find(evaluation.findings, i, &Finding::index);
    list.push_back(found == evaluation.findings.end() ? Json::object({{"action", "admit"}, {"evaluation", "admit"}})
                                                      : decision_of(*found, policy.fails_open));
  }
  return list;
}

Json annotations_of(const AdmissionPolicy& policy, const Evaluation& evaluation) {
  Json::Array list;
  if (evaluation.excluded) return list;
  for (std::size_t i = 0; i < policy.annotations.size(); ++i) {
    const std::string& key = policy.annotations[i].key;
    const auto fault = std::ranges::find(evaluation.annotation_faults, i, &Finding::index);
    const auto published = std::ranges::find(evaluation.annotations, key, &admission_policies::AnnotationValue::key);
    if (fault != evaluation.annotation_faults.end()) {
      list.push_back(Json::object({{"action", "error"}, {"key", key}, {"error", fault->message}}));
    } else if (published != evaluation.annotations.end()) {
      list.push_back(Json::object({{"action", "publish"}, {"key", key}, {"value", published->value}}));
    } else {
      list.push_back(Json::object({{"action", "exclude"}, {"key", key}}));
    }
  }
  return list;
}

Json warnings_of(const Json& policy, const AdmissionPolicy& compiled) {
  const auto named = admission_policies::kinds_to_check(
      compiled.match.rules, [](const webhooks::ResourceName& name) -> std::optional<admission_policies::NamedKind> {
        for (const Served& one : kServed) {
          if (one.resource != name) continue;
          return admission_policies::NamedKind{std::string(name.group), std::string(name.version),
                                               std::string(one.kind)};
        }
        return std::nullopt;
      });
  const auto type_of = [](std::string_view api_version, std::string_view kind) {
    return admission_policies::object_type(*api::find_kind(api_version, kind), std::string(kind));
  };
  std::vector<admission_policies::CheckedKind> kinds;
  for (const auto& kind : named) {
    const std::string api_version = kind.group.empty() ? kind.version : kind.group + "/" + kind.version;
    kinds.push_back({kind, type_of(api_version, kind.kind)});
  }
  std::optional<cel::Type> params;
  if (compiled.param_kind) params = type_of(compiled.param_kind->api_version, compiled.param_kind->kind);
  const auto warnings = admission_policies::type_warnings(policy, kinds, params);
  const Json status = admission_policies::type_checking_status(warnings);
  return warnings.empty() ? Json::array() : *status.find("expressionWarnings");
}

std::optional<support::Mismatch> check_policy(const Json& in, const Json& want) {
  Json policy = Json::object({{"apiVersion", "admissionregistration.k8s.io/v1"},
                              {"kind", "ValidatingAdmissionPolicy"},
                              {"metadata", Json::object({{"name", "sample-policy"}})},
                              {"spec", member_of(in, "spec")}});
  kinds::default_policy(policy);
  api::FieldErrors errors;
  kinds::validate_policy(policy, errors);
  if (auto mismatch = support::compare_errors(member_of(want, "definition_errors"), errors)) return mismatch;
  if (want.find("requests") == nullptr) return std::nullopt;
  const AdmissionPolicy compiled = admission_policies::policy_of(policy);
  if (auto mismatch = support::compare(member_of(want, "warnings"), warnings_of(policy, compiled))) return mismatch;
  Json::Array answers;
  for (const Json& row : *member_of(in, "requests").if_array()) {
    const Request request(row);
    std::uint64_t left = std::numeric_limits<std::uint64_t>::max();
    const Evaluation evaluation = admission_policies::evaluate(compiled, request.seen(), left);
    answers.push_back(Json::object({{"auditAnnotations", annotations_of(compiled, evaluation)},
                                    {"decisions", decisions_of(compiled, evaluation)}}));
  }
  return support::compare(member_of(want, "requests"), Json(std::move(answers)));
}

Json match_of(const webhooks::MatchOutcome& outcome, const std::vector<webhooks::MatchCondition>& conditions,
              const Request& request, bool fails_open) {
  Json answer = Json::object({{"matches", outcome.matches}});
  if (outcome.matches) return answer;
  if (outcome.why) {
    // A webhook that fails open is not called, and the error is not reported.
    if (!fails_open) answer["error"] = outcome.why->text();
    return answer;
  }
  // The first condition that is false, as the row names it.
  for (const webhooks::MatchCondition& condition : conditions) {
    cel::Budget budget(webhooks::kMatchBudget);
    const Result<bool> value = condition.expression->evaluate(request.seen(), budget);
    if (!value || *value) continue;
    answer["failedCondition"] = condition.name;
    break;
  }
  return answer;
}

std::optional<support::Mismatch> check_webhook(const Json& in, const Json& want) {
  Json webhook = Json::object({{"name", "hook.vectors.example.com"},
                               {"clientConfig", Json::object({{"url", "https://hook.example.com"}})},
                               {"rules", Json::array()},
                               {"sideEffects", "None"},
                               {"admissionReviewVersions", Json::Array{Json("v1")}},
                               {"failurePolicy", member_of(in, "failurePolicy")},
                               {"matchConditions", member_of(in, "matchConditions")}});
  Json configuration = Json::object({{"apiVersion", "admissionregistration.k8s.io/v1"},
                                     {"kind", "ValidatingWebhookConfiguration"},
                                     {"metadata", Json::object({{"name", "sample"}})},
                                     {"webhooks", Json::Array{webhook}}});
  kinds::default_webhooks(configuration);
  api::FieldErrors errors;
  kinds::validate_webhooks(configuration, errors);
  if (auto mismatch = support::compare_errors(member_of(want, "definition_errors"), errors)) return mismatch;
  if (want.find("requests") == nullptr) return std::nullopt;
  const webhooks::MatchConditions conditions = webhooks::match_conditions_of(webhook);
  Json::Array answers;
  for (const Json& row : *member_of(in, "requests").if_array()) {
    const Request request(row);
    answers.push_back(match_of(webhooks::evaluate(*conditions, request.seen()), *conditions, request,
                               member_of(in, "failurePolicy") == Json("Ignore")));
  }

  return support::compare(member_of(want, "requests"), Json(std::move(answers)));
}

std::optional<support::Mismatch> check(const Json& row) {
  const bool is_policy = row.string_at({"op"}) == "vap";
  return (is_policy ? check_policy : check_webhook)(member_of(row, "in"), member_of(row, "want"));
}

const bool kPolicies = support::add_vector_check("cel/policies", check);

}  // namespace

}  // namespace spillway::apiserver
