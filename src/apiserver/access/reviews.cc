#include "apiserver/access/reviews.h"

#include "apiserver/access/node_authorizer.h"
#include "apiserver/request/body.h"

#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kAuthenticationGroup = "authentication.k8s.io";
constexpr std::string_view kAuthorizationGroup = "authorization.k8s.io";

/// Words of the rules that a SelfSubjectRulesReview shows, as many as two of the largest roles have: its text takes a
/// few milliseconds.
constexpr std::size_t kShownWordsMax = 20'000;

Json user_document(const api::UserInfo& user) {
  Json out = Json::object({{"username", user.name}});
  if (!user.uid.empty()) out["uid"] = user.uid;
  if (!user.groups.empty()) out["groups"] = Json::Array(user.groups.begin(), user.groups.end());
  for (const auto& [key, values] : user.extra) out["extra"][key] = Json::Array(values.begin(), values.end());
  return out;
}

RequestAttributes attributes_of(const Json& spec) {
  RequestAttributes asked;
  if (const Json* resource = spec.find("resourceAttributes")) {
    asked.is_resource = true;
    asked.verb = resource->string_at({"verb"});
    asked.group = resource->string_at({"group"});
    asked.version = resource->string_at({"version"});
    asked.resource = resource->string_at({"resource"});
    asked.subresource = resource->string_at({"subresource"});
    asked.ns = resource->string_at({"namespace"});
    asked.name = resource->string_at({"name"});
  } else if (const Json* path = spec.find("nonResourceAttributes")) {
    asked.verb = path->string_at({"verb"});
    asked.path = path->string_at({"path"});
  }
  return asked;
}

}  // namespace

void Reviews::create(const ExchangePtr& exchange) {
  const Resource& resource = *exchange->route.resource;
  const auto options = parse_write_options(exchange->target, "CreateOptions");
  if (!options) return exchange->fail(options.error());
  auto body = read_object(exchange->request(), type_of(resource), options->field_validation, exchange->warnings);
  if (!body) return exchange->fail(body.error());
  Json review = *std::move(body);
  if (resource.is(kAuthenticationGroup, "SelfSubjectReview")) {
    review["status"] = Json::object({{"userInfo", user_document(exchange->user())}});
  } else if (resource.is(kAuthorizationGroup, "SelfSubjectRulesReview")) {
    rules(*exchange, review);
  } else if (resource.is(kAuthenticationGroup, "TokenReview")) {
    if (const auto reviewed = token(review); !reviewed) return exchange->fail(reviewed.error());
  } else if (const auto answered = access(*exchange, review); !answered) {
    return exchange->fail(answered.error());
  }
  exchange->answer(201, review);
}

StatusResult<void> Reviews::access(const Exchange& exchange, Json& review) const {
  const Resource& resource = *exchange.route.resource;
  const Json none = Json::object();
  const Json* given = review.find("spec");
  const Json& spec = given == nullptr ? none : *given;
  api::FieldErrors errors;
  const bool for_resource = spec.find("resourceAttributes") != nullptr;
  if (for_resource == (spec.find("nonResourceAttributes") != nullptr)) {
    errors.invalid("spec.resourceAttributes", Json(),
                   "exactly one of nonResourceAttributes or resourceAttributes must be specified");
  }
  api::UserInfo user = exchange.user();
  if (!resource.is(kAuthorizationGroup, "SelfSubjectAccessReview")) {
    user = {std::string(spec.string_at({"user"})), std::string(spec.string_at({"uid"})), {}};
    if (const Json* groups = spec.find("groups"); groups != nullptr && groups->if_array() != nullptr) {
      for (const Json& group : *groups->if_array()) user.groups.emplace_back(group.string_at({}));
    }
    if (user.name.empty() && user.groups.empty()) {
      errors.invalid("spec.user", "", "at least one of user or group must be specified");
    }
  }
  if (!exchange.route.ns.empty() && spec.string_at({"resourceAttributes", "namespace"}) != exchange.route.ns) {
    errors.invalid("spec.resourceAttributes.namespace", spec.string_at({"resourceAttributes", "namespace"}),
                   "must match metadata.namespace");
  }
  if (!errors.empty()) return api::invalid_status(resource.group_kind(), "", errors);
  const Verdict verdict = authorizer_.authorize(user, attributes_of(spec));
  Json status = Json::object({{"allowed", verdict.allowed}});
  if (!verdict.reason.empty()) status["reason"] = verdict.reason;
  review["status"] = std::move(status);
  return {};
}

/// A bad service account token is an error of the review; an unknown token is only not authenticated.
StatusResult<void> Reviews::token(Json& review) const {
  const std::string_view text = review.string_at({"spec", "token"});
  if (text.empty()) return make_error(ErrorCode::kBadRequest, "token is required for TokenReview in authentication");
  std::vector<std::string> audiences;
  if (const Json* given = review.at({"spec", "audiences"}); given != nullptr && given->if_array() != nullptr) {
    for (const Json& audience : *given->if_array()) audiences.emplace_back(audience.string_at({}));
  }
  Json status = Json::object({{"user", Json::object()}});
  if (authenticator_ != nullptr) {
    const auto identity = authenticator_->identify_token(text, audiences, core_.now.wall);
    Outcome checked = identity ? Outcome() : Outcome(identity.error());
    if (identity && *identity && (*identity)->user.token) checked = bound_.check(*(*identity)->user.token);
    if (!checked) {
      status["error"] = checked.error().message;
    } else if (*identity) {
      status = Json::object({{"authenticated", true}, {"user", user_document((*identity)->user)}});
      status["audiences"] = Json::Array((*identity)->audiences.begin(), (*identity)->audiences.end());
    }
  }
  review["status"] = std::move(status);
  return {};
}

void Reviews::rules(const Exchange& exchange, Json& review) const {
  Json::Array resource_rules;
  Json::Array path_rules;
  std::size_t words = 0;
  for (const RuleListPtr& list : roles_.rules_of(exchange.user(), review.string_at({"spec", "namespace"}))) {
    for (const PolicyRule& rule : list->rules()) {
      words += 1 + rule.words();
      if (words > kShownWordsMax) break;
      (rule.non_resource_urls.empty() ? resource_rules : path_rules).push_back(to_json(rule));
    }
  }
  // The permissions of a node depend on its pods, not on rules that could be listed.
  const bool incomplete = node_identity(exchange.user()).has_value() || words > kShownWordsMax;
  review["status"] = Json::object({{"resourceRules", std::move(resource_rules)},
                                   {"nonResourceRules", std::move(path_rules)},
                                   {"incomplete", incomplete}});
  if (words > kShownWordsMax) {
    review["status"]["evaluationError"] =
        fmt::format("there are too many rules: only the first {} words are shown", kShownWordsMax);
  }
}

}  // namespace spillway::apiserver
