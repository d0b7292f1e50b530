// The way from the dashboard to the pages of the controllers that lead: through the API server they share a process
// with, else by the address on their lease, as `spillway zones` does. Thread: loop. Bounds: those of ApiRelay; buffered
// answers, 1 MiB.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "base/alive.h"
#include "base/error.h"
#include "base/time.h"
#include "runtime/loop.h"
#include "wire/client/http_client.h"
#include "wire/dashboard/api_relay.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace spillway::wire {

class ControllerWay {
 public:
  struct Options {
    std::string lease_path;  // the controllers' lease at the API server; empty: only the API server is tried
    /// The address of the leader, with the credentials for it. The error is the reason why no controller can be
    /// reached.
    std::function<Result<HttpEndpoint>(const api::Json& lease)> endpoint;
  };

  /// `loop` and `api` must outlive this object.
  ControllerWay(runtime::Loop& loop, ApiRelay& api, Options options);
  ~ControllerWay();
  ControllerWay(const ControllerWay&) = delete;
  ControllerWay& operator=(const ControllerWay&) = delete;

  /// Opens an exchange like ApiRelay::open(); `id` is unknown to `api`.
  void open(std::uint64_t id, api::Request request, std::shared_ptr<api::ResponseSink> sink);
  void abandon(std::uint64_t id);

 private:
  struct Asked;
  using AskedPtr = std::shared_ptr<Asked>;

  void ask_server(const AskedPtr& asked);
  void ask_lease(const AskedPtr& asked, api::Response refusal);
  void ask_leader(const AskedPtr& asked);
  void catch_answer(const AskedPtr& asked, api::Request request, std::function<void(api::Response)> next);

  runtime::Loop& loop_;
  ApiRelay& api_;
  Options options_;
  std::set<std::uint64_t> open_;
  std::unique_ptr<ApiRelay> leader_;  // null: unknown
  Instant leader_until_{};
  Alive alive_;
};

}  // namespace spillway::wire
