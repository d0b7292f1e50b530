// The DNS server of a cluster as a part of a process: the feed of its records, the resolver, the sockets.
// Thread: loop.
#pragma once

#include "apps/process/process.h"
#include "base/error.h"
#include "cli/flags/command_line.h"
#include "client/engine.h"
#include "runtime/engine_driver.h"
#include "wire/dns/dns_server.h"

#include "dns/records_feed.h"
#include "dns/resolver.h"

#include <memory>
#include <vector>

namespace spillway::apps {

class DnsPart final : public Part {
 public:
  /// Listens at `places`. kInvalid: the file of --resolv-conf cannot be read; kServiceUnavailable: a place is taken.
  static Result<std::unique_ptr<DnsPart>> create(Process& process, const cli::DnsArgs& args,
                                                 const std::vector<cli::ListenPlace>& places,
                                                 std::unique_ptr<client::Transport> transport);

  /// The addresses on which the server listens.
  const std::vector<wire::DnsServerPlace>& places() const { return server_->places(); }

  void stop(runtime::Loop::Task done) override;

 private:
  DnsPart(Process& process, const cli::DnsArgs& args, std::size_t servers,
          std::unique_ptr<client::Transport> transport);

  Process& process_;
  std::unique_ptr<client::Transport> transport_;
  dns::RecordsFeed feed_;
  runtime::EngineDriver driver_;
  dns::Resolver resolver_;
  std::unique_ptr<wire::DnsServer> server_;
};

}  // namespace spillway::apps
