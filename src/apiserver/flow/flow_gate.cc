#include "apiserver/flow/flow_gate.h"

#include "base/check.h"
#include "base/rng.h"
#include "policy/flow/seats.h"

#include <algorithm>

namespace spillway::apiserver {

namespace {

/// Virtual time of a level for a microsecond of work of one that has one share.
constexpr std::int64_t kScale = 1'000;

std::vector<std::size_t> levels_by_schema(const flow::Configuration& configuration) {
  std::vector<std::size_t> out;
  for (const flow::Schema& schema : configuration.schemas) {
    const auto level = std::ranges::find(configuration.levels, schema.level, &flow::Level::name);
    SPILLWAY_CHECK(level != configuration.levels.end());
    out.push_back(static_cast<std::size_t>(level - configuration.levels.begin()));
  }
  return out;
}

}  // namespace

FlowGate::FlowGate(flow::Configuration configuration, int seats)
    : configuration_(std::move(configuration)),
      all_seats_(seats),
      book_(flow::deal_seats(configuration_.levels, seats)),
      level_of_(levels_by_schema(configuration_)),
      counts_(level_of_.size()),
      levels_(configuration_.levels.size()) {}

FlowGate::Entry FlowGate::enter(Ticket& ticket, const Demand& demand, Instant now) {
  SPILLWAY_CHECK(ticket.state == Ticket::State::kOutside);
  give_back_lingering(now);
  const std::size_t index = level_of_[demand.schema];
  const flow::Level& rules = configuration_.levels[index];
  Level& level = levels_[index];
  ticket.schema = demand.schema;
  ticket.seats = flow::bounded_seats(demand.seats, book_.share(index).nominal);
  ticket.lingers = demand.lingers && !is_exempt(index);
  ticket.work = demand.work;
  ticket.since = now;
  ticket.flow = nullptr;
  const bool may_run = is_exempt(index) ? may_be_exempt(demand.schema, ticket.seats)
                                        : level.waiting == 0 && may_start(index, ticket.seats);
  if (may_run) {
    begin(ticket, now);
    if (waiting_ > 0) {
      catch_up(level);
      charge_level(level, index, ticket.work);
    }
    return Entry::kRuns;
  }
  if (rules.limit != flow::Level::Limit::kQueue) {
    ++level.totals.rejected;
    return Entry::kRefused;
  }
  Flow& flow = flow_of(level, demand.schema, demand.flow);
  const auto length = static_cast<std::size_t>(rules.queue_length);
  if (flow.waiting.size() >= length || level.waiting >= static_cast<std::size_t>(rules.queues) * length) {
    ++level.totals.rejected;
    return Entry::kRefused;
  }
  ticket.deadline = now + demand.wait;
  wait(level, flow, ticket);
  is_short_ = is_short_ || book_.is_within_bound(index, ticket.seats);
  return Entry::kWaits;
}

bool FlowGate::may_start(std::size_t level, int seats) const {
  return book_.fits(level, seats) && (!is_short_ || book_.is_guaranteed(level, seats));
}

bool FlowGate::may_be_exempt(std::size_t schema, int seats) const {
  if (configuration_.schemas[schema].name == flow::kExempt) return true;
  return exempt_seats_ + seats <= std::max(1, all_seats_ / kExemptPart);
}

void FlowGate::begin(Ticket& ticket, Instant now) {
  const std::size_t index = level_of_[ticket.schema];
  if (!is_exempt(index)) {
    book_.take(index, ticket.seats);
  } else if (configuration_.schemas[ticket.schema].name != flow::kExempt) {
    exempt_seats_ += ticket.seats;
  }
  Counts& counts = counts_[ticket.schema];
  ++counts.running;
  counts.seats += ticket.seats;
  ++levels_[index].totals.dispatched;
  ticket.state = Ticket::State::kRunning;
  ticket.since = now;
}

/// A level that had no waiting requests gets no credit for the time that has passed.
void FlowGate::catch_up(Level& level) const {
  if (level.waiting == 0) level.finish = std::max(now_, level.finish);
}

void FlowGate::charge_level(Level& level, std::size_t index, std::int64_t work) {
  level.finish += work * kScale / std::max(1, configuration_.levels[index].shares);
}

void FlowGate::wait(Level& level, Flow& flow, Ticket& ticket) {
  ticket.state = Ticket::State::kWaiting;
  ticket.order = ++order_;
  ticket.flow = &flow;
  ticket.epoch = level.epoch;
  catch_up(level);
  flow.waiting.push_back(&ticket);
  if (flow.waiting.size() == 1) {
    flow.finish = std::max(level.now, flow.finish);
    make_ready(level, flow);
  }
  ++level.waiting;
  ++waiting_;
  ++counts_[ticket.schema].waiting;
  deadlines_.emplace(ticket.deadline, ticket.order, &ticket);
}

void FlowGate::make_ready(Level& level, Flow& flow) {
  flow.start = flow.finish;
  level.ready.emplace(flow.start, flow.waiting.front()->order, &flow);
}

void FlowGate::unready(Level& level, Flow& flow) {
  level.ready.erase({flow.start, flow.waiting.front()->order, &flow});
}

/// Removes a waiting request from its queue.
void FlowGate::remove(Level& level, Ticket& ticket) {
  Flow& flow = *ticket.flow;
  unready(level, flow);
  flow.waiting.erase(std::ranges::find(flow.waiting, &ticket));
  if (!flow.waiting.empty()) make_ready(level, flow);
  --level.waiting;
  --waiting_;
  --counts_[ticket.schema].waiting;
  deadlines_.erase({ticket.deadline, ticket.order, &ticket});
  is_changed_ = true;
}

/// Resets the credit of all flows once no request of the level waits.
void FlowGate::calm(Level& level) {
  if (level.waiting == 0) {
    level.flows.clear();
    level.now = 0;
    level.swept = -1;
    ++level.epoch;
  }
  if (waiting_ > 0) return;
  now_ = 0;
  is_short_ = is_changed_ = false;
  for (Level& each : levels_) each.finish = 0;
}

void FlowGate::exit(Ticket& ticket, std::int64_t work, Instant now) {
  Level& level = levels_[level_of_[ticket.schema]];
  if (ticket.state == Ticket::State::kWaiting) {
    remove(level, ticket);
    calm(level);
    ++level.totals.cancelled;
  } else if (ticket.state == Ticket::State::kRunning) {
    --counts_[ticket.schema].running;
    correct_charge(level, ticket, work);
    if (ticket.lingers) {
      lingering_.push_back({now + flow::kLingers, ticket.schema, ticket.seats});
    } else {
      give_back(ticket.schema, ticket.seats);
    }
  }
  ticket.state = Ticket::State::kOutside;
}

/// Charges the flow for the difference between the work done and the estimate.
void FlowGate::correct_charge(Level& level, Ticket& ticket, std::int64_t work) {
  if (ticket.flow == nullptr || ticket.epoch != level.epoch) return;
  const std::size_t index = level_of_[ticket.schema];
  const std::int64_t more = work - ticket.work;
  Flow& flow = *ticket.flow;
  --flow.running;
  if (!flow.waiting.empty()) unready(level, flow);
  flow.finish += more;
  if (!flow.waiting.empty()) make_ready(level, flow);
  charge_level(level, index, more);
}

void FlowGate::give_back(std::size_t schema, int seats) {
  const std::size_t index = level_of_[schema];
  counts_[schema].seats -= seats;
  if (is_exempt(index)) {
    if (configuration_.schemas[schema].name != flow::kExempt) exempt_seats_ -= seats;
    return;
  }
  book_.give(index, seats);
  is_changed_ = waiting_ > 0;
}

void FlowGate::give_back_lingering(Instant now) {
  while (!lingering_.empty() && lingering_.front().until <= now) {
    give_back(lingering_.front().schema, lingering_.front().seats);
    lingering_.pop_front();
  }
}

FlowGate::Flow& FlowGate::flow_of(Level& level, std::size_t schema, std::string_view name) {
  const auto known = level.flows.find(std::pair(schema, name));
  if (known != level.flows.end()) return known->second;
  if (level.flows.size() >= kFlowsMax) sweep(level);
  std::string own(name);
  if (level.flows.size() >= kFlowsMax) own = fmt::format("(shared {})", fnv1a64(name) % kSharedFlows);
  Flow& flow = level.flows[{schema, std::move(own)}];
  flow.schema = schema;
  return flow;
}

/// Forgets flows that a new one of their name would not differ from.
void FlowGate::sweep(Level& level) {
  if (level.swept == level.now) return;
  level.swept = level.now;
  std::erase_if(level.flows, [&](const auto& each) {
    const Flow& flow = each.second;
    return flow.waiting.empty() && flow.running == 0 && flow.finish <= level.now;
  });
}

std::optional<FlowGate::Turn> FlowGate::take_late(Instant now) {
  if (deadlines_.empty() || std::get<Instant>(*deadlines_.begin()) > now) return std::nullopt;
  Ticket& ticket = *std::get<Ticket*>(*deadlines_.begin());
  Level& level = levels_[level_of_[ticket.schema]];
  remove(level, ticket);
  calm(level);
  ++level.totals.timed_out;
  ticket.state = Ticket::State::kOutside;
  return Turn{&ticket, now - ticket.since, Refusal::kTimeOut};
}

/// The next level, among those whose first request can have its seats. The first request that lacks common seats keeps
/// them from the others; one that lacks seats of its level's own bound does not.
std::optional<std::size_t> FlowGate::pick() {
  is_short_ = false;
  std::vector<bool> checked(levels_.size());
  for (;;) {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      if (checked[i] || levels_[i].waiting == 0) continue;
      if (!first || levels_[i].finish < levels_[*first].finish) first = i;
    }
    if (!first) return std::nullopt;
    checked[*first] = true;
    const int seats = std::get<Flow*>(*levels_[*first].ready.begin())->waiting.front()->seats;
    if (may_start(*first, seats)) return first;
    is_short_ = is_short_ || book_.is_within_bound(*first, seats);
  }
}

