#include "api/exchange/account_token.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::api {

namespace {

std::int64_t seconds_of(WallTime time) {
  return std::chrono::floor<seconds>(time.time_since_epoch()).count();
}

Error bad_claim(std::string_view claim, std::string_view expected) {
  return make_error(ErrorCode::kUnauthorized, "token claim \"{}\": expected {}", claim, expected);
}

Result<WallTime> time_claim(const Json& claims, std::string_view name) {
  const Json* value = claims.find(name);
  const std::optional<std::int64_t> number = value == nullptr ? std::nullopt : value->if_int64();
  constexpr std::int64_t kLast = std::int64_t{1} << 40;
  if (!number || *number < 0 || *number > kLast) return bad_claim(name, "seconds since 1970");
  return WallTime(seconds(*number));
}

Json document_of(const ObjectIdentity& object) {
  Json out = Json::object({{"name", object.name}});
  if (!object.uid.empty()) out["uid"] = object.uid;
  return out;
}

Result<std::optional<ObjectIdentity>> object_claim(const Json& bound, std::string_view name) {
  const Json* found = bound.find(name);
  if (found == nullptr) return std::optional<ObjectIdentity>();
  ObjectIdentity object{std::string(found->string_at({"name"})), std::string(found->string_at({"uid"}))};
  if (object.name.empty()) return bad_claim(name, "an object with a name");
  return std::optional(std::move(object));
}

std::string subject_of(const AccountToken& token) {
  return fmt::format("system:serviceaccount:{}:{}", token.ns, token.account.name);
}

}  // namespace

Json to_claims(const AccountToken& token) {
  Json bound = Json::object({{"namespace", token.ns}, {"serviceaccount", document_of(token.account)}});
  if (token.pod) bound["pod"] = document_of(*token.pod);
  if (token.secret) bound["secret"] = document_of(*token.secret);
  if (token.node) bound["node"] = document_of(*token.node);
  return Json::object({{"iss", token.issuer},
                       {"sub", subject_of(token)},
                       {"aud", Json::Array(token.audiences.begin(), token.audiences.end())},
                       {"iat", seconds_of(token.issued)},
                       {"nbf", seconds_of(token.not_before)},
                       {"exp", seconds_of(token.expires)},
                       {"jti", token.id},
                       {"kubernetes.io", std::move(bound)}});
}

Result<AccountToken> parse_claims(const Json& claims) {
  AccountToken token;
  token.issuer = claims.string_at({"iss"});
  token.id = claims.string_at({"jti"});
  SPILLWAY_TRY(issued, time_claim(claims, "iat"));
  SPILLWAY_TRY(not_before, time_claim(claims, "nbf"));
  SPILLWAY_TRY(expires, time_claim(claims, "exp"));
  token.issued = issued;
  token.not_before = not_before;
  token.expires = expires;
  const Json* audiences = claims.find("aud");
  if (audiences != nullptr && audiences->if_string() != nullptr) {
    token.audiences.push_back(*audiences->if_string());
  } else if (audiences != nullptr && audiences->if_array() != nullptr) {
    for (const Json& audience : *audiences->if_array()) token.audiences.emplace_back(audience.string_at({}));
  }
  if (token.audiences.empty()) return bad_claim("aud", "one or more audiences");
  const Json* bound = claims.find("kubernetes.io");
  if (bound == nullptr) return bad_claim("kubernetes.io", "an object");
  token.ns = bound->string_at({"namespace"});
  token.account = {std::string(bound->string_at({"serviceaccount", "name"})),
                   std::string(bound->string_at({"serviceaccount", "uid"}))};
  if (token.ns.empty() || token.account.name.empty() || token.account.uid.empty()) {
    return bad_claim("kubernetes.io", "a namespace, and the account's name and uid");
  }
  if (claims.string_at({"sub"}) != subject_of(token)) return bad_claim("sub", subject_of(token));
  SPILLWAY_TRY(pod, object_claim(*bound, "pod"));
  SPILLWAY_TRY(secret, object_claim(*bound, "secret"));
  SPILLWAY_TRY(node, object_claim(*bound, "node"));
  token.pod = std::move(pod);
  token.secret = std::move(secret);
  token.node = std::move(node);
  return token;
}

UserInfo user_of(std::shared_ptr<const AccountToken> token) {
  UserInfo user{
      subject_of(*token),
      token->account.uid,
      {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", token->ns), "system:authenticated"}};
  const auto add = [&user](const char* what, const std::string& value) {
    if (!value.empty()) user.extra[fmt::format("authentication.kubernetes.io/{}", what)] = {value};
  };
  if (!token->id.empty()) add("credential-id", "JTI=" + token->id);
  if (token->pod) {
    add("pod-name", token->pod->name);
    add("pod-uid", token->pod->uid);
  }
  if (token->node) {
    add("node-name", token->node->name);
    add("node-uid", token->node->uid);
  }
  user.token = std::move(token);
  return user;
}

}  // namespace spillway::api
