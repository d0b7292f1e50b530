// Secrets of type kubernetes.io/service-account-token that name an account of their namespace: each gets a token of
// that account, the certificate by which the API server is verified, the namespace, and the uid of the account.
// Existing values of a secret stay. The token is bound to the secret: it ends when the secret or the account is
// deleted, and after kAccountSecretLife. Without a signing key this collector is idle. Thread: loop. Bounds:
// kCollectorWritesMax writes in flight. Source: Kubernetes docs, "Managing Service Accounts", Secrets; spec "Scheduler
// and workloads", 17.
#pragma once

#include "apiserver/ports/tokens.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/writer.h"

#include <map>
#include <set>
#include <string>

namespace spillway::apiserver {

/// Clients read such a secret once and keep the token; upstream's never expires.
inline constexpr seconds kAccountSecretLife = std::chrono::hours(24 * 365 * 10);

class AccountSecrets final : public Collector {
 public:
  /// `signer`: nullptr: no tokens are issued. `pem`: the authority's certificate; empty: there is none.
  AccountSecrets(Core& core, Writer& writer, const TokenSigner* signer, std::string pem);

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  bool is_account_secret(const StoredObject& object) const;
  /// Records which account the secret names, and marks the secret as possibly incomplete.
  void add(const StoredObject& secret);
  void remove(const std::string& key);
  void fill(const std::string& key);
  api::StatusResult<api::Json> filled(const api::Json& secret, const StoredObject& account) const;
  void finish(const std::string& key, const api::StatusResult<Written>& result);

  Core& core_;
  Writer& writer_;
  const TokenSigner* signer_;
  const std::string pem_;
  const ResourceCache& secrets_;
  const ResourceCache& accounts_;
  std::map<std::string, std::string> account_of_;            // key of an account, by key of its secret
  std::map<std::string, std::set<std::string>> secrets_of_;  // keys of secrets, by key of their account
  std::set<std::string> dirty_;                              // keys of secrets that may lack something
  std::set<std::string> writing_;
};

}  // namespace spillway::apiserver
