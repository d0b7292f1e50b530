#include "controllers/endpoints/service_controller.h"

#include "policy/endpoints/service_pods.h"

#include <algorithm>

namespace spillway::controllers {

namespace {

/// visit(key, object) for what a cache has of one namespace.
template <typename T, typename Visit>
void each_in(const client::ObjectCache<T>& cache, const std::string& ns, Visit visit) {
  const std::string prefix = ns + "/";
  const auto& all = cache.all();
  for (auto entry = all.lower_bound(prefix); entry != all.end() && entry->first.starts_with(prefix); ++entry) {
    visit(entry->first, entry->second);
  }
}

}  // namespace

ServiceController::ServiceController(Shared shared, client::Informer<api::Service>& services,
                                     telemetry::Registry& metrics, std::string_view name, Follows follows)
    : shared_(shared), services_(services), queue_metrics_(metrics, name), name_(name) {
  services_.cache().listen(
      {[this](const auto& before, const auto& after, Now now) { on_service(before, after, now); }});
  if (follows == Follows::kServicesAlone) return;
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
  each_in(services_.cache(), (after ? after : before)->metadata.ns, [&](const std::string& key, const auto& service) {
    const bool was_behind = before && endpoints::selects(*service, before->metadata.labels);
    const bool is_behind = after && endpoints::selects(*service, after->metadata.labels);
    if (change.endpoint ? was_behind || is_behind : was_behind != is_behind) enqueue(key, now);
  });
}

std::vector<PodPtr> ServiceController::pods_of(const api::Service& service) const {
  std::vector<PodPtr> pods;
  each_in(shared_.pods.cache(), service.metadata.ns, [&](const std::string&, const PodPtr& pod) {
    if (endpoints::selects(service, pod->metadata.labels)) pods.push_back(pod);
  });
  return pods;
}

void ServiceController::enqueue(const std::string& key, Now now) {
  if (started_) queue_.add(key, now.mono);
}

void ServiceController::run(Now now) {
  if (!started_) return;
  prepare(now);
  while (const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono)) {
    if (!find(*key)) forget(*key);
    look(*key, now);
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

void ServiceController::tell(const api::Service& service, std::string_view reason, std::string_view message, Now now) {
  shared_.events.record(client::reference_to(service), client::EventType::kWarning, reason, message, now);
}

}  // namespace spillway::controllers
