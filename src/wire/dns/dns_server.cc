#include "wire/dns/dns_server.h"

#include <poll.h>

#include <array>
#include <utility>
#include <variant>

namespace spillway::wire {
namespace {

// A free TCP port may be taken for UDP: another one is tried.
constexpr int kPortAttempts = 16;

}  // namespace

Result<std::unique_ptr<DnsServer>> DnsServer::start(runtime::Loop& loop, dns::Resolver& resolver,
                                                    const std::vector<DnsServerPlace>& places,
                                                    std::vector<DnsServerPlace> servers) {
  std::unique_ptr<DnsServer> server(new DnsServer(loop, resolver, std::move(servers)));
  for (const DnsServerPlace& place : places) {
    for (int attempt = 1;; ++attempt) {
      SPILLWAY_TRY(streams, listen_on(place.address, place.port));
      const std::uint16_t port = local_port(streams);
      auto datagrams = bind_datagrams(place.address, port);
      if (!datagrams && (place.port != 0 || attempt >= kPortAttempts)) return datagrams.error();
      if (!datagrams) continue;
      server->places_.push_back({place.address, port});
      server->listen({*std::move(datagrams), std::move(streams)});
      break;
    }
  }
  server->refresh_addresses();
  return server;
}

DnsServer::DnsServer(runtime::Loop& loop, dns::Resolver& resolver, std::vector<DnsServerPlace> servers)
    : loop_(loop),
      resolver_(resolver),
      streams_(loop,
               {.may_ask = [this](const api::IpAddress& client) { return resolver_.may_ask(client); },
                .on_message = [this](StreamClients::ConnectionId connection, const api::IpAddress& client,
                                     std::string_view message) { on_stream_message(connection, client, message); }}),
      upstream_(loop, std::move(servers), [this](dns::AskId id, std::optional<dns::ForeignAnswer> answer) {
        resolver_.on_answer(id, std::move(answer), loop_.now());
        carry_out();
      }) {}

DnsServer::~DnsServer() {
  if (timer_) loop_.cancel(*timer_);
  loop_.cancel(address_timer_);
  for (const Listener& listener : listeners_) {
    loop_.unwatch_fd(listener.datagrams.fd());
    loop_.unwatch_fd(listener.streams.fd());
  }
}

void DnsServer::listen(Listener listener) {
  const std::size_t number = listeners_.size();
  listeners_.push_back(std::move(listener));
  loop_.watch_fd(listeners_[number].datagrams.fd(), POLLIN, [this, number] { on_datagrams(number); });
  loop_.watch_fd(listeners_[number].streams.fd(), POLLIN,
                 [this, number] { streams_.accept(listeners_[number].streams); });
}

void DnsServer::refresh_addresses() {
  resolver_.set_own_addresses(own_addresses());
  address_timer_ = loop_.at(loop_.now().mono + kAddressesKept, [this] { refresh_addresses(); });
}

void DnsServer::on_datagrams(std::size_t listener) {
  std::array<char, kDnsMessageMax> buffer;
  for (int i = 0; i < kDatagramsOfTurn; ++i) {
    const auto datagram = receive_datagram(listeners_[listener].datagrams, buffer);
    if (!datagram) break;
    if (datagram->size <= buffer.size()) on_datagram(listener, datagram->path, {buffer.data(), datagram->size});
  }
  carry_out();
}

void DnsServer::on_datagram(std::size_t listener, const DatagramPath& path, std::string_view message) {
  const api::IpAddress client = path.peer_address();
  if (!resolver_.may_ask(client)) return resolver_.count_foreign_client();
  auto parsed = parse_query(message);
  if (const auto* bad = std::get_if<BadMessage>(&parsed)) {
    if (!bad->reply.empty() && resolver_.take_turn(client, loop_.now()))
      send_datagram(listeners_[listener].datagrams, path, bad->reply);
    return;
  }
  auto& query = std::get<DnsQuery>(parsed);
  const std::size_t bytes_max = query.udp_answer_max();
  accept({.query = std::move(query), .listener = listener, .path = path, .stream = {}}, client, bytes_max);
}

void DnsServer::on_stream_message(StreamClients::ConnectionId connection, const api::IpAddress& client,
                                  std::string_view message) {
  auto parsed = parse_query(message);
  if (const auto* bad = std::get_if<BadMessage>(&parsed)) {
    if (bad->reply.empty() || !resolver_.take_turn(client, loop_.now())) return streams_.close(connection);
    return streams_.answer(connection, bad->reply);
  }
  accept({.query = std::move(std::get<DnsQuery>(parsed)), .listener = 0, .path = {}, .stream = connection}, client,
         kDnsMessageMax);
  carry_out();
}

void DnsServer::accept(Pending pending, const api::IpAddress& client, std::size_t answer_bytes_max) {
  const dns::Ticket ticket = ++last_ticket_;
  dns::Query query{.ticket = ticket,
                   .client = client,
                   .question = pending.query.question,
                   .opcode = pending.query.opcode,
                   .record_class = pending.query.record_class,
                   .dnssec_ok = pending.query.dnssec_ok,
                   .checking_disabled = pending.query.checking_disabled,
                   .answer_bytes_max = answer_bytes_max};
  pending_.emplace(ticket, std::move(pending));
  resolver_.on_query(std::move(query), loop_.now());
}

void DnsServer::carry_out() {
  for (dns::Command& command : resolver_.take_commands()) {
    if (const auto* answered = std::get_if<dns::Reply>(&command)) reply(*answered);
    if (const auto* dropped = std::get_if<dns::Drop>(&command)) drop(dropped->ticket);
    if (const auto* asked = std::get_if<dns::Ask>(&command)) upstream_.ask(*asked);
    if (const auto* ended = std::get_if<dns::EndAsk>(&command)) upstream_.end(ended->id);
  }
  arm();
}

void DnsServer::reply(const dns::Reply& reply) {
  const auto found = pending_.find(reply.ticket);
  if (found == pending_.end()) return;
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  const std::size_t bytes_max = pending.stream ? kDnsMessageMax : pending.query.udp_answer_max();
  const std::string message =
      print_answer(pending.query, reply.answer, reply.foreign.get(), reply.age_seconds, bytes_max);
  if (pending.stream) return streams_.answer(*pending.stream, message);
  send_datagram(listeners_[pending.listener].datagrams, pending.path, message);
}

void DnsServer::drop(dns::Ticket ticket) {
  const auto found = pending_.find(ticket);
  if (found == pending_.end()) return;
  const auto stream = found->second.stream;
  pending_.erase(found);
  if (stream) streams_.close(*stream);
}

void DnsServer::arm() {
  const auto due = resolver_.next_wakeup();
  if (timer_ && due == timer_due_) return;
  if (timer_) loop_.cancel(*std::exchange(timer_, std::nullopt));
  if (!due) return;
  timer_due_ = *due;
  timer_ = loop_.at(*due, [this] {
    timer_.reset();
    resolver_.on_wakeup(loop_.now());
    carry_out();
  });
}

}  // namespace spillway::wire
