// Keeps the Service kube-dns and the EndpointSlice of this process's DNS server, and deletes the slice at the end, so
// that no pod queries a server that has stopped. Thread: loop.
#pragma once

#include "apps/process/engine_part.h"

#include "dns/service_keeper.h"

#include <memory>

namespace spillway::apps {

class DnsServicePart final : public EnginePart {
 public:
  DnsServicePart(runtime::Loop& loop, std::unique_ptr<dns::ServiceKeeper> keeper,
                 std::unique_ptr<client::Transport> transport);

  /// Waits for the API server's answer for a second at most.
  void stop(runtime::Loop::Task done) override;

 private:
  runtime::Loop& loop_;
  dns::ServiceKeeper& keeper_;
};

}  // namespace spillway::apps
