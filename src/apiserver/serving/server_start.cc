#include "apiserver/serving/server_start.h"

#include "apiserver/aggregation/local_apis.h"
#include "apiserver/aggregation/remote_discovery.h"
#include "apiserver/collect/bootstrap.h"
#include "apiserver/collect/expiry.h"
#include "apiserver/collect/flow_objects.h"
#include "apiserver/custom/custom_kinds.h"
#include "apiserver/read/collector.h"
#include "apiserver/read/storage_report.h"
#include "apiserver/serving/collectors.h"
#include "apiserver/serving/serving_state.h"
#include "apiserver/write/writer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace spillway::apiserver {

namespace {

// clang-format off
constexpr auto kStepsOfStart = [] {
  using enum ServerStart::Step;
  return std::array{
      kStores,
      kObservers,
      kCustomKinds,
      kPolicies,
      kCollectors,
      kClusterObjects,
      kServing,
  };
}();
// clang-format on

}  // namespace

ServerStart::ServerStart(const Parts& parts, const ServerOptions& options)
    : parts_(parts), options_(options), steps_(kStepsOfStart) {}

void ServerStart::begin(std::move_only_function<void(Outcome)> ready) {
  ready_ = std::move(ready);
  advance();
}

void ServerStart::advance() {
  Next next = Next::kStep;
  while (next == Next::kStep) next = run(steps_.take());
}

void ServerStart::resume(Next next) {
  if (next == Next::kStep) advance();
}

Next ServerStart::run(Step step) {
  switch (step) {
    case Step::kStores:
      return load_stores();
    case Step::kObservers:
      return begin_observers();
    case Step::kCustomKinds:
      return await_custom_kinds();
    case Step::kPolicies:
      return await_policies();
    case Step::kCollectors:
      return begin_collectors();
    case Step::kClusterObjects:
      return create_objects();
    case Step::kServing:
      return serve();
  }
  return Next::kEnd;
}

Next ServerStart::load_stores() {
  parts_.state.load([this](const Outcome& outcome) { resume(on_loaded(outcome)); });
  return Next::kWait;
}

Next ServerStart::on_loaded(const Outcome& outcome) {
  return outcome ? Next::kStep : end(outcome.error());
}

Next ServerStart::begin_observers() {
  parts_.storage.choose_media_type();
  for (Collector* observer : parts_.observers) observer->begin();
  parts_.discovery.follow();
  parts_.compaction.start();
  return Next::kStep;
}

Next ServerStart::await_custom_kinds() {
  parts_.kinds.when_read([this] { resume(Next::kStep); });
  return Next::kWait;
}

/// Every policy and webhook that a request or a write may meet is in effect before the first one.
Next ServerStart::await_policies() {
  parts_.core.compilations->when_done([this] { resume(Next::kStep); });
  return Next::kWait;
}

Next ServerStart::begin_collectors() {
  parts_.collectors.begin_if_active();
  return Next::kStep;
}

Next ServerStart::create_objects() {
  std::vector<api::Json> more;
  if (options_.aggregated != nullptr) more = built_in_api_services(parts_.core.registry);
  std::ranges::move(flow_documents(options_.flows), std::back_inserter(more));
  create_cluster_objects(parts_.core, parts_.writer, std::move(more),
                         [this](const Outcome& outcome) { resume(on_created(outcome)); });
  return Next::kWait;
}

Next ServerStart::on_created(const Outcome& outcome) {
  if (outcome) return Next::kStep;
  parts_.state.fail(outcome.error());
  return end(outcome.error());
}

Next ServerStart::serve() {
  parts_.state.begin_serving();
  parts_.collectors.follow();
  return end({});
}

Next ServerStart::end(Outcome outcome) {
  if (ready_) std::exchange(ready_, nullptr)(std::move(outcome));
  return Next::kEnd;
}

}  // namespace spillway::apiserver