FlowGate::Turn FlowGate::start(std::size_t index, Instant now) {
  Level& level = levels_[index];
  Flow& flow = *std::get<Flow*>(*level.ready.begin());
  Ticket& ticket = *flow.waiting.front();
  const Duration waited = now - ticket.since;
  now_ = std::max(now_, level.finish);
  level.now = std::max(level.now, flow.start);
  flow.finish = flow.start + ticket.work;
  remove(level, ticket);
  ++flow.running;
  charge_level(level, index, ticket.work);
  begin(ticket, now);
  calm(level);
  return {&ticket, waited, std::nullopt};
}

std::optional<FlowGate::Turn> FlowGate::next(Instant now) {
  give_back_lingering(now);
  if (auto late = take_late(now)) return late;
  if (!is_changed_) return std::nullopt;
  if (const auto level = pick()) return start(*level, now);
  is_changed_ = false;
  return std::nullopt;
}

std::optional<Instant> FlowGate::next_turn(Instant now) const {
  if (waiting_ == 0) return std::nullopt;
  if (is_changed_) return now;
  const Instant deadline = std::get<Instant>(*deadlines_.begin());
  return lingering_.empty() ? deadline : std::min(deadline, lingering_.front().until);
}

int FlowGate::retry_after(std::size_t schema, Instant now) {
  return levels_[level_of_[schema]].advice.refuse(now);
}

