#include "agent/serving/request_gate.h"

#include "api/json/json.h"
#include "api/json/json_values.h"
#include "api/text/identities.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::agent {

namespace {

using api::Json;

constexpr int kForbidden = 403;
const RequestGate::Verdict kUnauthorized{401, "Unauthorized"};

api::UserInfo user_of_review(const Json& review) {
  const Json* found = review.at({"status", "user"});
  if (found == nullptr) return {};
  api::UserInfo user{std::string(found->string_at({"username"})), std::string(found->string_at({"uid"})),
                     api::strings_at(*found, {"groups"})};
  if (const Json* extra = found->find("extra"); extra != nullptr && extra->if_object() != nullptr) {
    for (const auto& [key, values] : *extra->if_object()) user.extra[key] = api::strings_at(*extra, {key});
  }
  return user;
}

Json strings(const std::vector<std::string>& values) {
  return Json::Array(values.begin(), values.end());
}

Json access_review(const api::UserInfo& user, const NodeAccess& access, const std::string& node) {
  Json spec = Json::object({{"user", user.name}, {"groups", strings(user.groups)}});
  if (access.path.empty()) {
    spec["resourceAttributes"] = Json::object({{"verb", access.verb},
                                               {"version", "v1"},
                                               {"resource", "nodes"},
                                               {"subresource", access.subresource},
                                               {"name", node}});
  } else {
    spec["nonResourceAttributes"] = Json::object({{"verb", access.verb}, {"path", access.path}});
  }
  if (!user.uid.empty()) spec["uid"] = user.uid;
  for (const auto& [key, values] : user.extra) spec["extra"][key] = strings(values);
  return Json::object({{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}, {"spec", spec}});
}

/// Every part of the question, unambiguously.
std::string key_of(const api::UserInfo& user, const NodeAccess& access) {
  Json extra = Json::object();
  for (const auto& [key, values] : user.extra) extra[key] = strings(values);
  return api::to_text(
      Json::array({user.name, user.uid, strings(user.groups), extra, access.verb, access.subresource, access.path}));
}

std::string describe(const api::UserInfo& user, const NodeAccess& access) {
  if (!access.path.empty()) return fmt::format("(user={}, verb={}, path={})", user.name, access.verb, access.path);
  return fmt::format("(user={}, verb={}, resource=nodes, subresource(s)=[{}{}{}])", user.name, access.verb,
                     access.subresource, access.fallback.empty() ? "" : " ", access.fallback);
}

bool is_true(const Json& review, std::string_view member) {
  const Json* value = review.at({"status", member});
  return value != nullptr && value->if_bool().value_or(false);
}

}  // namespace

RequestGate::RequestGate(Options options, Rng rng)
    : options_(std::move(options)),
      api_("spillway-agent", rng),
      users_(options_.remembered_max),
      rights_(options_.remembered_max) {}

void RequestGate::ask(const Caller& caller, const NodeAccess& access, Done done, Now now) {
  const bool has_token = !caller.token.empty() && options_.settings.token_reviews == TokenReviews::kOn;
  std::optional<api::UserInfo> user = caller.certified;
  if (!user && !has_token) {
    if (options_.settings.strangers == Strangers::kRefused) return done(kUnauthorized);
    user = api::UserInfo{std::string(api::kAnonymousUser), {}, {std::string(api::kUnauthenticatedGroup)}};
  }
  if (waiting_ >= options_.waiting_max) return done({429, "too many requests wait for the API server's decision"});
  ++waiting_;
  KnowsRight on_verdict = [this, done = std::move(done)](const Verdict& verdict, Now) {
    --waiting_;
    done(verdict);
  };
  if (user) {
    authorize_either(*user, access, std::move(on_verdict), now);
  } else {
    identify(
        caller.token,
        [this, access, on_verdict = std::move(on_verdict)](const Bearer& bearer, Now then) {
          bearer ? authorize_either(*bearer, access, on_verdict, then) : on_verdict(kUnauthorized, then);
        },
        now);
  }
  api_.on_wakeup(now);  // the deadline of the request just sent counts from this instant
}

