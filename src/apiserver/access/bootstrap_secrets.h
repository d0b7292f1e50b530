// Keeps the table of bootstrap tokens as the Secrets of kube-system say. It reads and writes nothing else.
// Thread: loop. Source: Kubernetes docs, "Authenticating with Bootstrap Tokens", secret format.
#pragma once

#include "api/json/json.h"
#include "apiserver/ports/bootstrap_tokens.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"

#include <optional>

namespace spillway::apiserver {

/// The token that a Secret of kube-system holds; nullopt: it is none, is being deleted, is not meant for
/// authentication, or something in it is not as it must be (its name, an unreadable expiration, a group beyond
/// system:bootstrappers:…).
std::optional<BootstrapToken> bootstrap_token_of(const api::Json& secret);

class BootstrapSecrets final : public Collector {
 public:
  /// Without a table this part does nothing.
  BootstrapSecrets(Core& core, BootstrapTokens* tokens);

 private:
  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;

  void act() override {}

  void read(const StoredObject& secret);

  BootstrapTokens* tokens_;
  const ResourceCache& secrets_;
};

}  // namespace spillway::apiserver
