#include "controllers/scheduling/surroundings_feed.h"

#include "controllers/shared/paths.h"

#include <optional>
#include <string>
#include <utility>

namespace spillway::controllers {

template <typename Owner>
void SurroundingsFeed::follow(client::Informer<Owner>& owners) {
  owners.cache().listen({[this](const auto& before, const auto& after, Now) {
    const Owner& owner = after ? *after : *before;
    if (before && after && before->selector == after->selector) return;
    around_.set_owner(std::string(Owner::kKind), owner.metadata.ns, owner.metadata.name,
                      after ? std::optional(after->selector) : std::nullopt);
  }});
}

SurroundingsFeed::SurroundingsFeed(client::ApiClient& client, scheduling::Surroundings& around,
                                   std::function<void()> on_namespace)
    : around_(around),
      namespaces_(client, client::object_path("v1", "namespaces", {})),
      services_(client, client::object_path("v1", "services", {})),
      replication_controllers_(client, client::object_path("v1", "replicationcontrollers", {}), {},
                               client::Need::kOptional),
      replica_sets_(client, client::object_path("apps/v1", "replicasets", {})),
      stateful_sets_(client, client::object_path("apps/v1", "statefulsets", {})) {
  namespaces_.cache().listen(
      {[this, on_namespace = std::move(on_namespace)](const auto& before, const auto& after, Now) {
        if (before && after && before->metadata.labels == after->metadata.labels) return;
        const api::Namespace& ns = after ? *after : *before;
        around_.set_namespace(ns.metadata.name, after ? std::optional(after->metadata.labels) : std::nullopt);
        on_namespace();
      }});
  services_.cache().listen({[this](const auto& before, const auto& after, Now) {
    const api::Service& service = after ? *after : *before;
    around_.set_service(service.metadata.ns, service.metadata.name, after ? after->selector : api::StringMap());
  }});
  follow(replication_controllers_);
  follow(replica_sets_);
  follow(stateful_sets_);
}

}  // namespace spillway::controllers
