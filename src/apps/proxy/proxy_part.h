// The proxy of a node with its transport and the loader of its rules, as a part of a process. Thread: loop.
#pragma once

#include "apps/process/engine_part.h"
#include "apps/proxy/health_checks.h"
#include "base/alive.h"
#include "base/unique_fd.h"
#include "host/netfilter/rule_loader.h"

#include "proxy/service_proxy.h"

#include <cstdint>
#include <memory>
#include <string_view>

namespace spillway::apps {

/// Decides if the rules stay when the part stops: connections continue, and another process takes over.
enum class RulesAtStop : std::uint8_t { kStay, kGo };

/// The place of the one proxy of a network namespace, held until it is destroyed. kConflict: another process has it.
class ProxyPlace {
 public:
  static Result<ProxyPlace> take();

 private:
  explicit ProxyPlace(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
};

class ProxyPart final : public EnginePart {
 public:
  ProxyPart(Process& process, ProxyPlace place, std::unique_ptr<proxy::ServiceProxy> engine,
            std::unique_ptr<client::Transport> transport, RulesAtStop at_stop);

  const proxy::ServiceProxy& proxy() const { return proxy_; }

  /// /healthz, /livez, of kube-proxy.
  api::Response health_page(std::string_view path) const;

  void stop(runtime::Loop::Task done) override;

 private:
  void carry_out();
  void observe_addresses();

  Alive alive_;  // before the members that use it
  Process& process_;
  ProxyPlace place_;
  proxy::ServiceProxy& proxy_;
  RulesAtStop at_stop_;
  host::RuleLoader loader_;
  HealthChecks health_checks_;
};

}  // namespace spillway::apps