bool FlowGate::is_idle(std::size_t schema) const {
  const Counts& counts = counts_[schema];
  return counts.waiting == 0 && counts.running == 0 && counts.seats == 0;
}

/// Gives each level of the next configuration its place. A level that is gone keeps one share until it is idle.
void FlowGate::place_levels(const flow::Configuration& next) {
  std::vector<flow::Level>& levels = configuration_.levels;
  std::vector<bool> is_next(levels.size());
  for (const flow::Level& level : next.levels) {
    auto at = std::ranges::find(levels, level.name, &flow::Level::name);
    if (at == levels.end()) at = std::ranges::find(levels, std::string_view(), &flow::Level::name);
    const auto place = static_cast<std::size_t>(at - levels.begin());
    if (at == levels.end()) {
      levels.emplace_back();
      levels_.emplace_back();
      is_next.push_back(false);
    }
    levels[place] = level;
    is_next[place] = true;
  }
  for (std::size_t place = 0; place < levels.size(); ++place) {
    if (is_next[place]) continue;
    levels[place].shares = std::min(levels[place].shares, 1);
    levels[place].lendable_percent = levels[place].floor_percent = 0;
  }
}

/// A schema that moves to another level has a new place.
std::size_t FlowGate::place_schema(const flow::Schema& schema) {
  std::vector<flow::Schema>& schemas = configuration_.schemas;
  auto at = std::ranges::find_if(
      schemas, [&](const flow::Schema& each) { return each.name == schema.name && each.level == schema.level; });
  if (at == schemas.end()) at = std::ranges::find(schemas, std::string_view(), &flow::Schema::name);
  const auto place = static_cast<std::size_t>(at - schemas.begin());
  if (at == schemas.end()) {
    schemas.emplace_back();
    counts_.emplace_back();
    level_of_.push_back(0);
  }
  schemas[place] = {.name = schema.name, .level = schema.level, .by = schema.by, .rules = {}};
  const auto level = std::ranges::find(configuration_.levels, schema.level, &flow::Level::name);
  SPILLWAY_CHECK(level != configuration_.levels.end());
  level_of_[place] = static_cast<std::size_t>(level - configuration_.levels.begin());
  return place;
}

