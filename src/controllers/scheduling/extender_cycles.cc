#include "controllers/scheduling/extender_cycles.h"

#include "controllers/shared/paths.h"
#include "policy/scheduling/extender_answer.h"

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

using scheduling::ExtenderVerb;

}  // namespace

bool is_same_document(const Result<api::Json>& document, const api::Pod& pod) {
  return document && document->string_at({"metadata", "uid"}) == pod.metadata.uid;
}

bool ExtenderCycles::concerns(const api::Pod& pod) const {
  return !parts_.extender_calls.asked_for(ExtenderVerb::kFilter, pod).empty() ||
         !parts_.extender_calls.asked_for(ExtenderVerb::kPrioritize, pod).empty() ||
         !parts_.extender_calls.asked_for(ExtenderVerb::kBind, pod).empty();
}

void ExtenderCycles::line_up(const PodPtr& pod) {
  if (cycles_.contains(pod->metadata.uid)) return;
  line_.emplace(-static_cast<std::int64_t>(api::priority_of(*pod)), ++turns_, pod->key().text());
}

void ExtenderCycles::begin(std::size_t cycles_max, Now now) {
  while (cycles_.size() < cycles_max && !line_.empty()) {
    const client::ObjectKey key = std::get<client::ObjectKey>(*line_.begin());
    line_.erase(line_.begin());
    const PodPtr pod = parts_.pods.cache().find(key);
    if (!pod || !hooks_.still_waiting(pod) || cycles_.contains(pod->metadata.uid)) continue;
    begin_cycle(pod, true, now);
  }
}

void ExtenderCycles::begin_cycle(const PodPtr& pod, bool uses_promise, Now now) {
  const client::ObjectKey key = pod->key().text();
  const scheduling::PodVolumes pod_volumes(*pod, hooks_.volumes_now());
  if (!pod_volumes.problem().empty()) {
    parts_.refused.add_claimant(key);
    return hooks_.on_refused(pod, scheduling::refuse_everywhere(pod_volumes.problem(), parts_.placer.nodes().size()),
                             {}, now);
  }
  api::Pod asking = *pod;
  if (!uses_promise) asking.status.nominated_node_name.clear();
  const scheduling::Profile& profile = parts_.placer.profile_of(*pod);
  const scheduling::VolumeFilter volumes = pod_volumes.filter();
  if (volumes) parts_.refused.add_claimant(key);  // changes during the extenders' calls must requeue it
  const auto count = static_cast<std::int64_t>(parts_.placer.nodes().size());
  auto cycle = std::make_shared<Cycle>();
  cycle->survey = scheduling::survey_nodes(
      asking, parts_.placer.nodes(), profile, volumes, parts_.placer.surroundings(),
      {.first = next_node_,
       .enough = static_cast<std::size_t>(scheduling::feasible_nodes_enough(count, profile.share))});
  if (cycle->survey.fitting.empty()) {
    return hooks_.on_refused(pod, scheduling::refusal_of(std::move(cycle->survey), parts_.placer.nodes().size()),
                             volumes, now);
  }
  for (const scheduling::FittingNode& node : cycle->survey.fitting) cycle->names.push_back(*node.name);
  std::ranges::sort(cycle->names);
  const std::string& promised = asking.status.nominated_node_name;
  cycle->promised_alone = !promised.empty() && cycle->names == std::vector{promised};
  if (!cycle->promised_alone) next_node_ = (next_node_ + cycle->survey.scanned) % parts_.placer.nodes().size();
  cycle->survey.fitting.clear();  // the survey names nodes that may go
  cycle->pod = pod;
  cycle->uses_promise = uses_promise;
  cycle->filters = parts_.extender_calls.asked_for(ExtenderVerb::kFilter, *pod);
  cycles_[pod->metadata.uid] = cycle;
  parts_.client.get(pod_path(*pod),
                    [this, cycle](const auto& document, Now then) { on_pod_read(cycle, document, then); });
}

void ExtenderCycles::on_pod_read(const CyclePtr& cycle, const Result<api::Json>& document, Now now) {
  if (!is_current(cycle)) return;
  if (!is_same_document(document, *cycle->pod)) {
    cycles_.erase(cycle->pod->metadata.uid);
    return parts_.queue.fail(cycle->pod->key().text(), now.mono);
  }
  cycle->document = *document;
  filter_next(cycle, now);
}

bool ExtenderCycles::is_current(const CyclePtr& cycle) const {
  const auto known = cycles_.find(cycle->pod->metadata.uid);
  return known != cycles_.end() && known->second == cycle;
}

std::vector<client::ObjectKey> ExtenderCycles::keys() const {
  std::vector<client::ObjectKey> keys;
  for (const auto& [uid, cycle] : cycles_) keys.push_back(cycle->pod->key().text());
  return keys;
}

