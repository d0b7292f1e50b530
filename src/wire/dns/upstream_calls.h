// Queries other DNS servers: one socket for each query, with a random port and a random id; an answer counts only if it
// is from the queried server, with the id and the question that were sent. Thread: loop. Bounds: as many queries as the
// resolver sends; it ends each in time (dns/resolver.h). An answer of up to 65,535 bytes is read.
#pragma once

#include "base/alive.h"
#include "runtime/loop.h"
#include "wire/dns/message.h"
#include "wire/net/socket.h"

#include "dns/resolver.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::wire {

struct DnsServerPlace {
  std::string address;  // numeric
  std::uint16_t port = 53;

  friend bool operator==(const DnsServerPlace&, const DnsServerPlace&) = default;
};

class UpstreamCalls {
 public:
  /// nullopt: the server cannot be reached, or its answer cannot be understood. Never called from inside ask().
  using Done = std::function<void(dns::AskId id, std::optional<dns::ForeignAnswer> answer)>;

  UpstreamCalls(runtime::Loop& loop, std::vector<DnsServerPlace> servers, Done done);
  ~UpstreamCalls();
  UpstreamCalls(const UpstreamCalls&) = delete;
  UpstreamCalls& operator=(const UpstreamCalls&) = delete;

  void ask(const dns::Ask& ask);
  /// Ends a query. Harmless if it has ended.
  void end(dns::AskId id);

 private:
  struct Call {
    Socket socket;
    OutgoingQuery query;
    bool over_tcp = false;
    std::string unsent;    // TCP
    std::string received;  // TCP
  };

  void on_ready(dns::AskId id);
  void read_datagrams(dns::AskId id, Call& call);
  /// False: the call has ended.
  bool write_stream(dns::AskId id, Call& call);
  void read_stream(dns::AskId id, Call& call);
  void finish(dns::AskId id, std::optional<dns::ForeignAnswer> answer);
  void fail_later(dns::AskId id);

  runtime::Loop& loop_;
  std::vector<DnsServerPlace> servers_;
  Done done_;
  std::map<dns::AskId, Call> calls_;
  Alive alive_;
};

}  // namespace spillway::wire