void RequestGate::identify(const std::string& token, KnowsBearer next, Now now) {
  if (token.size() > kTokenBytesMax) return next(std::nullopt, now);
  if (const Bearer* known = users_.find(token, now.mono)) {
    const Bearer bearer = *known;
    return next(bearer, now);
  }
  std::vector<KnowsBearer>& waiting = reviewing_[token];
  waiting.push_back(std::move(next));
  if (waiting.size() > 1) return;
  const Json review = Json::object({{"apiVersion", "authentication.k8s.io/v1"},
                                    {"kind", "TokenReview"},
                                    {"spec", Json::object({{"token", token}})}});
  api_.create("/apis/authentication.k8s.io/v1/tokenreviews", review,
              [this, token](const Result<Json>& answer, Now then) { on_reviewed(token, answer, then); });
}

/// A review that failed, or reports an evaluation error, is not cached.
void RequestGate::on_reviewed(const std::string& token, const Result<Json>& review, Now now) {
  Bearer bearer;
  if (review && is_true(*review, "authenticated")) bearer = user_of_review(*review);
  if (review && review->string_at({"status", "error"}).empty()) {
    users_.put(token, bearer, now.mono + options_.settings.token_life);
  }
  auto waiting = reviewing_.extract(token);
  if (waiting.empty()) return;
  for (const KnowsBearer& next : waiting.mapped()) next(bearer, now);
}

/// A right to the first subresource, or else to the one that will do as well.
void RequestGate::authorize_either(const api::UserInfo& user, const NodeAccess& access, KnowsRight next, Now now) {
  NodeAccess first = access;
  NodeAccess second = access;
  second.subresource = std::exchange(first.fallback, {});
  second.fallback.clear();
  if (second.subresource.empty()) return authorize(user, first, std::move(next), now);
  authorize(
      user, first,
      [this, user, access, second, next = std::move(next)](const Verdict& verdict, Now then) {
        if (verdict.code != kForbidden) return next(verdict, then);
        authorize(
            user, second,
            [user, access, next](const Verdict& other, Now at) {
              const bool denied = other.code == kForbidden;
              next(denied ? Verdict{kForbidden, fmt::format("Forbidden {}", describe(user, access))} : other, at);
            },
            then);
        api_.on_wakeup(then);
      },
      now);
}

void RequestGate::authorize(const api::UserInfo& user, const NodeAccess& access, KnowsRight next, Now now) {
  if (options_.settings.rights == Rights::kGranted) return next({}, now);
  const std::string key = key_of(user, access);
  if (const Verdict* known = rights_.find(key, now.mono)) {
    const Verdict verdict = *known;
    return next(verdict, now);
  }
  std::vector<KnowsRight>& waiting = authorizing_[key];
  waiting.push_back(std::move(next));
  if (waiting.size() > 1) return;
  api_.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", access_review(user, access, options_.node_name),
              [this, key, user, access](const Result<Json>& answer, Now then) {
                on_access_review(key, user, access, answer, then);
              });
}

void RequestGate::on_access_review(const std::string& key, const api::UserInfo& user, const NodeAccess& access,
                                   const Result<Json>& review, Now now) {
  Verdict verdict;
  if (!review) {
    verdict = {500, fmt::format("Authorization error {}", describe(user, access))};
  } else if (is_true(*review, "allowed")) {
    rights_.put(key, verdict, now.mono + options_.settings.allowed_life);
  } else {
    verdict = {kForbidden, fmt::format("Forbidden {}", describe(user, access))};
    rights_.put(key, verdict, now.mono + options_.settings.denied_life);
  }
  auto waiting = authorizing_.extract(key);
  if (waiting.empty()) return;
  for (const KnowsRight& next : waiting.mapped()) next(verdict, now);
}

}  // namespace spillway::agent
