#include "apiserver/access/tokens.h"

#include "api/object/kind_id.h"
#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/request/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::int64_t kSecondsDefault = 3600;
constexpr std::int64_t kSecondsMin = 600;
constexpr std::int64_t kSecondsMax = std::int64_t{1} << 32;

api::ObjectIdentity identity_of(const StoredObject& object) {
  return {object.name, object.meta.uid};
}

// Kinds that a token may be bound to.
constexpr api::KindId kPod{"", "Pod"};
constexpr api::KindId kSecret{"", "Secret"};
constexpr api::KindId kNode{"", "Node"};

}  // namespace

StatusResult<void> TokenPath::bind(const StoredObject& account, const Json& request, api::AccountToken& token) const {
  token.ns = account.ns;
  token.account = identity_of(account);
  const Json* bound = request.at({"spec", "boundObjectRef"});
  if (bound == nullptr || bound->is_null()) return {};
  const api::KindId kind = api::kind_id(bound->string_at({"apiVersion"}), bound->string_at({"kind"}));
  const std::string_view name = bound->string_at({"name"});
  if (kind != kPod && kind != kSecret && kind != kNode) {
    return make_error(ErrorCode::kBadRequest, "cannot bind token for serviceaccount \"{}\" to object of kind \"{}\"",
                      account.name, kind.kind);
  }
  const Resource& resource = *core_.registry.find_group_kind(kind.group, kind.kind);
  const ObjectPtr object = core_.cache.of(resource).find(object_key(resource.namespaced() ? account.ns : "", name));
  if (!object) return api::not_found_status(resource.group_resource(), name);
  if (const std::string_view uid = bound->string_at({"uid"}); !uid.empty() && uid != object->meta.uid) {
    return api::conflict_status(
        {std::string(resource.group), std::string(kind.kind)}, name,
        "the UID in the bound object reference (" + std::string(uid) + ") does not match the UID in record");
  }
  if (kind == kPod && object->document().string_at({"spec", "serviceAccountName"}) != account.name) {
    return make_error(ErrorCode::kBadRequest,
                      "cannot bind token for serviceaccount \"{}\" to pod {} of another account", account.name, name);
  }
  if (kind == kNode) {
    token.node = identity_of(*object);
  } else if (kind == kSecret) {
    token.secret = identity_of(*object);
  } else {
    token.pod = identity_of(*object);
    if (const std::string host(object->meta.fields.front()); !host.empty()) {
      const ObjectPtr node = core_.cache.of(core_.registry.get("nodes")).find(host);
      token.node = node ? identity_of(*node) : api::ObjectIdentity{host, {}};
    }
  }
  return {};
}

void TokenPath::create(const ExchangePtr& exchange) {
  const Route& route = exchange->route;
  const auto options = parse_write_options(exchange->target, "CreateOptions");
  if (!options) return exchange->fail(options.error());
  auto body = read_object(exchange->request(), *api::find_kind("authentication.k8s.io/v1", "TokenRequest"),
                          options->field_validation, exchange->warnings);
  if (!body) return exchange->fail(body.error());
  Json request = *std::move(body);
  const ObjectPtr account = core_.cache.of(*route.resource).find(object_key(route.ns, route.name));
  if (!account) return exchange->fail(api::not_found_status(route.resource->group_resource(), route.name));
  if (const std::string_view uid = request.string_at({"metadata", "uid"}); !uid.empty() && uid != account->meta.uid) {
    return exchange->fail(api::conflict_status(
        {"authentication.k8s.io", "TokenRequest"}, route.name,
        fmt::format("the UID in the token request ({}) does not match the UID of the service account ({})", uid,
                    account->meta.uid)));
  }
  const auto admitted = restriction_.check_token(exchange->user(), route.ns, route.name, request);
  if (!admitted) return exchange->fail(admitted.error());

  const Json* wanted = request.at({"spec", "expirationSeconds"});
  std::int64_t life = wanted == nullptr ? kSecondsDefault : wanted->if_int64().value_or(kSecondsDefault);
  api::FieldErrors errors;
  if (life < kSecondsMin)
    errors.invalid("spec.expirationSeconds", life, "may not specify a duration less than 10 minutes");
  if (life > kSecondsMax)
    errors.invalid("spec.expirationSeconds", life, "may not specify a duration larger than 2^32 seconds");
  if (!errors.empty()) {
    return exchange->fail(api::invalid_status({"authentication.k8s.io", "TokenRequest"}, "", errors));
  }
  if (const auto longest = life_max_ ? std::chrono::floor<std::chrono::seconds>(*life_max_).count() : life;
      life > longest) {
    exchange->warnings.push_back(
        fmt::format("requested expiration of {} seconds shortened to {} seconds", life, longest));
    life = longest;
  }
  api::AccountToken token;
  if (const auto bound = bind(*account, request, token); !bound) return exchange->fail(bound.error());
  if (signer_ == nullptr) {
    return exchange->fail(make_error(ErrorCode::kServiceUnavailable, "this server has no key to sign tokens with"));
  }
  const WallTime now = std::chrono::floor<seconds>(core_.now.wall);
  token.issuer = signer_->issuer();
  token.id = new_uid(core_.rng);
  token.issued = now;
  token.not_before = now;
  token.expires = now + seconds(life);
  if (const Json* given = request.at({"spec", "audiences"}); given != nullptr && given->if_array() != nullptr) {
    for (const Json& audience : *given->if_array()) token.audiences.emplace_back(audience.string_at({}));
  }
  if (token.audiences.empty()) token.audiences.push_back(signer_->issuer());
  Result<std::string> text = signer_->sign(api::to_claims(token));
  if (!text) return exchange->fail(text.error());
  request["metadata"]["name"] = route.name;
  request["metadata"]["namespace"] = route.ns;
  request["metadata"]["uid"] = account->meta.uid;
  request["metadata"]["creationTimestamp"] = api::format_time(now);
  request["spec"]["expirationSeconds"] = life;
  request["spec"]["audiences"] = Json::Array(token.audiences.begin(), token.audiences.end());
  request["status"] =
      Json::object({{"token", *std::move(text)}, {"expirationTimestamp", api::format_time(token.expires)}});
  exchange->answer(201, request);
}

}  // namespace spillway::apiserver
