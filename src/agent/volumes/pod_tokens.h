// Tokens of service accounts for the volumes of pods: requested when a pod starts, renewed before they expire. Thread:
// loop. Bounds: one record per token that a volume of a pod of this node names. Source: Kubernetes docs, "Managing
// Service Accounts", bound tokens; spec "Pod lifecycle", 7.5, 16.
#pragma once

#include "agent/contract/context.h"
#include "agent/volumes/payload.h"
#include "base/rng.h"
#include "base/time.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace spillway::agent {

/// The time until a new token with that life is renewed: 80 % of its life, after a day at most, up to ten seconds
/// earlier. `chance`: 0 to 1.
Duration renewal_after(Duration life, double chance);

class PodTokens {
 public:
  PodTokens(AgentContext& context, Rng rng) : context_(context), rng_(rng) {}

  /// Called after every answer that ends a wait or brings another token.
  void when_answered(std::function<void(const std::string& uid, Now now)> listener) { listener_ = std::move(listener); }

  void hold(const std::shared_ptr<const api::Pod>& pod, const TokenWish& wish);
  void release(const std::string& uid);
  /// Requests the pod's tokens again that could not be obtained.
  void ask_again(const std::string& uid);

  bool is_answered(const std::string& uid, const TokenWish& wish) const;
  /// The error of the last call, or that the token has ended since.
  Result<std::string> token(const std::string& uid, const TokenWish& wish, Now now) const;

 private:
  using Key = std::pair<std::string, TokenWish>;  // by uid

  struct Record {
    std::shared_ptr<const api::Pod> pod;
    bool answered = false;
    bool asking = false;
    std::string token;
    std::optional<Instant> ends;
    std::optional<Error> error;
    std::optional<client::ApiClient::TimerId> timer;
  };

  void ask(const Key& key, Record& record);
  void on_answer(const Key& key, const std::string& pod_uid, const Result<api::Json>& answer, Now now);
  void arm(const Key& key, Record& record, Instant due);

  AgentContext& context_;
  Rng rng_;
  std::function<void(const std::string&, Now)> listener_;
  std::map<Key, Record> records_;
};

}  // namespace spillway::agent
