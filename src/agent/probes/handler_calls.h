// Executes the handlers of probes and hooks: requests, connections, commands, pauses. Each call ends once, with its
// result. Thread: loop. Bounds: one call per running probe and hook. Source: spec "Pod lifecycle", 9.5, 9.7.
#pragma once

#include "agent/contract/context.h"
#include "api/object/probe.h"
#include "base/error.h"
#include "policy/containers/http_action.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// The container in which, or the address at which, a handler is executed.
struct HandlerPlace {
  std::string uid;
  const api::Container* container = nullptr;  // during begin()
  std::string pod_ip;
  bool own_network = false;  // the pod's network cannot be reached from here
  /// Expands the references in a word of a command; empty: they are not expanded.
  std::function<Result<std::string>(std::string_view)> expand = {};
  containers::HttpPurpose purpose = containers::HttpPurpose::kProbe;
};

class HandlerCalls {
 public:
  using Done = std::function<void(const containers::ProbeVerdict& verdict, Now now)>;

  explicit HandlerCalls(AgentContext& context) : context_(context) {}

  /// `done` may be called before this returns. For hooks every answer is a success; a fallback to HTTP adds a warning.
  void begin(const HandlerPlace& place, const api::Handler& handler, Duration timeout, Done done, Now now);
  /// Cancels the calls for this pod; answers that arrive later are dropped.
  void forget(const std::string& uid);

  void on_http_answered(const HttpAnswered& event, Now now);
  void on_ran(const RanInContainer& event, Now now);
  void on_tcp_tried(const TcpTried& event, Now now);
  void on_grpc_answered(const GrpcAnswered& event, Now now);

 private:
  struct Call {
    std::string uid;
    Done done;
    containers::HttpPurpose purpose = containers::HttpPurpose::kProbe;
    containers::HttpAsk ask;
    std::string command;  // for people
    std::string address;  // address of a gRPC server, for people
    Duration timeout{};
    int redirects = 0;
    bool fell_back = false;  // the hook was retried by HTTP after HTTPS was answered by HTTP
    Instant deadline;
  };

  void ask(const containers::HttpAsk& ask, Call call, Duration timeout);
  void ask_health(const HandlerPlace& place, const api::GrpcAction& action, Call call, Now now);
  void run(const HandlerPlace& place, const std::vector<std::string>& command, Call call, Now now);
  std::optional<Call> take(std::uint64_t id);

  AgentContext& context_;
  std::map<std::uint64_t, Call> calls_;
  std::uint64_t last_id_ = 0;
};

}  // namespace spillway::agent
