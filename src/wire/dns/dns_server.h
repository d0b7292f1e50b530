// The DNS server: receives queries by UDP and TCP, gives them to the resolver, and carries out what that commands.
// Thread: loop. Bounds: kDatagramsOfTurn datagrams are read in a turn, so that a flood delays nothing else; queries
// that wait are bounded by the resolver, connections by StreamClients. Ordering: the answers of a connection may
// overtake each other, as RFC 7766 allows.
#pragma once

#include "base/error.h"
#include "runtime/loop.h"
#include "wire/dns/datagram.h"
#include "wire/dns/message.h"
#include "wire/dns/stream_clients.h"
#include "wire/dns/upstream_calls.h"
#include "wire/net/socket.h"

#include "dns/resolver.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::wire {

class DnsServer {
 public:
  static constexpr int kDatagramsOfTurn = 32;
  /// Addresses of the machine are read again after this time.
  static constexpr Duration kAddressesKept = seconds(30);

  /// Listens on each of `places` by UDP and TCP; port 0 picks one that is free for both. `resolver` outlives it; its
  /// servers are `servers`, in order. The error names the place.
  static Result<std::unique_ptr<DnsServer>> start(runtime::Loop& loop, dns::Resolver& resolver,
                                                  const std::vector<DnsServerPlace>& places,
                                                  std::vector<DnsServerPlace> servers);
  ~DnsServer();
  DnsServer(const DnsServer&) = delete;
  DnsServer& operator=(const DnsServer&) = delete;

  /// The addresses on which it listens.
  const std::vector<DnsServerPlace>& places() const { return places_; }

 private:
  struct Listener {
    Socket datagrams;
    Socket streams;
  };

  /// The way back of a query's answer.
  struct Pending {
    DnsQuery query;
    std::size_t listener = 0;
    DatagramPath path;                                  // UDP
    std::optional<StreamClients::ConnectionId> stream;  // TCP
  };

  DnsServer(runtime::Loop& loop, dns::Resolver& resolver, std::vector<DnsServerPlace> servers);

  void listen(Listener listener);
  void on_datagrams(std::size_t listener);
  void on_datagram(std::size_t listener, const DatagramPath& path, std::string_view message);
  void on_stream_message(StreamClients::ConnectionId connection, const api::IpAddress& client,
                         std::string_view message);
  void accept(Pending pending, const api::IpAddress& client, std::size_t answer_bytes_max);
  void carry_out();
  void reply(const dns::Reply& reply);
  void drop(dns::Ticket ticket);
  void arm();
  void refresh_addresses();

  runtime::Loop& loop_;
  dns::Resolver& resolver_;
  std::vector<DnsServerPlace> places_;
  std::vector<Listener> listeners_;
  StreamClients streams_;
  UpstreamCalls upstream_;
  dns::Ticket last_ticket_ = 0;
  std::map<dns::Ticket, Pending> pending_;
  std::optional<runtime::Loop::TimerId> timer_;
  Instant timer_due_;
  runtime::Loop::TimerId address_timer_ = 0;
};

}  // namespace spillway::wire
