#include "apiserver/kinds/apps/workload_tables.h"

#include "apiserver/kinds/cells.h"
#include "base/ascii.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

constexpr TableColumn kContainers{"Containers", "string", "", 1, "Names of the containers in the template"};
constexpr TableColumn kImages{"Images", "string", "", 1, "Images of the containers in the template"};
constexpr TableColumn kSelector{"Selector", "string", "", 1, "Label selector of the pods"};

constexpr std::array kDeploymentColumns{kNameColumn,
                                        TableColumn{"Ready", "string", "", 0, "Ready pods, of those wanted"},
                                        TableColumn{"Up-to-date", "string", "", 0, "Pods of the latest template"},
                                        TableColumn{"Available", "string", "", 0, "Pods ready for long enough"},
                                        kAgeColumn,
                                        kContainers,
                                        kImages,
                                        kSelector};
constexpr std::array kReplicaSetColumns{kNameColumn,
                                        TableColumn{"Desired", "integer", "", 0, "Pods wanted"},
                                        TableColumn{"Current", "integer", "", 0, "Pods that exist"},
                                        TableColumn{"Ready", "integer", "", 0, "Pods that are ready"},
                                        kAgeColumn,
                                        kContainers,
                                        kImages,
                                        kSelector};
constexpr std::array kDaemonSetColumns{kNameColumn,
                                       TableColumn{"Desired", "integer", "", 0, "Nodes that should run the pod"},
                                       TableColumn{"Current", "integer", "", 0, "Nodes that run it"},
                                       TableColumn{"Ready", "integer", "", 0, "Nodes on which it is ready"},
                                       TableColumn{"Up-to-date", "integer", "", 0, "Nodes with the latest template"},
                                       TableColumn{"Available", "integer", "", 0, "Nodes on which it is available"},
                                       TableColumn{"Node Selector", "string", "", 0, "Nodes it is meant for"},
                                       kAgeColumn,
                                       kContainers,
                                       kImages,
                                       kSelector};

constexpr std::array kStatefulSetColumns{kNameColumn,
                                         TableColumn{"Ready", "string", "", 0, "Ready pods, of those wanted"},
                                         kAgeColumn, kContainers, kImages};

TableRow deployment_row(const api::Json& object, WallTime now) {
  const api::Json* pod_spec = object.at({"spec", "template", "spec"});
  return {{object.string_at({"metadata", "name"}),
           fmt::format("{}/{}", count_at(object, {"status", "readyReplicas"}), count_at(object, {"spec", "replicas"})),
           count_at(object, {"status", "updatedReplicas"}), count_at(object, {"status", "availableReplicas"}),
           age_of(object, now), container_names(pod_spec), container_images(pod_spec),
           selector_text(object.at({"spec", "selector"}))},
          nullptr};
}

TableRow replicated_row(const api::Json& object, std::string selector, WallTime now) {
  const api::Json* pod_spec = object.at({"spec", "template", "spec"});
  return {{object.string_at({"metadata", "name"}), count_at(object, {"spec", "replicas"}),
           count_at(object, {"status", "replicas"}), count_at(object, {"status", "readyReplicas"}), age_of(object, now),
           container_names(pod_spec), container_images(pod_spec), std::move(selector)},
          nullptr};
}

TableRow replica_set_row(const api::Json& object, WallTime now) {
  return replicated_row(object, selector_text(object.at({"spec", "selector"})), now);
}

TableRow replication_controller_row(const api::Json& object, WallTime now) {
  return replicated_row(object, label_text(object.at({"spec", "selector"})), now);
}

TableRow daemon_set_row(const api::Json& object, WallTime now) {
  const api::Json* pod_spec = object.at({"spec", "template", "spec"});
  return {{object.string_at({"metadata", "name"}), count_at(object, {"status", "desiredNumberScheduled"}),
           count_at(object, {"status", "currentNumberScheduled"}), count_at(object, {"status", "numberReady"}),
           count_at(object, {"status", "updatedNumberScheduled"}), count_at(object, {"status", "numberAvailable"}),
           label_text(pod_spec != nullptr ? pod_spec->find("nodeSelector") : nullptr), age_of(object, now),
           container_names(pod_spec), container_images(pod_spec), selector_text(object.at({"spec", "selector"}))},
          nullptr};
}

TableRow stateful_set_row(const api::Json& object, WallTime now) {
  const api::Json* pod_spec = object.at({"spec", "template", "spec"});
  return {{object.string_at({"metadata", "name"}),
           fmt::format("{}/{}", count_at(object, {"status", "readyReplicas"}), count_at(object, {"spec", "replicas"})),
           age_of(object, now), container_names(pod_spec), container_images(pod_spec)},
          nullptr};
}

constexpr std::array kRevisionColumns{kNameColumn,
                                      TableColumn{"Controller", "string", "", 0, "The controller it belongs to"},
                                      TableColumn{"Revision", "string", "", 0, "Its number"}, kAgeColumn};

/// "daemonset.apps/agent".
std::string controller_text(const api::Json& object) {
  const api::Json* owners = object.at({"metadata", "ownerReferences"});
  if (owners == nullptr || owners->if_array() == nullptr) return "<none>";
  for (const api::Json& owner : *owners->if_array()) {
    const api::Json* controls = owner.find("controller");
    if (controls == nullptr || !controls->if_bool().value_or(false)) continue;
    const std::string_view version = owner.string_at({"apiVersion"});
    const std::size_t slash = version.find('/');
    std::string text = lower_case(owner.string_at({"kind"}));
    if (slash != std::string_view::npos) text += fmt::format(".{}", version.substr(0, slash));
    return fmt::format("{}/{}", text, owner.string_at({"name"}));
  }
  return "<none>";
}

TableRow revision_row(const api::Json& object, WallTime now) {
  return {{object.string_at({"metadata", "name"}), controller_text(object), count_at(object, {"revision"}),
           age_of(object, now)},
          nullptr};
}

}  // namespace

TableDefinition controller_revision_table() {
  return {kRevisionColumns, revision_row};
}

TableDefinition deployment_table() {
  return {kDeploymentColumns, deployment_row};
}

TableDefinition replica_set_table() {
  return {kReplicaSetColumns, replica_set_row};
}

TableDefinition replication_controller_table() {
  return {kReplicaSetColumns, replication_controller_row};
}

TableDefinition daemon_set_table() {
  return {kDaemonSetColumns, daemon_set_row};
}

TableDefinition stateful_set_table() {
  return {kStatefulSetColumns, stateful_set_row};
}

}  // namespace spillway::apiserver::kinds
