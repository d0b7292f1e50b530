#include "controllers/endpoints/endpoints.h"

#include "api/codec/codec.h"
#include "policy/endpoints/endpoints_plan.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace spillway::controllers {

namespace {

/// The annotation of Endpoints that are a lock between processes, not the addresses of a Service.
constexpr std::string_view kLeaderRecord = "control-plane.alpha.kubernetes.io/leader";

std::string endpoints_path(const api::ObjectMeta& neighbour, std::string_view name = {}) {
  return client::object_path(api::Endpoints::kApiVersion, "endpoints", neighbour.ns, name);
}

}  // namespace

EndpointsController::EndpointsController(Shared shared, client::Informer<api::Service>& services,
                                         client::Informer<api::Endpoints>& endpoints, const SelectedPods& selected,
                                         telemetry::Registry& metrics)
    : ServiceController(shared, services, &selected, metrics, "endpoint"), endpoints_(endpoints) {
  endpoints_.cache().listen(
      {[this](const auto& before, const auto& after, Now now) { on_endpoints(before, after, now); }});
}

void EndpointsController::start(Now now) {
  ServiceController::start(now);
  for (const auto& [key, endpoints] : endpoints_.cache().all()) {
    if (!endpoints->metadata.annotations.contains(kLeaderRecord)) enqueue(key, now);
  }
}

/// Endpoints without a Service are not synced: a user may have made them for a Service that follows.
void EndpointsController::on_endpoints(const EndpointsPtr& before, const EndpointsPtr& after, Now now) {
  const std::string key = client::key_of((after ? after : before)->metadata);
  if (find(key)) enqueue(key, now);
}

void EndpointsController::forget(const std::string& key) {
  trigger_times_.forget(key);
}

void EndpointsController::sync(const std::string& key, Now now) {
  const auto shown = [this, &key](const std::string&) -> std::optional<std::string> {
    const EndpointsPtr current = endpoints_.cache().find(key);
    return current ? std::optional(current->metadata.resource_version) : std::nullopt;
  };
  if (const auto due = unseen_.waits(key, shown, now.mono)) return later(key, *due);
  const ServicePtr service = find(key);
  if (!service) return remove(key, now);
  if (!endpoints::has_selected_pods(*service)) return end(key, now);
  const std::vector<PodPtr> pods = pods_of(*service);
  const EndpointsPtr current = endpoints_.cache().find(key);
  const auto next =
      endpoints::plan_endpoints(*service, pods, current.get(), trigger_times_.observe(key, *service, pods));
  if (!next) return end(key, now);
  write(key, service, *next);
}

void EndpointsController::remove(const std::string& key, Now now) {
  const EndpointsPtr current = endpoints_.cache().find(key);
  if (!current) return end(key, now);
  const api::ObjectMeta& metadata = current->metadata;
  shared_.client.remove(endpoints_path(metadata, metadata.name), delete_options(metadata),
                        [this, key, version = metadata.resource_version](const Result<api::Json>& outcome, Now then) {
                          on_removed(key, version, outcome, then);
                        });
}

void EndpointsController::on_removed(const std::string& key, const std::string& version,
                                     const Result<api::Json>& outcome, Now now) {
  const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
  if (!outcome && !gone) return give_up(key, "delete", outcome.error(), now);
  if (outcome) unseen_.removed(key, key, version, now.mono);
  end(key, now);
  arm();
}

void EndpointsController::write(const std::string& key, const ServicePtr& service, const api::Endpoints& next) {
  const bool created = next.metadata.resource_version.empty();
  auto done = [this, key, service, created](const Result<api::Json>& outcome, Now then) {
    on_written(key, service, created, outcome, then);
  };
  if (created) return shared_.client.create(endpoints_path(next.metadata), api::encode(next), std::move(done));
  shared_.client.update(endpoints_path(next.metadata, next.metadata.name), api::encode(next), std::move(done));
}

void EndpointsController::on_written(const std::string& key, const ServicePtr& service, bool created,
                                     const Result<api::Json>& outcome, Now now) {
  if (outcome) {
    unseen_.wrote(key, key, outcome->string_at({"metadata", "resourceVersion"}), now.mono);
    end(key, now);
    return arm();
  }
  const Error& error = outcome.error();
  // Expected: another client wrote first, the namespace is gone, or writes are off (client::ShadowEngine).
  const bool expected = error.code == ErrorCode::kNotFound || error.code == ErrorCode::kConflict ||
                        error.code == ErrorCode::kAlreadyExists;
  if (!expected) {
    record_warning(*service, created ? "FailedToCreateEndpoint" : "FailedToUpdateEndpoint",
                   created ? fmt::format("Failed to create endpoint for service {}: {}", key, error.message)
                           : fmt::format("Failed to update endpoint {}: {}", key, error.message),
                   now);
  }
  give_up(key, created ? "create" : "update", error, now);
}

}  // namespace spillway::controllers
