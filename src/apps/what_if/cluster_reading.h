// Reads the cluster with a user's rights from the API server of this process: page by page, each a request that is
// authorized, queued, counted and audited as if the user had sent it. Thread: loop. Bounds: Limits; one page is held at
// a time, finished pages are kept in an unnamed file.
#pragma once

#include "api/exchange/exchange.h"
#include "apps/process/limited_run.h"
#include "base/alive.h"
#include "base/error.h"
#include "base/time.h"
#include "runtime/loop.h"
#include "wire/server/http_server.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace spillway::apps {

class ClusterReading {
 public:
  struct Limits {
    Duration time_max = minutes(1);
    std::size_t bytes_max = std::size_t{64} * 1024 * 1024;
  };

  struct Ended {
    std::optional<HandedText> lists;  // one answer a line, for `spillway simulate --from-lists`
    api::Response refusal;            // without lists: the server's refusal, or the bound that was exceeded
  };

  /// Reads as the user `requester`, the sender of `asked`. `done` is called once, from a turn of its own, and may
  /// destroy the reading; never if that is destroyed before. `loop` and `server` must outlive it.
  ClusterReading(runtime::Loop& loop, wire::RequestHandler& server, const api::Request& asked,
                 std::shared_ptr<const api::UserInfo> requester, Limits limits, std::function<void(Ended)> done);
  ~ClusterReading();
  ClusterReading(const ClusterReading&) = delete;
  ClusterReading& operator=(const ClusterReading&) = delete;

 private:
  class PageSink;

  void ask();
  void on_page(const api::Response& page);
  void next_list();
  void refuse(int code, const char* reason, const std::string& message);
  void end(Ended ended);

  runtime::Loop& loop_;
  wire::RequestHandler& server_;
  std::string source_;
  std::shared_ptr<const api::UserInfo> requester_;
  Limits limits_;
  std::function<void(Ended)> done_;
  std::optional<HandedText> lists_;
  std::size_t bytes_ = 0;
  std::size_t list_ = 0;  // index into sim::cluster_lists()
  std::string continue_;  // the continue token of the next page
  std::optional<wire::RequestHandler::Ticket> asked_;
  std::optional<runtime::Loop::TimerId> deadline_;
  Alive alive_;
};

}  // namespace spillway::apps
