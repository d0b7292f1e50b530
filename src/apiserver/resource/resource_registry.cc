#include "apiserver/resource/resource_registry.h"

#include "base/check.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::apiserver {

namespace {

using enum Verb;

constexpr VerbSet kAllVerbs{kGet, kList, kWatch, kCreate, kUpdate, kPatch, kDelete, kDeleteCollection};
constexpr VerbSet kReadWrite{kGet, kPatch, kUpdate};
constexpr VerbSet kCreateOnly{kCreate};
constexpr VerbSet kConnect{kCreate, kGet};
constexpr VerbSet kMeasured{kGet, kList};

constexpr std::array<std::pair<Verb, std::string_view>, 8> kVerbNames{{{kCreate, "create"},
                                                                       {kDelete, "delete"},
                                                                       {kDeleteCollection, "deletecollection"},
                                                                       {kGet, "get"},
                                                                       {kList, "list"},
                                                                       {kPatch, "patch"},
                                                                       {kUpdate, "update"},
                                                                       {kWatch, "watch"}}};

std::string false_unless_set(const api::Json& object, std::initializer_list<std::string_view> path) {
  const api::Json* value = object.at(path);
  return value != nullptr && value->if_bool().value_or(false) ? "true" : "false";
}

std::string host_network(const api::Json& pod) {
  return false_unless_set(pod, {"spec", "hostNetwork"});
}

std::string unschedulable(const api::Json& node) {
  return false_unless_set(node, {"spec", "unschedulable"});
}

std::string pod_ips(const api::Json& pod) {
  const api::Json* ips = pod.at({"status", "podIPs"});
  std::string joined;
  if (ips == nullptr || ips->if_array() == nullptr) return joined;
  for (const api::Json& ip : *ips->if_array()) {
    if (!joined.empty()) joined += ',';
    joined += ip.string_at({"ip"});
  }
  return joined;
}

std::string event_source(const api::Json& event) {
  const std::string_view component = event.string_at({"source", "component"});
  return std::string(component.empty() ? event.string_at({"reportingComponent"}) : component);
}

constexpr std::array kPodFields{SelectableField{"spec.nodeName"},
                                SelectableField{"spec.restartPolicy"},
                                SelectableField{"spec.schedulerName"},
                                SelectableField{"spec.serviceAccountName"},
                                SelectableField{"spec.hostNetwork", host_network},
                                SelectableField{"status.phase"},
                                SelectableField{"status.podIP"},
                                SelectableField{"status.podIPs", pod_ips},
                                SelectableField{"status.nominatedNodeName"}};
constexpr std::array kNodeFields{SelectableField{"spec.unschedulable", unschedulable}};
constexpr std::array kNamespaceFields{SelectableField{"status.phase"}};
constexpr std::array kSecretFields{SelectableField{"type"}};
constexpr std::array kServiceFields{SelectableField{"spec.clusterIP"}, SelectableField{"spec.type"}};
constexpr std::array kEventFields{SelectableField{"involvedObject.kind"},
                                  SelectableField{"involvedObject.namespace"},
                                  SelectableField{"involvedObject.name"},
                                  SelectableField{"involvedObject.uid"},
                                  SelectableField{"involvedObject.apiVersion"},
                                  SelectableField{"involvedObject.resourceVersion"},
                                  SelectableField{"involvedObject.fieldPath"},
                                  SelectableField{"reason"},
                                  SelectableField{"reportingComponent"},
                                  SelectableField{"source", event_source},
                                  SelectableField{"type"}};
// The same fields in the same order under the names of events.k8s.io.
constexpr std::array kEventViewFields{SelectableField{"regarding.kind"},
                                      SelectableField{"regarding.namespace"},
                                      SelectableField{"regarding.name"},
                                      SelectableField{"regarding.uid"},
                                      SelectableField{"regarding.apiVersion"},
                                      SelectableField{"regarding.resourceVersion"},
                                      SelectableField{"regarding.fieldPath"},
                                      SelectableField{"reason"},
                                      SelectableField{"reportingController"},
                                      SelectableField{"source", event_source},
                                      SelectableField{"type"}};
static_assert(kEventFields.size() == kEventViewFields.size());

constexpr std::array<std::string_view, 1> kAllCategory{"all"};
constexpr std::array<std::string_view, 1> kExtensions{"api-extensions"};
constexpr std::array<std::string_view, 1> kNo{"no"};
constexpr std::array<std::string_view, 1> kPo{"po"};
constexpr std::array<std::string_view, 1> kNs{"ns"};
constexpr std::array<std::string_view, 1> kEv{"ev"};
constexpr std::array<std::string_view, 1> kCm{"cm"};
constexpr std::array<std::string_view, 1> kSa{"sa"};
constexpr std::array<std::string_view, 1> kSvc{"svc"};
constexpr std::array<std::string_view, 1> kDeploy{"deploy"};
constexpr std::array<std::string_view, 1> kRs{"rs"};
constexpr std::array<std::string_view, 1> kDs{"ds"};
constexpr std::array<std::string_view, 1> kPdb{"pdb"};
constexpr std::array<std::string_view, 1> kPc{"pc"};
constexpr std::array<std::string_view, 1> kCsr{"csr"};
constexpr std::array<std::string_view, 1> kPv{"pv"};
constexpr std::array<std::string_view, 1> kPvc{"pvc"};
constexpr std::array<std::string_view, 1> kSc{"sc"};

// Kinds whose checks of metadata differ from the usual ones.
constexpr MetadataChecks kNoOwnChecks{.create = 0, .update_whole = 0, .update_change = 0, .status_change = 0};
constexpr MetadataChecks kChangeOnly{.update_whole = 0};
constexpr MetadataChecks kAnyFinalizer{.standard_finalizers = false};
constexpr MetadataChecks kLeaseChecks{.update_whole = 0, .standard_finalizers = false};
constexpr MetadataChecks kWholeOnly{.update_change = 0};
constexpr MetadataChecks kRoleChecks{.update_whole = 2};
constexpr MetadataChecks kCsiNodeChecks{.update_whole = 2, .update_change = 0};
constexpr MetadataChecks kSigningChecks{.status_whole = 1};

constexpr Subresource kStatus{SubresourceId::kStatus, "status", kReadWrite, {}, {}, {}};
constexpr Subresource kScale{SubresourceId::kScale, "scale", kReadWrite, "autoscaling", "v1", "Scale"};

constexpr std::array kStatusOnly{kStatus};
constexpr std::array kScaleAndStatus{kScale, kStatus};
constexpr std::array kPodSubresources{
    Subresource{SubresourceId::kExec, "attach", kConnect, "", "v1", "PodAttachOptions"},
    Subresource{SubresourceId::kBinding, "binding", kCreateOnly, "", "v1", "Binding"},
    Subresource{SubresourceId::kEphemeralContainers, "ephemeralcontainers", kReadWrite, {}, {}, {}},
    Subresource{SubresourceId::kEviction, "eviction", kCreateOnly, "policy", "v1", "Eviction"},
    Subresource{SubresourceId::kExec, "exec", kConnect, "", "v1", "PodExecOptions"},
    Subresource{SubresourceId::kLog, "log", VerbSet{kGet}, {}, {}, {}},
    Subresource{SubresourceId::kExec, "portforward", kConnect, "", "v1", "PodPortForwardOptions"},
    kStatus};
constexpr std::array kNodeSubresources{
    Subresource{SubresourceId::kProxy, "proxy", VerbSet{kGet}, "", "v1", "NodeProxyOptions"}, kStatus};
constexpr std::array kNamespaceSubresources{
    Subresource{SubresourceId::kFinalize, "finalize", VerbSet{kUpdate}, {}, {}, {}}, kStatus};
constexpr std::array kAccountSubresources{
    Subresource{SubresourceId::kToken, "token", kCreateOnly, "authentication.k8s.io", "v1", "TokenRequest"}};
constexpr std::array kCsrSubresources{Subresource{SubresourceId::kApproval, "approval", kReadWrite, {}, {}, {}},
                                      kStatus};

api::Json* rename_member(api::Json& object, std::string_view from, std::string_view to) {
  api::Json* found = object.find(from);
  if (found == nullptr) return nullptr;
  api::Json value = std::move(*found);
  object.erase({from});
  object[to] = std::move(value);
  return object.find(to);
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kEventNames{
    {{"involvedObject", "regarding"},
     {"message", "note"},
     {"source", "deprecatedSource"},
     {"firstTimestamp", "deprecatedFirstTimestamp"},
     {"lastTimestamp", "deprecatedLastTimestamp"},
     {"count", "deprecatedCount"},
     {"reportingComponent", "reportingController"}}};

api::Json event_to_view(const api::Json& stored) {
  api::Json view = stored;
  for (const auto& [v1, events] : kEventNames) rename_member(view, v1, events);
  view["apiVersion"] = "events.k8s.io/v1";
  return view;
}

api::Json event_from_view(const api::Json& view) {
  api::Json stored = view;
  for (const auto& [v1, events] : kEventNames) rename_member(stored, events, v1);
  stored["apiVersion"] = "v1";
  return stored;
}

std::string below(std::string_view folder) {
  return "/registry/" + std::string(folder) + "/";
}

std::vector<Resource> table(KindTable hooks) {
  using enum Scope;
  std::vector<Resource> rows{
      // core
      {.version = "v1",
       .plural = "configmaps",
       .singular = "configmap",
       .kind = "ConfigMap",
       .verbs = kAllVerbs,
       .storage = below("configmaps"),
       .short_names = kCm},
      {.version = "v1",
       .plural = "events",
       .singular = "event",
       .kind = "Event",
       .verbs = kAllVerbs,
       .storage = below("events"),
       .short_names = kEv,
       .fields = kEventFields,
       .put_creates = true,
       .metadata = kNoOwnChecks},
      {.version = "v1",
       .plural = "namespaces",
       .singular = "namespace",
       .kind = "Namespace",
       .scope = kCluster,
       .verbs = kAllVerbs.without(kDeleteCollection),
       .storage = below("namespaces"),
       .short_names = kNs,
       .subresources = kNamespaceSubresources,
       .fields = kNamespaceFields,
       .names = NameRule::kDnsLabel,
       .status_subresource = true},
      {.version = "v1",
       .plural = "nodes",
       .singular = "node",
       .kind = "Node",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("minions"),
       .short_names = kNo,
       .subresources = kNodeSubresources,
       .fields = kNodeFields,
       .status_subresource = true,
       .keeps_status_on_create = true},
      {.version = "v1",
       .plural = "persistentvolumeclaims",
       .singular = "persistentvolumeclaim",
       .kind = "PersistentVolumeClaim",
       .verbs = kAllVerbs,
       .storage = below("persistentvolumeclaims"),
       .short_names = kPvc,
       .subresources = kStatusOnly,
       .status_subresource = true},
      {.version = "v1",
       .plural = "persistentvolumes",
       .singular = "persistentvolume",
       .kind = "PersistentVolume",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("persistentvolumes"),
       .short_names = kPv,
       .subresources = kStatusOnly,
       .status_subresource = true},
      {.version = "v1",
       .plural = "pods",
       .singular = "pod",
       .kind = "Pod",
       .verbs = kAllVerbs,
       .storage = below("pods"),
       .short_names = kPo,
       .categories = kAllCategory,
       .subresources = kPodSubresources,
       .fields = kPodFields,
       .status_subresource = true,
       .graceful = true},
      {.version = "v1",
       .plural = "secrets",
       .singular = "secret",
       .kind = "Secret",
       .verbs = kAllVerbs,
       .storage = below("secrets"),
       .fields = kSecretFields},
      {.version = "v1",
       .plural = "serviceaccounts",
       .singular = "serviceaccount",
       .kind = "ServiceAccount",
       .verbs = kAllVerbs,
       .storage = below("serviceaccounts"),
       .short_names = kSa,
       .subresources = kAccountSubresources},
      {.version = "v1",
       .plural = "services",
       .singular = "service",
       .kind = "Service",
       .verbs = kAllVerbs,
       .storage = below("services/specs"),
       .short_names = kSvc,
       .categories = kAllCategory,
       .subresources = kStatusOnly,
       .fields = kServiceFields,
       .names = NameRule::kDns1035Label,
       .status_subresource = true,
       .put_creates = true,
       .unattended =
           "nothing in this cluster sends traffic to the pods of a Service: this one is stored with an address, "
           "and has no endpoints"},
      // who is asked before something is written
      {.group = "admissionregistration.k8s.io",
       .version = "v1",
       .plural = "mutatingwebhookconfigurations",
       .singular = "mutatingwebhookconfiguration",
       .kind = "MutatingWebhookConfiguration",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("mutatingwebhookconfigurations"),
       .categories = kExtensions,
       .counts_generation = true,
       .requires_version = true,
       .metadata = kWholeOnly},
      {.group = "admissionregistration.k8s.io",
       .version = "v1",
       .plural = "validatingwebhookconfigurations",
       .singular = "validatingwebhookconfiguration",
       .kind = "ValidatingWebhookConfiguration",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("validatingwebhookconfigurations"),
       .categories = kExtensions,
       .counts_generation = true,
       .requires_version = true,
       .metadata = kWholeOnly},
      // apps
      {.group = "apps",
       .version = "v1",
       .plural = "controllerrevisions",
       .singular = "controllerrevision",
       .kind = "ControllerRevision",
       .verbs = kAllVerbs,
       .storage = below("controllerrevisions")},
      {.group = "apps",
       .version = "v1",
       .plural = "daemonsets",
       .singular = "daemonset",
       .kind = "DaemonSet",
       .verbs = kAllVerbs,
       .storage = below("daemonsets"),
       .short_names = kDs,
       .categories = kAllCategory,
       .subresources = kStatusOnly,
       .status_subresource = true,
       .counts_generation = true},
      {.group = "apps",
       .version = "v1",
       .plural = "deployments",
       .singular = "deployment",
       .kind = "Deployment",
       .verbs = kAllVerbs,
       .storage = below("deployments"),
       .short_names = kDeploy,
       .categories = kAllCategory,
       .subresources = kScaleAndStatus,
       .status_subresource = true,
       .counts_generation = true,
       .counts_annotations = true,
       .status_keeps_labels = true,
       .metadata = kChangeOnly,
       .unattended =
           "no controller of this cluster acts on Deployments: this one is stored, and no pods follow from it"},
      {.group = "apps",
       .version = "v1",
       .plural = "replicasets",
       .singular = "replicaset",
       .kind = "ReplicaSet",
       .verbs = kAllVerbs,
       .storage = below("replicasets"),
       .short_names = kRs,
       .categories = kAllCategory,
       .subresources = kScaleAndStatus,
       .status_subresource = true,
       .counts_generation = true},
      // authentication, authorization: asked, not stored
      {.group = "authentication.k8s.io",
       .version = "v1",
       .plural = "selfsubjectreviews",
       .singular = "selfsubjectreview",
       .kind = "SelfSubjectReview",
       .scope = kCluster,
       .verbs = kCreateOnly},
      {.group = "authentication.k8s.io",
       .version = "v1",
       .plural = "tokenreviews",
       .singular = "tokenreview",
       .kind = "TokenReview",
       .scope = kCluster,
       .verbs = kCreateOnly},
      {.group = "authorization.k8s.io",
       .version = "v1",
       .plural = "localsubjectaccessreviews",
       .singular = "localsubjectaccessreview",
       .kind = "LocalSubjectAccessReview",
       .verbs = kCreateOnly},
      {.group = "authorization.k8s.io",
       .version = "v1",
       .plural = "selfsubjectaccessreviews",
       .singular = "selfsubjectaccessreview",
       .kind = "SelfSubjectAccessReview",
       .scope = kCluster,
       .verbs = kCreateOnly},
      {.group = "authorization.k8s.io",
       .version = "v1",
       .plural = "selfsubjectrulesreviews",
       .singular = "selfsubjectrulesreview",
       .kind = "SelfSubjectRulesReview",
       .scope = kCluster,
       .verbs = kCreateOnly},
      {.group = "authorization.k8s.io",
       .version = "v1",
       .plural = "subjectaccessreviews",
       .singular = "subjectaccessreview",
       .kind = "SubjectAccessReview",
       .scope = kCluster,
       .verbs = kCreateOnly},
      // the rest
      {.group = "certificates.k8s.io",
       .version = "v1",
       .plural = "certificatesigningrequests",
       .singular = "certificatesigningrequest",
       .kind = "CertificateSigningRequest",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("certificatesigningrequests"),
       .short_names = kCsr,
       .subresources = kCsrSubresources,
       .names = NameRule::kPathSegment,
       .status_subresource = true,
       .metadata = kSigningChecks},
      {.group = "coordination.k8s.io",
       .version = "v1",
       .plural = "leases",
       .singular = "lease",
       .kind = "Lease",
       .verbs = kAllVerbs,
       .storage = below("leases"),
       .put_creates = true,
       .requires_version = true,
       .renewed = true,
       .keeps_history = false,
       .metadata = kLeaseChecks},
      {.group = "events.k8s.io",
       .version = "v1",
       .plural = "events",
       .singular = "event",
       .kind = "Event",
       .verbs = kAllVerbs,
       .storage = below("events"),
       .short_names = kEv,
       .fields = kEventViewFields,
       .put_creates = true,
       .metadata = kChangeOnly,
       .view = {event_from_view, event_to_view}},
      // measured, not stored
      {.group = "metrics.k8s.io",
       .version = "v1beta1",
       .plural = "nodes",
       .singular = "node",
       .kind = "NodeMetrics",
       .scope = kCluster,
       .verbs = kMeasured},
      {.group = "metrics.k8s.io",
       .version = "v1beta1",
       .plural = "pods",
       .singular = "pod",
       .kind = "PodMetrics",
       .verbs = kMeasured},
      {.group = "node.k8s.io",
       .version = "v1",
       .plural = "runtimeclasses",
       .singular = "runtimeclass",
       .kind = "RuntimeClass",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("runtimeclasses"),
       .put_creates = true,
       .metadata = kAnyFinalizer},
      {.group = "policy",
       .version = "v1",
       .plural = "poddisruptionbudgets",
       .singular = "poddisruptionbudget",
       .kind = "PodDisruptionBudget",
       .verbs = kAllVerbs,
       .storage = below("poddisruptionbudgets"),
       .short_names = kPdb,
       .subresources = kStatusOnly,
       .status_subresource = true,
       .counts_generation = true,
       .requires_version = true,
       .metadata = kNoOwnChecks},
      {.group = "rbac.authorization.k8s.io",
       .version = "v1",
       .plural = "clusterrolebindings",
       .singular = "clusterrolebinding",
       .kind = "ClusterRoleBinding",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("clusterrolebindings"),
       .names = NameRule::kPathSegment,
       .put_creates = true,
       .metadata = kRoleChecks},
      {.group = "rbac.authorization.k8s.io",
       .version = "v1",
       .plural = "clusterroles",
       .singular = "clusterrole",
       .kind = "ClusterRole",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("clusterroles"),
       .names = NameRule::kPathSegment,
       .put_creates = true,
       .metadata = kRoleChecks},
      {.group = "rbac.authorization.k8s.io",
       .version = "v1",
       .plural = "rolebindings",
       .singular = "rolebinding",
       .kind = "RoleBinding",
       .verbs = kAllVerbs,
       .storage = below("rolebindings"),
       .names = NameRule::kPathSegment,
       .put_creates = true,
       .metadata = kRoleChecks},
      {.group = "rbac.authorization.k8s.io",
       .version = "v1",
       .plural = "roles",
       .singular = "role",
       .kind = "Role",
       .verbs = kAllVerbs,
       .storage = below("roles"),
       .names = NameRule::kPathSegment,
       .put_creates = true,
       .metadata = kRoleChecks},
      {.group = "scheduling.k8s.io",
       .version = "v1",
       .plural = "priorityclasses",
       .singular = "priorityclass",
       .kind = "PriorityClass",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("priorityclasses"),
       .short_names = kPc,
       .counts_generation = true,
       .metadata = kChangeOnly},
      {.group = "storage.k8s.io",
       .version = "v1",
       .plural = "csidrivers",
       .singular = "csidriver",
       .kind = "CSIDriver",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("csidrivers"),
       .metadata = kChangeOnly},
      {.group = "storage.k8s.io",
       .version = "v1",
       .plural = "csinodes",
       .singular = "csinode",
       .kind = "CSINode",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("csinodes"),
       .metadata = kCsiNodeChecks},
      {.group = "storage.k8s.io",
       .version = "v1",
       .plural = "storageclasses",
       .singular = "storageclass",
       .kind = "StorageClass",
       .scope = kCluster,
       .verbs = kAllVerbs,
       .storage = below("storageclasses"),
       .short_names = kSc,
       .put_creates = true},
  };
  for (Resource& row : rows) row.hooks = &hooks(row.group, row.kind);
  return rows;
}

}  // namespace

std::string_view to_string(Verb verb) {
  return std::ranges::find(kVerbNames, verb, &std::pair<Verb, std::string_view>::first)->second;
}

std::vector<std::string_view> VerbSet::names() const {
  std::vector<std::string_view> names;
  for (const auto& [verb, name] : kVerbNames) {
    if (has(verb)) names.push_back(name);
  }
  return names;
}

std::string Resource::api_version() const {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

const Subresource* Resource::subresource(std::string_view wanted) const {
  const auto found = std::ranges::find(subresources, wanted, &Subresource::name);
  return found == subresources.end() ? nullptr : &*found;
}

ResourceRegistry::ResourceRegistry(KindTable hooks) : resources_(table(hooks)) {}

const Resource* ResourceRegistry::find(std::string_view group, std::string_view version,
                                       std::string_view plural) const {
  for (const Resource& row : resources_) {
    if (row.plural == plural && row.group == group && row.version == version) return &row;
  }
  return nullptr;
}

const Resource* ResourceRegistry::find_kind(std::string_view api_version, std::string_view kind) const {
  for (const Resource& row : resources_) {
    if (row.kind == kind && row.api_version() == api_version) return &row;
  }
  return nullptr;
}

const Resource* ResourceRegistry::find_group_kind(std::string_view group, std::string_view kind) const {
  for (const Resource& row : resources_) {
    if (row.group == group && row.kind == kind && row.view.from_stored == nullptr) return &row;
  }
  return nullptr;
}

const Resource* ResourceRegistry::find_plural(std::string_view plural_and_group) const {
  const std::size_t dot = plural_and_group.find('.');
  const std::string_view plural = plural_and_group.substr(0, dot);
  const std::string_view group = dot == std::string_view::npos ? std::string_view() : plural_and_group.substr(dot + 1);
  for (const Resource& row : resources_) {
    if (row.plural == plural && row.group == group) return &row;
  }
  return nullptr;
}

bool ResourceRegistry::serves(std::string_view group, std::string_view version) const {
  return std::ranges::any_of(resources_,
                             [&](const Resource& row) { return row.group == group && row.version == version; });
}

bool ResourceRegistry::serves_group(std::string_view group) const {
  return std::ranges::any_of(resources_, [&](const Resource& row) { return row.group == group; });
}

const Resource& ResourceRegistry::get(std::string_view plural_and_group) const {
  const Resource* found = find_plural(plural_and_group);
  SPILLWAY_CHECK(found != nullptr);
  return *found;
}

}  // namespace spillway::apiserver