void ExtenderCycles::filter_next(const CyclePtr& cycle, Now now) {
  std::erase_if(cycle->names, [this](const std::string& name) { return !parts_.placer.nodes().contains(name); });
  if (cycle->names.empty()) return refuse(cycle, now);
  if (cycle->next_filter == cycle->filters.size()) return score(cycle, now);
  const std::size_t extender = cycle->filters[cycle->next_filter];
  parts_.extender_calls.ask(
      extender, ExtenderVerb::kFilter,
      scheduling::node_question(parts_.extender_calls[extender], cycle->document, cycle->names, parts_.placer.nodes()),
      now, [this, cycle](const Result<std::string>& body, Now then) { on_filtered(cycle, body, then); });
}

void ExtenderCycles::on_filtered(const CyclePtr& cycle, const Result<std::string>& body, Now now) {
  if (!is_current(cycle)) return;
  const std::size_t extender = cycle->filters[cycle->next_filter++];
  Result<scheduling::FilterAnswer> answer = scheduling::FilterAnswer();
  if (!body) {
    answer = body.error();
  } else {
    answer = scheduling::read_filter_answer(parts_.extender_calls[extender], cycle->names, *body);
    if (!answer) answer = parts_.extender_calls.disbelieve(extender, ExtenderVerb::kFilter, answer.error());
  }
  if (!answer && !parts_.extender_calls[extender].ignorable) return fail(cycle, answer.error(), now);
  if (answer) {
    parts_.extender_calls.count_refusals(extender, answer->refused.size());
    for (const auto& [name, no] : answer->refused) {
      cycle->survey.refused.insert_or_assign(
          name, scheduling::Refusal{.filter = scheduling::Filter::kExtender,
                                    .misfits = {misfit_of(parts_.extender_calls[extender], no)},
                                    .hopeless = !no.resolvable});
    }
    cycle->names = std::move(answer->allowed);
  }
  filter_next(cycle, now);
}

void ExtenderCycles::score(const CyclePtr& cycle, Now now) {
  for (const std::string& name : cycle->names) cycle->points[name] = 0;
  const std::vector<std::size_t> extenders = parts_.extender_calls.asked_for(ExtenderVerb::kPrioritize, *cycle->pod);
  if (extenders.empty() || cycle->names.size() == 1) return place(cycle, now);
  cycle->unanswered = extenders.size();
  for (const std::size_t extender : extenders) {
    parts_.extender_calls.ask(extender, ExtenderVerb::kPrioritize,
                              scheduling::node_question(parts_.extender_calls[extender], cycle->document, cycle->names,
                                                        parts_.placer.nodes()),
                              now, [this, cycle, extender](const Result<std::string>& body, Now then) {
                                on_scored(cycle, extender, body, then);
                              });
  }
}

void ExtenderCycles::on_scored(const CyclePtr& cycle, std::size_t extender, const Result<std::string>& body, Now now) {
  if (!is_current(cycle)) return;
  if (body) {
    const auto scores = scheduling::read_scores(parts_.extender_calls[extender], cycle->names, *body);
    if (!scores) {
      parts_.extender_calls.disbelieve(extender, ExtenderVerb::kPrioritize, scores.error());
    } else {
      for (const auto& [name, points] : *scores) cycle->points[name] += points;
    }
  }  // an extender without an answer has no preference
  if (--cycle->unanswered == 0) place(cycle, now);
}

void ExtenderCycles::place(const CyclePtr& cycle, Now now) {
  cycles_.erase(cycle->pod->metadata.uid);
  const PodPtr pod = hooks_.still_waiting(cycle->pod);
  if (!pod) return;
  const scheduling::PodVolumes volumes(*pod, hooks_.volumes_now());
  scheduling::Placement placement;
  if (volumes.problem().empty()) {
    placement = scheduling::place_among(*pod, cycle->points, parts_.placer.nodes(), parts_.placer.profile_of(*pod),
                                        volumes.filter(), parts_.placer.surroundings());
  }
  if (placement.node) return hooks_.on_placed(pod, placement, volumes, now);
  parts_.log.info("extenders rejected all nodes", {{"pod", pod->key().text()}});
  parts_.queue.fail(pod->key().text(), now.mono);
}

void ExtenderCycles::refuse(const CyclePtr& cycle, Now now) {
  cycles_.erase(cycle->pod->metadata.uid);
  const PodPtr pod = hooks_.still_waiting(cycle->pod);
  if (!pod) return;
  if (cycle->promised_alone) return begin_cycle(pod, false, now);  // other nodes may accept the pod
  const scheduling::PodVolumes pod_volumes(*pod, hooks_.volumes_now());
  const scheduling::VolumeFilter volumes = pod_volumes.filter();
  if (volumes) parts_.refused.add_claimant(pod->key().text());
  hooks_.on_refused(pod, scheduling::refusal_of(std::move(cycle->survey), parts_.placer.nodes().size()), volumes, now);
}

void ExtenderCycles::fail(const CyclePtr& cycle, const Error& error, Now now) {
  cycles_.erase(cycle->pod->metadata.uid);
  const PodPtr pod = hooks_.still_waiting(cycle->pod);
  if (!pod) return;
  hooks_.on_failed(pod, error, now);
}

}  // namespace spillway::controllers
