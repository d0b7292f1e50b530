#include "apiserver/flow/flow_control.h"

#include "api/text/duration.h"
#include "apiserver/flow/flow_tables.h"
#include "apiserver/resource/slice_queue.h"
#include "base/rng.h"
#include "policy/flow/seats.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr std::string_view kTryAgain = "Too many requests, please try again later.";
constexpr int kTurnsAtOnce = 16;  // requests that begin in one wake-up; others are served in between
/// The loop's work in a microsecond, in bytes of text that are parsed or written anew (slice_queue.h).
constexpr std::int64_t kBytesPerMicrosecond = 16;
constexpr std::int64_t kRequestWork = 20;  // for any request, in microseconds
constexpr std::int64_t kSeatWork = 1'000;  // the estimated work of a list for each of its seats

constexpr std::array<std::string_view, 5> kHandedOn{"exec", "attach", "portforward", "log", "proxy"};

flow::Asked asked_of(const api::UserInfo& user, const RequestAttributes& asked) {
  return {.user = user.name,
          .groups = user.groups,
          .is_resource = asked.is_resource,
          .verb = asked.verb,
          .group = asked.group,
          .resource = asked.resource,
          .subresource = asked.subresource,
          .ns = asked.ns,
          .path = asked.path};
}

/// A UUID that is the same in every process: it depends on the names alone.
std::string uid_of(std::string_view kind, std::string_view name) {
  const std::uint64_t high = fnv1a64(name, fnv1a64(kind));
  const std::uint64_t low = fnv1a64(kind, fnv1a64(name));
  return fmt::format("{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xfff,
                     0x8000 | (low >> 50), low & 0xffff'ffff'ffffULL);
}

/// Names a schema and its level by the uids of their objects, or by their names.
std::vector<std::shared_ptr<const FlowMark>> marks_of(const flow::Configuration& configuration) {
  std::vector<std::shared_ptr<const FlowMark>> out;
  for (const flow::Schema& schema : configuration.schemas) {
    const auto level = std::ranges::find(configuration.levels, schema.level, &flow::Level::name);
    const bool has_object = level != configuration.levels.end() && !level->uid.empty();
    out.push_back(std::make_shared<const FlowMark>(
        FlowMark{schema.uid.empty() ? uid_of("FlowSchema", schema.name) : schema.uid,
                 has_object ? level->uid : uid_of("PriorityLevelConfiguration", schema.level)}));
  }
  return out;
}

std::optional<Duration> time_of_client(const api::Target& target) {
  const std::string* text = target.find("timeout");
  if (text == nullptr) return std::nullopt;
  const Result<Duration> parsed = api::parse_duration(*text);
  return parsed ? std::optional(*parsed) : std::nullopt;
}

bool is_write(const RequestAttributes& asked) {
  return asked.action == Verb::kCreate || asked.action == Verb::kUpdate || asked.action == Verb::kPatch ||
         asked.action == Verb::kDelete || asked.action == Verb::kDeleteCollection;
}

/// The largest number of objects that a list returns: its limit, unless a selector skips some.
std::size_t first_ones(const api::Target& target) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  const std::string* limit = target.find("limit");
  if (limit == nullptr || target.find("labelSelector") != nullptr || target.find("fieldSelector") != nullptr)
    return kAll;
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(limit->data(), limit->data() + limit->size(), count);
  return error == std::errc{} && end == limit->data() + limit->size() && count > 0 ? count : kAll;
}

/// True for requests whose work is done by a node or pod, not by this server.
bool is_handed_on(const RequestAttributes& asked) {
  return asked.is_resource && std::ranges::find(kHandedOn, asked.subresource) != kHandedOn.end();
}

std::int64_t work_of(const Exchange& exchange) {
  return kRequestWork +
         static_cast<std::int64_t>(exchange.request().body.size() + exchange.effort) / kBytesPerMicrosecond;
}

}  // namespace

FlowControl::FlowControl(Rules rules, Ports ports)
    : is_on_(rules.is_on),
      ports_(std::move(ports)),
      gate_({}, rules.seats),
      metrics_(gate_, ports_.metrics),
      plan_(std::make_shared<const Plan>(0, std::move(rules.flows))),
      published_(plan_) {
  take(plan_->table.configuration());
}

void FlowControl::apply(flow::Configuration flows) {
  if (is_on_) take(std::move(flows));
}

void FlowControl::take(flow::Configuration flows) {
  const auto plan = std::make_shared<Plan>(plan_->generation + 1, std::move(flows));
  const flow::Configuration& configuration = plan->table.configuration();
  plan->places = gate_.reconfigure(configuration);
  plan->marks = marks_of(configuration);
  metrics_.follow();
  plan_ = plan;
  published_.put(plan_);
  arm();
}

/// A seat for every hundred objects that the list visits: the named one, or those of a node, of a namespace, or all.
int FlowControl::seats_of_list(const Exchange& exchange) const {
  const RequestAttributes& asked = exchange.asked;
  const Resource* resource = ports_.core.registry.find(asked.group, asked.version, asked.resource);
  if (resource == nullptr || !resource->stored() || !asked.name.empty()) return 1;
  const ResourceCache& cache = ports_.core.cache.of(*resource);
  if (!asked.node.empty() && cache.indexes_nodes()) {
    const ObjectMap* there = cache.on_node(asked.node);
    return flow::list_seats(there == nullptr ? 0 : there->size());
  }
  const std::size_t all = std::min(cache.objects().size(), first_ones(exchange.target));
  if (flow::list_seats(all) == 1 || asked.below.empty()) return flow::list_seats(all);
  const std::string prefix = asked.below + "/";
  std::size_t count = 0;
  const std::size_t enough = std::min(all, flow::kSeatsMax * std::size_t{100});
  cache.visit(prefix, {}, [&](const ObjectPtr&) { return ++count < enough; });
  return flow::list_seats(count);
}

