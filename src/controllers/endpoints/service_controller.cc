#include "controllers/endpoints/service_controller.h"

#include "policy/endpoints/service_pods.h"

#include <algorithm>
#include <iterator>

namespace spillway::controllers {

ServiceController::ServiceController(Shared shared, client::Informer<api::Service>& services,
                                     const SelectedPods* selected, telemetry::Registry& metrics, std::string_view name)
    : shared_(shared), services_(services), selected_(selected), queue_metrics_(metrics, name), name_(name) {
  services_.cache().listen(
      {[this](const auto& before, const auto& after, Now now) { on_service(before, after, now); }});
  if (selected_ == nullptr) return;
  shared_.pods.cache().listen({[this](const auto& before, const auto& after, Now now) { on_pod(before, after, now); }});
}

void ServiceController::start(Now now) {
  started_ = true;
  for (const auto& [key, service] : services_.cache().all()) enqueue(key, now);
}

void ServiceController::on_service(const ServicePtr& before, const ServicePtr& after, Now now) {
  enqueue(client::key_of((after ? after : before)->metadata), now);
}

void ServiceController::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  if (!started_) return;
  endpoints::PodChange change{.endpoint = true, .labels = true};
  if (before && after) change = endpoints::change_of(*before, *after);
  if (!change.endpoint && !change.labels) return;
  const auto selecting = [&](const PodPtr& pod) {
    return pod ? selected_->services_of(pod->metadata.ns, pod->metadata.labels) : std::vector<client::ObjectKey>();
  };
  const std::vector<client::ObjectKey> was_behind = selecting(before);
  const std::vector<client::ObjectKey> is_behind = change.labels || !before ? selecting(after) : was_behind;
  std::vector<client::ObjectKey> concerned;
  if (change.endpoint) {
    std::ranges::set_union(was_behind, is_behind, std::back_inserter(concerned));
  } else {
    std::ranges::set_symmetric_difference(was_behind, is_behind, std::back_inserter(concerned));
  }
  for (const client::ObjectKey& key : concerned) enqueue(key, now);
}

void ServiceController::enqueue(const std::string& key, Now now) {
  if (started_) queue_.add(key, now.mono);
}

void ServiceController::run(Now now) {
  if (!started_) return;
  prepare(now);
  while (const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono)) {
    if (!find(*key)) forget(*key);
    sync(*key, now);
  }
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void ServiceController::arm() {
  wake_up_.set(shared_.client, queue_.next_due());
}

void ServiceController::end(const std::string& key, Now) {
  queue_.done(key);
  queue_.forget(key);
}

void ServiceController::later(const std::string& key, Instant due) {
  queue_.done(key);
  queue_.add(key, due);
}

void ServiceController::give_up(const std::string& key, std::string_view doing, const Error& error, Now now) {
  shared_.log.warning("endpoints of a service are not up to date",
                      {{"controller", name_}, {"service", key}, {"while", doing}, {"error", error.message}});
  queue_.done(key);
  queue_.retry(key, now.mono);
  arm();
}

void ServiceController::record_warning(const api::Service& service, std::string_view reason, std::string_view message,
                                       Now now) {
  shared_.events.record(client::reference_to(service), client::EventType::kWarning, reason, message, now);
}

}  // namespace spillway::controllers
