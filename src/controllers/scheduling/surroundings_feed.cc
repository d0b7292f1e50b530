#include "controllers/scheduling/surroundings_feed.h"

#include "api/object/kind_id.h"
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
    around_.set_owner(api::kind_of<Owner>(), owner.metadata.ns, owner.metadata.name,
                      after ? std::optional(after->selector) : std::nullopt);
    on_change_(scheduling::ClusterChange::of_owner());
  }});
}

SurroundingsFeed::SurroundingsFeed(client::ApiClient& client, scheduling::Surroundings& around, OnChange on_change)
    : around_(around),
      on_change_(std::move(on_change)),
      namespaces_(client, client::object_path("v1", "namespaces", {})),
      services_(client, client::object_path("v1", "services", {})),
      replication_controllers_(client, client::object_path("v1", "replicationcontrollers", {}), {},
                               client::Need::kOptional),
      replica_sets_(client, client::object_path("apps/v1", "replicasets", {})),
      stateful_sets_(client, client::object_path("apps/v1", "statefulsets", {})) {
  namespaces_.cache().listen({[this](const auto& before, const auto& after, Now) {
    if (before && after && before->metadata.labels == after->metadata.labels) return;
    const api::Namespace& ns = after ? *after : *before;
    around_.set_namespace(ns.metadata.name, after ? std::optional(after->metadata.labels) : std::nullopt);
    on_change_(scheduling::ClusterChange::of_namespace());
  }});
  services_.cache().listen({[this](const auto& before, const auto& after, Now) {
    const api::Service& service = after ? *after : *before;
    around_.set_service(service.metadata.ns, service.metadata.name, after ? after->selector : api::StringMap());
    if (!before || !after || before->selector != after->selector) on_change_(scheduling::ClusterChange::of_owner());
  }});
  follow(replication_controllers_);
  follow(replica_sets_);
  follow(stateful_sets_);
}

}  // namespace spillway::controllers