/// Frees the places that the next configuration does not need, and that no request holds.
void FlowGate::free_places(const flow::Configuration& next) {
  std::vector<flow::Schema>& schemas = configuration_.schemas;
  std::vector<bool> is_needed(levels_.size());
  for (std::size_t place = 0; place < schemas.size(); ++place) {
    const bool remains = std::ranges::any_of(next.schemas, [&](const flow::Schema& each) {
      return each.name == schemas[place].name && each.level == schemas[place].level;
    });
    if (!remains && is_idle(place)) schemas[place] = {.name = {}, .level = {}, .rules = {}};
    if (!schemas[place].name.empty()) is_needed[level_of_[place]] = true;
  }
  for (std::size_t place = 0; place < levels_.size(); ++place) {
    const std::string& name = configuration_.levels[place].name;
    if (is_needed[place] || std::ranges::find(next.levels, name, &flow::Level::name) != next.levels.end()) continue;
    configuration_.levels[place] = {.name = {}, .shares = 0};
    const std::uint64_t epoch = levels_[place].epoch + 1;
    levels_[place] = Level();
    levels_[place].epoch = epoch;
  }
}

std::vector<std::size_t> FlowGate::reconfigure(const flow::Configuration& next) {
  std::vector<int> held;
  for (std::size_t level = 0; level < levels_.size(); ++level) held.push_back(book_.held(level));
  free_places(next);
  place_levels(next);
  std::vector<std::size_t> places;
  for (const flow::Schema& schema : next.schemas) places.push_back(place_schema(schema));
  book_ = flow::SeatBook(flow::deal_seats(configuration_.levels, all_seats_), std::move(held));
  is_short_ = false;
  is_changed_ = waiting_ > 0;
  return places;
}

void FlowGate::visit_flows(std::size_t level,
                           const std::function<void(std::string_view name, const Flow&)>& visit) const {
  for (const auto& [key, flow] : levels_[level].flows) visit(key.second, flow);
}

}  // namespace spillway::apiserver
