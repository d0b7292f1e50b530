#include "controllers/workloads/horizontal_autoscaler.h"

#include <algorithm>
#include <vector>

namespace spillway::controllers {

namespace {

constexpr std::size_t kPluralsMax = 64;

using Action = AutoscalerMetrics::Action;
using Failure = AutoscalerMetrics::Failure;

Action action_of(std::int32_t wanted, std::int32_t present) {
  if (wanted == present) return Action::kNone;
  return wanted > present ? Action::kScaleUp : Action::kScaleDown;
}

bool same_wishes(const api::HorizontalPodAutoscaler& one, const api::HorizontalPodAutoscaler& other) {
  return one.target == other.target && one.min_replicas == other.min_replicas &&
         one.max_replicas == other.max_replicas && one.metrics == other.metrics && one.behavior == other.behavior;
}

}  // namespace

/// The progress of one sync.
struct HorizontalAutoscalerController::Look {
  AutoscalerPtr autoscaler;
  std::string key;
  std::string scale_path;
  api::Json scale_document;
  autoscaling::Scale scale;
  std::vector<autoscaling::PodPtr> pods;
  std::vector<std::string> selecting;
  std::vector<autoscaling::MetricTarget> targets;
  std::vector<autoscaling::MetricAnswer> answers;
  autoscaling::AutoscalerPlan plan;
  Instant begin{};
  Instant asked{};                                                      // when the present metric was requested
  std::vector<Duration> waited;                                         // for each answer
  AutoscalerMetrics::Action action = AutoscalerMetrics::Action::kNone;  // the executed action
};

HorizontalAutoscalerController::HorizontalAutoscalerController(
    Shared shared, client::Informer<api::HorizontalPodAutoscaler>& autoscalers, telemetry::Registry& metrics,
    autoscaling::Settings settings)
    : shared_(shared),
      autoscalers_(autoscalers),
      queue_metrics_(metrics, "horizontalpodautoscaler"),
      autoscaler_metrics_(metrics),
      settings_(settings) {
  autoscalers_.cache().listen(
      {[this](const auto& before, const auto& after, Now now) { on_autoscaler(before, after, now); }});
}

void HorizontalAutoscalerController::start(Now now) {
  started_ = true;
  for (const auto& [key, autoscaler] : autoscalers_.cache().all()) queue_.add(key, now.mono);
}

void HorizontalAutoscalerController::on_autoscaler(const AutoscalerPtr& before, const AutoscalerPtr& after, Now now) {
  const bool another = !before || !after || before->metadata.uid != after->metadata.uid;
  if (before && another) memory_.erase(before->metadata.uid);
  if (!after) return;
  const std::string key = client::key_of(after->metadata);
  if (another) memory_[after->metadata.uid] = {after->metadata.ns, key, {}, {}};
  if (started_ && (another || !same_wishes(*before, *after))) queue_.add(key, now.mono);
}

void HorizontalAutoscalerController::run(Now now) {
  if (!started_) return;
  while (const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono)) look(*key, now);
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void HorizontalAutoscalerController::arm() {
  wake_up_.set(shared_.client, queue_.next_due());
}

void HorizontalAutoscalerController::look(const std::string& key, Now now) {
  const AutoscalerPtr autoscaler = autoscalers_.cache().find(key);
  if (!autoscaler) {
    queue_.done(key);
    return queue_.forget(key);
  }
  const auto begun = std::make_shared<Look>();
  begun->autoscaler = autoscaler;
  begun->key = key;
  begun->begin = now.mono;
  resolve(
      autoscaler->target.api_version, autoscaler->target.kind,
      [this, begun](const Result<autoscaling::PluralKind>& plural, Now then) {
        if (!plural) return give_up(begun, plural.error(), then);
        ask_scale(begun, *plural);
      },
      now);
}

void HorizontalAutoscalerController::resolve(const std::string& api_version, const std::string& kind, Resolved done,
                                             Now now) {
  if (const auto known = plurals_.find({api_version, kind}); known != plurals_.end()) return done(known->second, now);
  const auto path = autoscaling::version_path(api_version);
  if (!path) return done(path.error(), now);
  shared_.client.get(*path, [this, api_version, kind, done](const Result<api::Json>& outcome, Now then) {
    if (!outcome && outcome.error().code != ErrorCode::kNotFound) return done(outcome.error(), then);
    const auto found = outcome ? autoscaling::plural_of(*outcome, api_version, kind)
                               : Result<autoscaling::PluralKind>(autoscaling::unknown_kind(api_version, kind));
    if (!found) return done(found.error(), then);
    if (plurals_.size() >= kPluralsMax) plurals_.clear();
    plurals_[{api_version, kind}] = *found;
    done(found, then);
  });
}

void HorizontalAutoscalerController::ask_scale(const LookPtr& look, const autoscaling::PluralKind& plural) {
  look->scale_path = autoscaling::scale_path(*look->autoscaler, plural).value();  // its version was checked before
  shared_.client.get(look->scale_path, [this, look](const Result<api::Json>& outcome, Now then) {
    if (!outcome) return give_up(look, outcome.error(), then);
    on_scale(look, *outcome, then);
  });
}

void HorizontalAutoscalerController::on_scale(const LookPtr& look, const api::Json& document, Now now) {
  look->scale_document = document;
  look->scale = autoscaling::read_scale(document);
  select(*look);
  const bool asks = look->selecting.size() == 1 && !look->scale.selector.empty() &&
                    autoscaling::needs_metrics(*look->autoscaler, look->scale);
  if (asks) look->targets = autoscaling::metric_targets(*look->autoscaler);
  ask_metrics(look, now);
}

void HorizontalAutoscalerController::select(Look& look) {
  const api::HorizontalPodAutoscaler& own = *look.autoscaler;
  const std::string& ns = own.metadata.ns;
  look.selecting = {look.key};
  const auto selector = api::parse_label_selector(look.scale.selector);
  if (!selector || look.scale.selector.empty()) return;
  if (const auto memory = memory_.find(own.metadata.uid); memory != memory_.end()) memory->second.selector = *selector;
  const auto& pods = shared_.pods.cache().all();
  const std::string prefix = ns + "/";
  for (auto at = pods.lower_bound(prefix); at != pods.end() && at->first.starts_with(prefix); ++at) {
    if (selector->matches(at->second->metadata.labels)) look.pods.push_back(at->second);
  }
  for (const auto& [uid, memory] : memory_) {
    if (memory.ns != ns || memory.key == look.key) continue;
    const AutoscalerPtr other = autoscalers_.cache().find(memory.key);
    const bool same_target = other && other->target == own.target;
    const bool same_pods = memory.selector && std::ranges::any_of(look.pods, [&](const autoscaling::PodPtr& pod) {
                             return memory.selector->matches(pod->metadata.labels);
                           });
    if (same_target || same_pods) look.selecting.push_back(memory.key);
  }
  std::ranges::sort(look.selecting);
}

void HorizontalAutoscalerController::ask_metrics(const LookPtr& look, Now now) {
  if (look->answers.size() == look->targets.size()) return decide(look, now);
  autoscaling::MetricTarget target = look->targets[look->answers.size()];
  look->asked = now.mono;
  if (target.kind != autoscaling::MetricKind::kObject) return ask_metric(look, std::move(target), {});
  const std::string api_version = target.described.api_version;
  const std::string kind = target.described.kind;
  resolve(
      api_version, kind,
      [this, look, target = std::move(target)](const Result<autoscaling::PluralKind>& plural, Now then) {
        if (!plural) {
          look->answers.push_back({target, plural.error()});
          look->waited.push_back(then.mono - look->asked);
          return ask_metrics(look, then);
        }
        ask_metric(look, target, plural->text());
      },
      now);
}

void HorizontalAutoscalerController::ask_metric(const LookPtr& look, autoscaling::MetricTarget target,
                                                const std::string& described) {
  std::string path = autoscaling::question_path(target, look->autoscaler->metadata.ns, look->scale.selector, described);
  shared_.client.get(std::move(path),
                     [this, look, target = std::move(target)](const Result<api::Json>& outcome, Now then) {
                       look->answers.push_back({target, outcome});
                       look->waited.push_back(then.mono - look->asked);
                       ask_metrics(look, then);
                     });
}

void HorizontalAutoscalerController::decide(const LookPtr& look, Now now) {
  const auto memory = memory_.find(look->autoscaler->metadata.uid);
  if (memory == memory_.end()) return finish(look, now);  // deleted meanwhile
  look->plan = autoscaling::plan_autoscaler(
      {*look->autoscaler, look->scale, look->pods, look->selecting, look->answers, memory->second.history, settings_},
      now);
  count_metrics(*look);
  resize(look, now);
}

void HorizontalAutoscalerController::resize(const LookPtr& look, Now now) {
  if (!look->plan.replicas) return finish(look, now);
  api::Json scale = look->scale_document;
  scale.make({"spec"})["replicas"] = *look->plan.replicas;
  shared_.client.update(look->scale_path, std::move(scale), [this, look](const Result<api::Json>& outcome, Now then) {
    if (outcome) {
      look->action = action_of(*look->plan.replicas, look->scale.replicas);
      autoscaling::note_scaled(look->plan, *look->autoscaler, look->scale, settings_.down_stabilization, then);
    } else {
      autoscaling::note_not_scaled(look->plan, *look->autoscaler, outcome.error(), then);
    }
    finish(look, then);
  });
}

void HorizontalAutoscalerController::give_up(const LookPtr& look, const Error& error, Now now) {
  const auto memory = memory_.find(look->autoscaler->metadata.uid);
  look->plan = autoscaling::plan_without_scale(*look->autoscaler, error, now);
  if (memory != memory_.end()) look->plan.history = memory->second.history;
  finish(look, now);
}

void HorizontalAutoscalerController::finish(const LookPtr& look, Now now) {
  queue_.done(look->key);
  queue_.add(look->key, now.mono + settings_.period);
  const auto memory = memory_.find(look->autoscaler->metadata.uid);
  if (memory == memory_.end()) return;
  memory->second.history = look->plan.history;
  for (const autoscaling::AutoscalerEvent& event : look->plan.events) {
    shared_.events.record(client::reference_to(*look->autoscaler),
                          event.warning ? client::EventType::kWarning : client::EventType::kNormal, event.reason,
                          event.message, now);
  }
  if (look->plan.status == look->autoscaler->status) return count(look, true, now);
  const api::ObjectMeta& metadata = look->autoscaler->metadata;
  api::Json patch = api::Json::object({{"metadata", api::Json::object({{"uid", metadata.uid}})},
                                       {"status", autoscaling::status_document(look->plan.status)}});
  shared_.client.patch(client::object_path(api::HorizontalPodAutoscaler::kApiVersion, "horizontalpodautoscalers",
                                           metadata.ns, metadata.name, "status"),
                       client::PatchType::kMerge, std::move(patch),
                       [this, look](const Result<api::Json>& outcome, Now then) {
                         count(look, outcome.has_value(), then);
                         if (outcome || outcome.error().code == ErrorCode::kNotFound) return;
                         shared_.log.warning("the status of an autoscaler was not written",
                                             {{"autoscaler", look->key}, {"error", outcome.error().text()}});
                       });
}

void HorizontalAutoscalerController::count(const LookPtr& look, bool status_written, Now now) {
  Failure failure = look->plan.failed || !status_written ? Failure::kInternal : Failure::kNone;
  if (std::ranges::count(look->autoscaler->target.api_version, '/') > 1) failure = Failure::kSpec;  // no version
  autoscaler_metrics_.count_look(look->action, failure, now.mono - look->begin);
}

/// Compares with the replicas of the status before.
void HorizontalAutoscalerController::count_metrics(const Look& look) {
  const std::int32_t present = look.autoscaler->status.current_replicas;
  for (std::size_t i = 0; i < look.plan.proposals.size(); ++i) {
    const std::optional<std::int32_t>& proposal = look.plan.proposals[i];
    autoscaler_metrics_.count_metric(look.targets[i].kind, proposal ? action_of(*proposal, present) : Action::kNone,
                                     proposal ? Failure::kNone : Failure::kInternal, look.waited[i]);
  }
}

}  // namespace spillway::controllers
