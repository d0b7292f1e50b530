#include "apiserver/collect/role_aggregator.h"

#include "apiserver/collect/bootstrap.h"
#include "apiserver/roles/aggregation.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {
namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kManager = "clusterrole-aggregation-controller";
constexpr Duration kAggregationRetry = seconds(1);
constexpr Duration kQuiet = minutes(2);  // after this time without a write, the next one is not delayed

/// True if every one of `rules` is in `there` already.
bool are_fewer_rules(const Json* there, const Json& rules) {
  const Json::Array* const held = there == nullptr ? nullptr : there->if_array();
  const Json::Array* const left = rules.if_array();
  if (held == nullptr || left == nullptr) return left == nullptr;
  return left->size() < held->size() &&
         std::ranges::all_of(*left, [held](const Json& rule) { return std::ranges::find(*held, rule) != held->end(); });
}

bool is_not_accepted(const api::Status& status) {
  constexpr int kTooLarge = 413;
  constexpr int kInvalid = 422;
  return status.code == kTooLarge || status.code == kInvalid;
}

}  // namespace

RoleAggregator::RoleAggregator(Core& core, Writer& writer)
    : core_(core),
      writer_(writer),
      roles_(core.cache.of(core.registry.get("clusterroles.rbac.authorization.k8s.io"))) {}

void RoleAggregator::load() {
  gatherers_.clear();
  dirty_.clear();
  for (const auto& [name, role] : roles_.objects()) know(*role);
}

void RoleAggregator::know(const StoredObject& role) {
  std::vector<api::LabelSelector> selectors = aggregation_selectors(*role.shared_document());
  if (selectors.empty()) {
    gatherers_.erase(role.name);
    return;
  }
  Gatherer& known = gatherers_[role.name];
  known.selectors = std::move(selectors);
  known.is_logged = false;
  dirty_.insert(role.name);
}

void RoleAggregator::mark_gatherers(const std::string& name, const api::StringMap& labels) {
  for (auto& [gatherer, known] : gatherers_) {
    if (gatherer == name) continue;
    if (!std::ranges::any_of(known.selectors, [&](const auto& selector) { return selector.matches(labels); })) continue;
    known.is_logged = false;
    dirty_.insert(gatherer);
  }
}

void RoleAggregator::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache != &roles_) return;
  for (const ObjectPtr& state : {event->previous, event->object}) {
    if (state) mark_gatherers(state->name, state->meta.labels);
  }
  if (event->object) {
    know(*event->object);
  } else {
    gatherers_.erase(event->previous->name);
  }
}

void RoleAggregator::act() {
  while (!is_writing_ && !dirty_.empty()) {
    const std::string name = *dirty_.begin();
    dirty_.erase(dirty_.begin());
    sync(name);
  }
}

void RoleAggregator::sync(const std::string& name) {
  const auto known = gatherers_.find(name);
  const ObjectPtr role = roles_.find(name);
  if (known == gatherers_.end() || !role || role->meta.deleting) return;
  const api::DocumentPtr document = role->shared_document();
  const std::optional<Json> rules = gathered(*document);
  if (!rules) return log_failure(name, "the rules that it gathers are too many");
  if (are_same_rules(document->find("rules"), &*rules)) return;
  const auto& written = known->second.written;
  const bool is_early = written && core_.now.mono < *written + known->second.pause.wait();
  // A rule that was taken away takes effect at once; only rules that were given before can be taken away, so this is
  // bounded.
  if (is_early && !are_fewer_rules(document->find("rules"), *rules)) {
    return requeue(name, *written + known->second.pause.wait());
  }
  write(name);
}

std::optional<Json> RoleAggregator::gathered(const Json& role) const {
  std::vector<GatheredRole> by_name;
  by_name.reserve(roles_.objects().size());
  for (const auto& [name, each] : roles_.objects()) {
    by_name.push_back({name, &each->meta.labels, [object = each.get()] { return object->shared_document(); }});
  }
  return aggregated_rules(role, by_name, kGatheredBytesMax);
}

void RoleAggregator::write(const std::string& name) {
  Gatherer& known = gatherers_.at(name);
  const Instant now = core_.now.mono;
  const bool is_quiet = !known.written || *known.written + kQuiet < now;
  if (is_quiet) known.pause.reset();
  known.pause.next();
  known.written = now;
  is_writing_ = true;
  UpdateJob job{.resource = &roles_.resource(),
                .name = name,
                .change = [this](const Json& current) -> StatusResult<Json> {
                  Json role = current;
                  if (current.find("aggregationRule") == nullptr) return role;  // removed meanwhile
                  if (std::optional<Json> rules = gathered(current)) role["rules"] = *std::move(rules);
                  return role;
                },
                .trusted = true,
                .context = {server_user(), std::string(kManager), false}};
  writer_.update(std::move(job), [this, name](const StatusResult<Written>& result) { on_written(name, result); });
}

void RoleAggregator::on_written(const std::string& name, const StatusResult<Written>& result) {
  is_writing_ = false;
  if (!result && is_not_accepted(result.error())) {
    log_failure(name, result.error().message);
  } else if (!result && result.error().code != 404) {
    requeue(name, core_.now.mono + kAggregationRetry);
  }
  run();
}

/// Logs a failure once, until one of the aggregated roles changes.
void RoleAggregator::log_failure(const std::string& name, std::string_view why) {
  const auto known = gatherers_.find(name);
  if (known == gatherers_.end() || std::exchange(known->second.is_logged, true)) return;
  core_.log.warning("an aggregated ClusterRole was not updated", {{"role", name}, {"error", why}});
}

void RoleAggregator::requeue(const std::string& name, Instant due) {
  if (!waiting_.insert(name).second) return;
  core_.timers.at(due, [this, name] {
    waiting_.erase(name);
    dirty_.insert(name);
    run();
  });
}

}  // namespace spillway::apiserver
