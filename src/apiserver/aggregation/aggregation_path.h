// Requests for group versions that other servers serve: each is forwarded to the Service of its APIService, with the
// headers that name its user and this server's proxy certificate, and the answer is returned unchanged: streams of
// watches and upgraded connections too. Redirects are refused. Nothing waits on the loop.
// Thread: loop. Bounds: open requests of one API and of one user; kAnswerMax for an answer that is no watch.
// Source: Kubernetes docs, "Kubernetes API Aggregation Layer"; k8s.io/kube-aggregator 1.32.
#pragma once

#include "apiserver/aggregation/remote_apis.h"
#include "apiserver/ports/aggregated_gateway.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::apiserver {

class AggregationPath {
 public:
  /// Upstream's limit for requests that are no watches.
  static constexpr Duration kAnswerMax = seconds(60);
  /// A server that hangs holds no more connections than this, so that others keep theirs.
  static constexpr std::size_t kOpenOfApiMax = 128;
  static constexpr std::size_t kOpenOfUserMax = 64;

  /// `gateway` null: no server can be reached. `scheme`: that clients speak to this server.
  AggregationPath(Core& core, AggregatedGateway* gateway, std::string_view scheme)
      : core_(core), gateway_(gateway), scheme_(scheme), timers_(std::make_shared<TimerQueue*>(&core.timers)) {}

  ~AggregationPath() { *timers_ = nullptr; }

  AggregationPath(const AggregationPath&) = delete;
  AggregationPath& operator=(const AggregationPath&) = delete;

  /// The user may. 503: the API is not available now, 429: too many requests are open.
  void perform(const ExchangePtr& exchange, const RemoteApi& api);

 private:
  using OpenRequests = std::map<std::string, std::size_t, std::less<>>;

  std::shared_ptr<void> take_place(const std::string& api, const std::string& user);
  std::shared_ptr<void> limit_time(const ExchangePtr& exchange, const std::function<void()>& cancel,
                                   const std::shared_ptr<const bool>& has_begun);

  Core& core_;
  AggregatedGateway* gateway_;
  const std::string_view scheme_;
  std::shared_ptr<OpenRequests> open_ = std::make_shared<OpenRequests>();  // by API and by user; none is 0
  // the pointer inside becomes null when this object is destroyed
  std::shared_ptr<TimerQueue*> timers_;
};

}  // namespace spillway::apiserver
