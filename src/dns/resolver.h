// Answers queries: from the cluster's records, from the cache, or by querying other servers. It parses no message and
// has no socket: queries are parsed before, commands contain the queries to send.
// Thread: loop. Bounds: each client address has a rate; questions that wait for other servers are bounded in all and
// per client, beyond which the answer is SERVFAIL; each question is sent kAttemptsMax times. Equal questions that wait
// are sent once. Ordering: commands are in the order of their causes; each query gets exactly one Reply or Drop.
// Source: RFC 1035, RFC 2308, RFC 8906; Kubernetes docs, "Customizing DNS Service".
#pragma once

#include "api/text/ip_address.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "client/recent_map.h"
#include "policy/dns/cluster_records.h"
#include "telemetry/metrics.h"

#include "dns/answer_cache.h"
#include "dns/foreign_answer.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::dns {

/// Names a query; chosen by the server that received it, never used twice.
using Ticket = std::uint64_t;
/// Names one query to another server; never used twice.
using AskId = std::uint64_t;

struct Query {
  Ticket ticket = 0;
  api::IpAddress client;
  Question question;
  std::uint8_t opcode = 0;         // 0: a question
  std::uint16_t record_class = 1;  // 1: the internet
  bool dnssec_ok = false;
  bool checking_disabled = false;
  std::size_t answer_bytes_max = 512;
};

// Commands.

/// `answer` first, then the records of `foreign`, whose times are `age_seconds` shorter by now, and its rcode.
struct Reply {
  Ticket ticket = 0;
  Answer answer;
  std::shared_ptr<const std::string> foreign = {};  // null: none
  std::uint32_t age_seconds = 0;
};

/// No answer: to answer would help a flood.
struct Drop {
  Ticket ticket = 0;
};

struct Ask {
  AskId id = 0;
  std::size_t server = 0;  // number in the list of servers
  Question question;
  bool dnssec_ok = false;
  bool checking_disabled = false;
  bool over_tcp = false;
};

/// Ends the wait for the answer of that query.
struct EndAsk {
  AskId id = 0;
};

using Command = std::variant<Reply, Drop, Ask, EndAsk>;

class Resolver {
 public:
  /// Three attempts end before a client that waits 5 s, as resolv.conf(5) has it, gives up.
  static constexpr int kAttemptsMax = 3;
  static constexpr Duration kAttemptTime = milliseconds(1500);
  /// For this time a server that did not answer is tried after the others.
  static constexpr Duration kServerPause = seconds(10);

  struct Options {
    std::size_t servers = 0;                   // number of other servers; 0: names outside the cluster are refused
    std::vector<api::IpRange> allowed;         // clients, beside the machine's own addresses
    float client_rate = 1000;                  // queries per second of one address
    int client_burst = 2000;                   // as many at once
    std::size_t clients_max = 10'000;          // addresses whose rates are kept
    std::size_t asked_max = 256;               // queries under way to other servers; each has a socket
    std::size_t waiting_max = 4096;            // queries that wait for one of those places
    std::size_t waiting_per_client_max = 256;  // waiting queries of one address
    AnswerCache::Options cache = {};
  };

  /// `records` and `metrics` must outlive the resolver.
  Resolver(const ClusterRecords& records, Options options, telemetry::Registry& metrics);

  /// The records are complete. Until then names of the cluster are answered with SERVFAIL.
  void set_complete() { complete_ = true; }

  /// Addresses of this machine, which may always query.
  void set_own_addresses(std::set<api::IpAddress> addresses) { own_addresses_ = std::move(addresses); }

  /// True if the address may query: a server gives other addresses no answer at all, not even a refusal.
  bool may_ask(const api::IpAddress& client) const;

  /// Counts an ignored message of an address that may not query.
  void count_foreign_client() { metrics_.foreign_clients.add(); }

  /// Takes one message from the rate of the address; false: it has used up its rate, and gets no answer. on_query()
  /// does this by itself; messages that are no queries are counted here.
  bool take_turn(const api::IpAddress& client, Now now);

  void on_query(Query query, Now now);
  /// nullopt: the server cannot be reached, or its answer was not understood.
  void on_answer(AskId id, std::optional<ForeignAnswer> answer, Now now);
  void on_wakeup(Now now);
  std::optional<Instant> next_wakeup() const;

  /// Commands since the last call.
  std::vector<Command> take_commands() { return std::exchange(commands_, {}); }

  std::size_t asked() const { return asking_.size(); }

  std::size_t waiting() const { return waiting_; }

 private:
  struct Waiter {
    Ticket ticket = 0;
    api::IpAddress client;
    Answer prefix;  // the CNAME that led out of the cluster; else empty
  };

  struct Asking {
    CacheKey key;
    Question question;
    int attempts = 0;
    std::size_t server = 0;
    bool over_tcp = false;
    Instant deadline;
    std::vector<Waiter> waiters;
    std::set<std::size_t> tried;
    std::optional<ForeignAnswer> refusal;  // a server's, if no other one gives a better answer
  };

  using AskingPlace = std::map<AskId, Asking>::iterator;

  void forward(const Query& query, Question question, Answer prefix, Now now);
  void attempt(Asking asking, Now now);
  void try_next(Asking asking, Now now);
  void finish(const Asking& asking, const ForeignAnswer* answer);
  std::size_t choose_server(const Asking& asking, Now now) const;
  Asking take(AskingPlace place);
  void reply(Ticket ticket, Answer answer);
  void reply(Ticket ticket, Rcode rcode);

  void drop(Ticket ticket) { commands_.emplace_back(Drop{ticket}); }

  struct Metrics {
    explicit Metrics(telemetry::Registry& registry);
    telemetry::Counter from_records;
    telemetry::Counter from_cache;
    telemetry::Counter forwarded;
    telemetry::Counter refused;
    telemetry::Counter failed;
    telemetry::Counter foreign_clients;
    telemetry::Counter over_rate;
  };

  const ClusterRecords& records_;
  Options options_;
  Metrics metrics_;
  bool complete_ = false;
  std::set<api::IpAddress> own_addresses_;
  client::RecentMap<api::IpAddress, TokenBucket> rates_;
  AnswerCache cache_;
  AskId last_ask_ = 0;
  std::uint64_t rotation_ = 0;
  std::map<AskId, Asking> asking_;
  std::map<CacheKey, AskId> asked_keys_;
  std::set<std::pair<Instant, AskId>> deadlines_;
  std::size_t waiting_ = 0;
  std::map<api::IpAddress, std::size_t> waiting_by_client_;
  std::vector<Instant> pause_until_;  // by server
  std::vector<Command> commands_;
};

}  // namespace spillway::dns
