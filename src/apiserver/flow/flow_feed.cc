#include "apiserver/flow/flow_feed.h"

#include "policy/flow/documents.h"

#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

/// Puts the present form of an object into `all`. False: nothing has changed, or only the object's status.
template <typename Named>
bool follow_object(std::map<std::string, Named, std::less<>>& all, const EventPtr& event,
                   Named (*read)(const api::Json&)) {
  if (!event->object) return event->previous && all.erase(event->previous->name) > 0;
  Named now = read(event->object->document());
  const auto known = all.find(event->object->name);
  if (known != all.end() && known->second == now) return false;
  all.insert_or_assign(event->object->name, std::move(now));
  return true;
}

template <typename Named>
std::vector<Named> values_of(const std::map<std::string, Named, std::less<>>& all) {
  std::vector<Named> out;
  out.reserve(all.size());
  for (const auto& [name, value] : all) out.push_back(value);
  return out;
}

}  // namespace

FlowFeed::FlowFeed(Core& core, FlowControl& flows)
    : core_(core),
      flows_(flows),
      stored_schemas_(core.cache.of(core.registry.get("flowschemas.flowcontrol.apiserver.k8s.io"))),
      stored_levels_(core.cache.of(core.registry.get("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"))) {}

std::size_t FlowFeed::words_but(std::string_view name) const {
  std::size_t words = 0;
  for (const auto& [of, schema] : schemas_) words += of == name ? 0 : flow::words_of(schema);
  return words;
}

void FlowFeed::load() {
  schemas_.clear();
  levels_.clear();
  for (const auto& [key, object] : stored_schemas_.objects())
    schemas_[object->name] = flow::schema_of(object->document());
  for (const auto& [key, object] : stored_levels_.objects()) levels_[object->name] = flow::level_of(object->document());
  is_dirty_ = !schemas_.empty() || !levels_.empty();
}

void FlowFeed::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache == &stored_schemas_) {
    is_dirty_ = follow_object(schemas_, event, flow::schema_of) || is_dirty_;
  } else if (&cache == &stored_levels_) {
    is_dirty_ = follow_object(levels_, event, flow::level_of) || is_dirty_;
  }
}

void FlowFeed::act() {
  if (!is_dirty_ || is_waiting_) return;
  const Instant now = core_.now.mono;
  if (!pace_) pace_.emplace(BucketKind::kContinuous, kPerSecond, kBurst, now);
  if (!pace_->try_take(now)) {
    is_waiting_ = true;
    core_.timers.at(pace_->next_grant(now).value_or(now + seconds(1)), [this] {
      is_waiting_ = false;
      act();
    });
    return;
  }
  is_dirty_ = false;
  flows_.apply(flow::assemble(values_of(schemas_), values_of(levels_)));
}

}  // namespace spillway::apiserver
