// Authentication and authorization for our servers that are not API servers (a node's, a controller's): TokenReview and
// SubjectAccessReview at the API server, with cached answers. Client certificates have been verified before. Thread:
// loop. Invariants: one review in flight per token, one per user and right. Bounds: answers remembered, requests
// waiting. Source: Kubernetes docs, "Kubelet authentication/authorization"; spec "Node agent", 12.2.
#pragma once

#include "agent/contract/gate_settings.h"
#include "agent/serving/expiring_cache.h"
#include "agent/serving/node_access.h"
#include "api/exchange/exchange.h"
#include "base/rng.h"
#include "client/api_client.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

class RequestGate final : public client::ApiEngine {
 public:
  struct Options {
    std::string node_name;  // empty: no node's server
    GateSettings settings;
    std::size_t remembered_max = 512;  // answers, of each kind
    std::size_t waiting_max = 256;     // requests
  };

  static constexpr std::size_t kTokenBytesMax = std::size_t{16} * 1024;

  /// The caller of a request: identified by a certificate, to be identified by its token, or anonymous.
  struct Caller {
    std::optional<api::UserInfo> certified;
    std::string token;
  };

  /// 200: the request is served. Else the code and the body of the answer.
  struct Verdict {
    int code = 200;
    std::string text;
  };

  using Done = std::function<void(const Verdict& verdict)>;

  RequestGate(Options options, Rng rng);

  /// Calls `done` once, now or in a later step.
  void ask(const Caller& caller, const NodeAccess& access, Done done, Now now);

  std::size_t waiting() const { return waiting_; }

  std::size_t remembered() const { return users_.size() + rights_.size(); }

  // client::ApiEngine
  std::string_view name() const override { return "spillway-agent"; }

  void start(Now now) override { api_.start(now); }

  void on_api_event(const client::ApiEvent& event, Now now) override { api_.on_api_event(event, now); }

  void on_wakeup(Now now) override { api_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return api_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return api_.take_api_commands(); }

 private:
  /// nullopt: the token identifies no user.
  using Bearer = std::optional<api::UserInfo>;
  using KnowsBearer = std::function<void(const Bearer& bearer, Now now)>;
  using KnowsRight = std::function<void(const Verdict& verdict, Now now)>;

  void identify(const std::string& token, KnowsBearer next, Now now);
  void on_reviewed(const std::string& token, const Result<api::Json>& review, Now now);
  void authorize_either(const api::UserInfo& user, const NodeAccess& access, KnowsRight next, Now now);
  void authorize(const api::UserInfo& user, const NodeAccess& access, KnowsRight next, Now now);
  void on_access_review(const std::string& key, const api::UserInfo& user, const NodeAccess& access,
                        const Result<api::Json>& review, Now now);

  Options options_;
  client::ApiClient api_;
  ExpiringCache<Bearer> users_;    // by token
  ExpiringCache<Verdict> rights_;  // by user and access
  std::map<std::string, std::vector<KnowsBearer>> reviewing_;
  std::map<std::string, std::vector<KnowsRight>> authorizing_;
  std::size_t waiting_ = 0;
};

}  // namespace spillway::agent
