#include "apiserver/collect/account_secrets.h"

#include "api/exchange/account_token.h"
#include "api/object/meta.h"
#include "api/text/base64.h"
#include "apiserver/collect/bootstrap.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kAccountTokenType = "kubernetes.io/service-account-token";
constexpr std::string_view kAccountName = "kubernetes.io/service-account.name";
constexpr std::string_view kAccountUid = "kubernetes.io/service-account.uid";
constexpr Duration kAccountSecretRetry = seconds(1);

std::string_view annotation_of(const Json& secret, std::string_view key) {
  return secret.string_at({"metadata", "annotations", key});
}

void set_unless_there(Json& data, std::string_view key, const std::string& bytes) {
  if (data.string_at({key}).empty()) data[key] = api::encode_base64(bytes);
}

}  // namespace

AccountSecrets::AccountSecrets(Core& core, Writer& writer, const TokenSigner* signer, std::string pem)
    : core_(core),
      writer_(writer),
      signer_(signer),
      pem_(std::move(pem)),
      secrets_(core.cache.of(core.registry.get("secrets"))),
      accounts_(core.cache.of(core.registry.get("serviceaccounts"))) {}

bool AccountSecrets::is_account_secret(const StoredObject& object) const {
  return object.meta.fields.contains(kAccountTokenType);
}

void AccountSecrets::load() {
  account_of_.clear();
  secrets_of_.clear();
  dirty_.clear();
  if (signer_ == nullptr) return;
  for (const auto& [key, secret] : secrets_.objects()) {
    if (is_account_secret(*secret)) add(*secret);
  }
}

void AccountSecrets::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (signer_ == nullptr) return;
  const StoredObject& object = event->object ? *event->object : *event->previous;
  const std::string key = object_key(object.ns, object.name);
  if (&cache == &secrets_) {
    remove(key);
    if (event->object && is_account_secret(object)) add(object);
  } else if (&cache == &accounts_) {
    if (const auto found = secrets_of_.find(key); found != secrets_of_.end()) {
      dirty_.insert(found->second.begin(), found->second.end());
    }
  }
}

void AccountSecrets::add(const StoredObject& secret) {
  const std::string key = object_key(secret.ns, secret.name);
  const std::string account = object_key(secret.ns, annotation_of(secret.document(), kAccountName));
  account_of_[key] = account;
  secrets_of_[account].insert(key);
  dirty_.insert(key);
}

void AccountSecrets::remove(const std::string& key) {
  dirty_.erase(key);
  const auto known = account_of_.find(key);
  if (known == account_of_.end()) return;
  const auto others = secrets_of_.find(known->second);
  others->second.erase(key);
  if (others->second.empty()) secrets_of_.erase(others);
  account_of_.erase(known);
}

void AccountSecrets::act() {
  for (auto next = dirty_.begin(); next != dirty_.end() && writing_.size() < kCollectorWritesMax;) {
    if (writing_.contains(*next)) {
      ++next;  // a change during the write is seen after it
      continue;
    }
    const std::string key = *next;
    next = dirty_.erase(next);
    fill(key);
  }
}

void AccountSecrets::fill(const std::string& key) {
  const ObjectPtr secret = secrets_.find(key);
  const auto known = account_of_.find(key);
  if (!secret || secret->meta.deleting || known == account_of_.end()) return;
  const ObjectPtr account = accounts_.find(known->second);
  if (!account || account->meta.deleting) return;  // the account's event restores the secret
  const Json document = secret->document();
  const StatusResult<Json> wanted = filled(document, *account);
  if (!wanted || *wanted == document) return;
  writing_.insert(key);
  UpdateJob job{.resource = &secrets_.resource(),
                .ns = secret->ns,
                .name = secret->name,
                .change = [this, account](const Json& current) { return filled(current, *account); },
                .uid = secret->meta.uid,
                .trusted = true,
                .context = {server_user(), {}, false}};
  writer_.update(std::move(job), [this, key](const StatusResult<Written>& result) { finish(key, result); });
}

/// Adds the missing values to a secret; a secret about an earlier account of the same name stays as it is.
StatusResult<Json> AccountSecrets::filled(const Json& secret, const StoredObject& account) const {
  if (annotation_of(secret, kAccountName) != account.name) return secret;
  const std::string_view uid = annotation_of(secret, kAccountUid);
  if (!uid.empty() && uid != account.meta.uid) return secret;
  Json full = secret;
  full.make({"metadata", "annotations", kAccountUid}) = account.meta.uid;
  Json& data = full.make({"data"});
  set_unless_there(data, "namespace", account.ns);
  if (!pem_.empty()) set_unless_there(data, "ca.crt", pem_);
  if (data.string_at({"token"}).empty()) {
    const WallTime now = std::chrono::floor<seconds>(core_.now.wall);
    api::AccountToken token;
    token.issuer = signer_->issuer();
    token.id = new_uid(core_.rng);
    token.audiences = {token.issuer};
    token.issued = now;
    token.not_before = now;
    token.expires = now + kAccountSecretLife;
    token.ns = account.ns;
    token.account = {account.name, account.meta.uid};
    token.secret = {std::string(secret.string_at({"metadata", "name"})),
                    std::string(secret.string_at({"metadata", "uid"}))};
    SPILLWAY_TRY(text, signer_->sign(api::to_claims(token)));
    set_unless_there(data, "token", text);
  }
  return full;
}

/// Transient failures are retried.
void AccountSecrets::finish(const std::string& key, const StatusResult<Written>& result) {
  writing_.erase(key);
  const bool ended = result || result.error().reason == "Invalid" || result.error().code == 404 ||
                     result.error().code == 403 || result.error().code == 409;
  if (ended) return run();
  core_.timers.at(core_.now.mono + kAccountSecretRetry, [this, key] {
    dirty_.insert(key);
    run();
  });
}

}  // namespace spillway::apiserver