FlowGate::Demand FlowControl::demand_of(const Exchange& exchange, std::size_t schema, std::string_view name) const {
  const RequestAttributes& asked = exchange.asked;
  FlowGate::Demand demand{.schema = schema, .flow = name, .work = work_of(exchange)};
  demand.wait = flow::wait_max(time_of_client(exchange.target));
  if (!asked.is_resource || !asked.subresource.empty()) return demand;
  if (asked.action == Verb::kList || asked.action == Verb::kDeleteCollection) {
    demand.seats = seats_of_list(exchange);
    demand.work += (demand.seats - 1) * kSeatWork;
  } else if (is_write(asked)) {
    const Resource* resource = ports_.core.registry.find(asked.group, asked.version, asked.resource);
    if (resource == nullptr || !resource->stored()) return demand;
    const std::size_t watchers = ports_.hub.general_count(ports_.core.cache.of(*resource));
    demand.seats = flow::write_seats(watchers);
    demand.lingers = flow::lingers(watchers);
  }
  return demand;
}

std::optional<FlowPlace> FlowControl::place_of(const api::UserInfo& user, const RequestAttributes& asked) const {
  if (!is_on_) return std::nullopt;
  const std::shared_ptr<const Plan> plan = published_.take();
  return FlowPlace{plan->generation, plan->table.classify(asked_of(user, asked))};
}

FlowGate::Entry FlowControl::enter(Exchange& exchange, Ticket& ticket, std::optional<api::Status>& refusal) {
  if (!is_on_ || !exchange.read().flow) return FlowGate::Entry::kRuns;
  const flow::Asked asked = asked_of(exchange.user(), exchange.asked);
  const FlowPlace place = *exchange.read().flow;
  const std::size_t index = place.generation == plan_->generation ? place.schema : plan_->table.classify(asked);
  const std::size_t schema = plan_->places[index];
  exchange.flow = plan_->marks[index];
  if (is_handed_on(exchange.asked)) return FlowGate::Entry::kRuns;
  ticket.id = exchange.id();
  const std::string_view name = flow::flow_name(plan_->table.configuration().schemas[index].by, asked);
  const FlowGate::Entry entry = gate_.enter(ticket, demand_of(exchange, schema, name), ports_.core.now.mono);
  metrics_.arrived(ticket);
  if (entry == FlowGate::Entry::kRuns) {
    metrics_.began(ticket, Duration::zero());
  } else if (entry == FlowGate::Entry::kWaits) {
    arm();
  } else {
    const bool queues = gate_.configuration().levels[gate_.level_of(schema)].limit == flow::Level::Limit::kQueue;
    refusal = refuse(schema, queues ? FlowGate::Refusal::kQueueFull : FlowGate::Refusal::kConcurrencyLimit);
  }
  return entry;
}

api::Status FlowControl::refuse(std::size_t schema, FlowGate::Refusal refusal) {
  metrics_.refused(schema, refusal);
  return api::retry_status(ErrorCode::kTooManyRequests, kTryAgain, gate_.retry_after(schema, ports_.core.now.mono));
}

void FlowControl::exit(const Exchange& exchange, Ticket& ticket) {
  if (ticket.state == Ticket::State::kOutside) return;
  const Instant now = ports_.core.now.mono;
  if (ticket.state == Ticket::State::kWaiting) {
    metrics_.cancelled(ticket.schema);
    metrics_.waited_in_vain(ticket.schema, now - ticket.since);
  } else {
    metrics_.ended(ticket, now - ticket.since);
  }
  gate_.exit(ticket, work_of(exchange), now);
  arm();
}

void FlowControl::release_seats(const Exchange& exchange, Ticket& ticket) {
  if (ticket.state == Ticket::State::kRunning) exit(exchange, ticket);
}

/// Starts waiting requests by a timer, because the caller that freed a seat may be in the middle of an operation.
void FlowControl::arm() {
  const std::optional<Instant> due = gate_.next_turn(ports_.core.now.mono);
  if (timer_ && due && timer_->first <= *due) return;
  if (timer_) ports_.core.timers.cancel(*std::exchange(timer_, std::nullopt));
  if (due) timer_ = ports_.core.timers.at(*due, [this] { take_turns(); });
}

void FlowControl::take_turns() {
  timer_.reset();
  const Instant now = ports_.core.now.mono;
  for (int turn = 0; turn < kTurnsAtOnce; ++turn) {
    const std::optional<FlowGate::Turn> next = gate_.next(now);
    if (!next) break;
    const Ticket& ticket = *next->ticket;
    if (!next->refusal) {
      metrics_.began(ticket, next->waited);
      ports_.on_turn(ticket.id, std::nullopt);
    } else {
      metrics_.waited_in_vain(ticket.schema, next->waited);
      ports_.on_turn(ticket.id, refuse(ticket.schema, *next->refusal));
    }
  }
  arm();
}

std::optional<std::string> FlowControl::page(std::string_view path) const {
  if (!is_on_) return std::nullopt;
  return flow_page(gate_, path, ports_.core.now.mono);
}

}  // namespace spillway::apiserver
