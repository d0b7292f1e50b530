#include "dns/resolver.h"

#include "policy/dns/names.h"

#include <algorithm>

namespace spillway::dns {
namespace {

constexpr std::uint16_t kInternet = 1;
constexpr std::size_t kLeastRecordBytes = 16;  // an A record whose name points to the question
// A bucket that was not used for so long is full again.
constexpr Duration kRateKept = seconds(60);

constexpr std::string_view kQueries = "spillway_dns_queries_total";
constexpr std::string_view kQueriesHelp = "Queries that the DNS server received, by how they were answered";

telemetry::Counter queries(telemetry::Registry& registry, std::string_view outcome) {
  return registry.counter(kQueries, kQueriesHelp, {{"outcome", outcome}});
}

/// True if another server may give a better answer.
bool is_refusal(Rcode rcode) {
  return rcode == Rcode::kServerFailure || rcode == Rcode::kRefused || rcode == Rcode::kNotImplemented ||
         rcode == Rcode::kFormatError;
}

}  // namespace

Resolver::Metrics::Metrics(telemetry::Registry& registry)
    : from_records(queries(registry, "records")),
      from_cache(queries(registry, "cache")),
      forwarded(queries(registry, "forwarded")),
      refused(queries(registry, "refused")),
      failed(queries(registry, "failed")),
      foreign_clients(queries(registry, "client_not_allowed")),
      over_rate(queries(registry, "over_rate")) {}

Resolver::Resolver(const ClusterRecords& records, Options options, telemetry::Registry& metrics)
    : records_(records),
      options_(std::move(options)),
      metrics_(metrics),
      rates_(options_.clients_max, kRateKept),
      cache_(options_.cache),
      pause_until_(options_.servers) {}

bool Resolver::may_ask(const api::IpAddress& client) const {
  if (client.is_loopback() || own_addresses_.contains(client)) return true;
  return std::ranges::any_of(options_.allowed, [&](const api::IpRange& range) { return range.contains(client); });
}

bool Resolver::take_turn(const api::IpAddress& client, Now now) {
  TokenBucket& rate = rates_.use(client, now.mono, [&] {
    return TokenBucket(BucketKind::kContinuous, options_.client_rate, options_.client_burst, now.mono);
  });
  const bool taken = rate.try_take(now.mono);
  if (!taken) metrics_.over_rate.add();
  return taken;
}

void Resolver::on_query(Query query, Now now) {
  if (!may_ask(query.client)) {
    metrics_.foreign_clients.add();
    return drop(query.ticket);
  }
  if (!take_turn(query.client, now)) return drop(query.ticket);
  if (query.opcode != 0) return reply(query.ticket, Rcode::kNotImplemented);
  const RecordType type = query.question.type;
  const bool transfer = type == RecordType::kAxfr || type == RecordType::kIxfr;
  if (query.record_class != kInternet || transfer) return reply(query.ticket, Rcode::kRefused);
  const std::string plain = plain_name(query.question.name);
  const bool ours = is_within(plain, records_.options().zone) || !reverse_zone(plain).empty();
  if (ours && !complete_) return reply(query.ticket, Rcode::kServerFailure);
  auto answer = records_.answer(query.question,
                                {.records_max = query.answer_bytes_max / kLeastRecordBytes, .rotation = rotation_++});
  if (answer && !answer->alias) {
    metrics_.from_records.add();
    return reply(query.ticket, *std::move(answer));
  }
  if (!answer) return forward(query, query.question, {}, now);
  Question behind{*answer->alias, type};
  forward(query, std::move(behind), *std::move(answer), now);
}

void Resolver::forward(const Query& query, Question question, Answer prefix, Now now) {
  if (options_.servers == 0) {
    // Other servers are queried for the cluster's reverse zones before the answer is "no such name".
    if (!reverse_zone(plain_name(question.name)).empty()) return reply(query.ticket, Rcode::kNameError);
    return reply(query.ticket, prefix.alias ? Rcode::kServerFailure : Rcode::kRefused);
  }
  CacheKey key{plain_name(question.name), question.type, query.dnssec_ok, query.checking_disabled};
  if (const auto hit = cache_.find(key, now.mono)) {
    metrics_.from_cache.add();
    commands_.emplace_back(Reply{query.ticket, std::move(prefix), hit->answer.message, hit->age_seconds});
    return;
  }
  std::size_t& own = waiting_by_client_[query.client];
  if (waiting_ >= options_.waiting_max || own >= options_.waiting_per_client_max) {
    if (own == 0) waiting_by_client_.erase(query.client);
    return reply(query.ticket, Rcode::kServerFailure);
  }
  const auto known = asked_keys_.find(key);
  if (known == asked_keys_.end() && asking_.size() >= options_.asked_max) {
    if (own == 0) waiting_by_client_.erase(query.client);
    return reply(query.ticket, Rcode::kServerFailure);
  }
  ++own;
  ++waiting_;
  metrics_.forwarded.add();
  Waiter waiter{query.ticket, query.client, std::move(prefix)};
  if (known != asked_keys_.end()) {
    asking_.at(known->second).waiters.push_back(std::move(waiter));
    return;
  }
  Asking asking{.key = std::move(key), .question = std::move(question), .deadline = {}, .waiters = {}, .tried = {}};
  asking.waiters.push_back(std::move(waiter));
  asking.server = choose_server(asking, now);
  attempt(std::move(asking), now);
}

std::size_t Resolver::choose_server(const Asking& asking, Now now) const {
  const auto rank = [&](std::size_t server) {
    return std::tuple(asking.tried.contains(server), pause_until_[server] > now.mono, server);
  };
  std::size_t chosen = 0;
  for (std::size_t server = 1; server < options_.servers; ++server)
    if (rank(server) < rank(chosen)) chosen = server;
  return chosen;
}

void Resolver::attempt(Asking asking, Now now) {
  const AskId id = ++last_ask_;
  ++asking.attempts;
  asking.tried.insert(asking.server);
  asking.deadline = now.mono + kAttemptTime;
  deadlines_.emplace(asking.deadline, id);
  asked_keys_[asking.key] = id;
  commands_.emplace_back(Ask{.id = id,
                             .server = asking.server,
                             .question = asking.question,
                             .dnssec_ok = asking.key.dnssec_ok,
                             .checking_disabled = asking.key.checking_disabled,
                             .over_tcp = asking.over_tcp});
  asking_.emplace(id, std::move(asking));
}

Resolver::Asking Resolver::take(AskingPlace place) {
  Asking asking = std::move(place->second);
  deadlines_.erase({asking.deadline, place->first});
  asked_keys_.erase(asking.key);
  asking_.erase(place);
  return asking;
}

void Resolver::try_next(Asking asking, Now now) {
  if (asking.attempts >= kAttemptsMax) {
    const ForeignAnswer* const refusal = asking.refusal ? &*asking.refusal : nullptr;
    return finish(asking, refusal);
  }
  asking.server = choose_server(asking, now);
  asking.over_tcp = false;
  attempt(std::move(asking), now);
}

void Resolver::on_answer(AskId id, std::optional<ForeignAnswer> answer, Now now) {
  const auto place = asking_.find(id);
  if (place == asking_.end()) return;
  Asking asking = take(place);
  if (!answer) {
    pause_until_[asking.server] = now.mono + kServerPause;
    return try_next(std::move(asking), now);
  }
  if (answer->truncated && !asking.over_tcp && asking.attempts < kAttemptsMax) {
    asking.over_tcp = true;
    return attempt(std::move(asking), now);
  }
  pause_until_[asking.server] = {};
  if (is_refusal(answer->rcode)) {
    const bool others = asking.tried.size() < options_.servers;
    asking.refusal = std::move(answer);
    if (others) return try_next(std::move(asking), now);
    return finish(asking, &*asking.refusal);
  }
  cache_.put(asking.key, *answer, now.mono);
  finish(asking, &*answer);
}

void Resolver::finish(const Asking& asking, const ForeignAnswer* answer) {
  for (const Waiter& waiter : asking.waiters) {
    --waiting_;
    const auto own = waiting_by_client_.find(waiter.client);
    if (own != waiting_by_client_.end() && --own->second == 0) waiting_by_client_.erase(own);
    if (answer == nullptr) {
      reply(waiter.ticket, Rcode::kServerFailure);
    } else {
      commands_.emplace_back(Reply{waiter.ticket, waiter.prefix, answer->message, 0});
    }
  }
}

void Resolver::on_wakeup(Now now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now.mono) {
    const auto place = asking_.find(deadlines_.begin()->second);
    commands_.emplace_back(EndAsk{place->first});
    Asking asking = take(place);
    pause_until_[asking.server] = now.mono + kServerPause;
    try_next(std::move(asking), now);
  }
}

std::optional<Instant> Resolver::next_wakeup() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void Resolver::reply(Ticket ticket, Answer answer) {
  commands_.emplace_back(Reply{ticket, std::move(answer)});
}

void Resolver::reply(Ticket ticket, Rcode rcode) {
  (rcode == Rcode::kServerFailure ? metrics_.failed : metrics_.refused).add();
  Answer answer;
  answer.rcode = rcode;
  reply(ticket, std::move(answer));
}

}  // namespace spillway::dns
