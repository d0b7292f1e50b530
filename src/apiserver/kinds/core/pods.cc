// Pods: the row of the kind, with the rules in kinds/pod.
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/core/core_kinds.h"
#include "apiserver/kinds/core/core_tables.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/row_parts.h"

#include <array>

namespace spillway::apiserver::kinds {

namespace {

std::string uses_host_network(const api::Json& pod) {
  return false_unless_set(pod, {"spec", "hostNetwork"});
}

std::string joined_pod_ips(const api::Json& pod) {
  const api::Json* ips = pod.at({"status", "podIPs"});
  std::string joined;
  if (ips == nullptr || ips->if_array() == nullptr) return joined;
  for (const api::Json& ip : *ips->if_array()) {
    if (!joined.empty()) joined += ',';
    joined += ip.string_at({"ip"});
  }
  return joined;
}

}  // namespace

Resource pod_kind() {
  static constexpr std::array kFields{SelectableField{"spec.nodeName"},
                                      SelectableField{"spec.restartPolicy"},
                                      SelectableField{"spec.schedulerName"},
                                      SelectableField{"spec.serviceAccountName"},
                                      SelectableField{"spec.hostNetwork", uses_host_network},
                                      SelectableField{"status.phase"},
                                      SelectableField{"status.podIP"},
                                      SelectableField{"status.podIPs", joined_pod_ips},
                                      SelectableField{"status.nominatedNodeName"}};
  static constexpr std::array<std::string_view, 1> kShortNames{"po"};
  static constexpr std::array kSubresources{
      Subresource{SubresourceId::kExec, "attach", kConnect, "", "v1", "PodAttachOptions"},
      Subresource{SubresourceId::kBinding, "binding", kCreateOnly, "", "v1", "Binding"},
      Subresource{SubresourceId::kEphemeralContainers, "ephemeralcontainers", kReadWriteVerbs, {}, {}, {}},
      Subresource{SubresourceId::kEviction, "eviction", kCreateOnly, "policy", "v1", "Eviction"},
      Subresource{SubresourceId::kExec, "exec", kConnect, "", "v1", "PodExecOptions"},
      Subresource{SubresourceId::kLog, "log", VerbSet{Verb::kGet}, {}, {}, {}},
      Subresource{SubresourceId::kExec, "portforward", kConnect, "", "v1", "PodPortForwardOptions"},
      Subresource{SubresourceId::kProxy, "proxy", kProxied, "", "v1", "PodProxyOptions"},
      Subresource{SubresourceId::kResize, "resize", kReadWriteVerbs, {}, {}, {}},
      kStatusSubresource};
  const TableDefinition table = pod_table();
  static const KindHooks kHooks{.set_defaults = default_pod,
                                .prepare_create = prepare_new_pod,
                                .admit_create = admit_pod,
                                .validate_create = validate_new_pod,
                                .confirm_create = confirm_pod,
                                .prepare_update = prepare_pod_update,
                                .admit_update = admit_pod_update,
                                .validate_update = validate_pod_update,
                                .confirm_update = confirm_pod_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.version = "v1",
          .plural = "pods",
          .singular = "pod",
          .kind = "Pod",
          .verbs = kAllVerbs,
          .storage = below("pods"),
          .short_names = kShortNames,
          .categories = kAllCategory,
          .subresources = kSubresources,
          .fields = kFields,
          .status_subresource = true,
          .counts_generation = true,
          .graceful = true,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
