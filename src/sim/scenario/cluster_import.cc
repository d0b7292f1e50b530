#include "sim/scenario/cluster_import.h"

#include "api/object/kind_id.h"
#include "api/text/quantity.h"
#include "sim/scenario/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace spillway::sim {
namespace {

using api::Json;

constexpr Bytes kUnknownUse = mebibytes(10);

std::string key_of(const Json& object) {
  return fmt::format("{}/{}", object.string_at({"metadata", "namespace"}), object.string_at({"metadata", "name"}));
}

std::string text_of_object(const Json& object) {
  const bool namespaced = !object.string_at({"metadata", "namespace"}).empty();
  return fmt::format("{} {}", object.string_at({"kind"}),
                     namespaced ? key_of(object) : std::string(object.string_at({"metadata", "name"})));
}

constexpr api::KindId kNode{"", "Node"};
constexpr api::KindId kPod{"", "Pod"};
constexpr api::KindId kDeployment{"apps", "Deployment"};
constexpr api::KindId kReplicaSet{"apps", "ReplicaSet"};
constexpr api::KindId kDaemonSet{"apps", "DaemonSet"};
constexpr api::KindId kLease{"coordination.k8s.io", "Lease"};
constexpr api::KindId kBudget{"policy", "PodDisruptionBudget"};
constexpr api::KindId kPriorityClass{"scheduling.k8s.io", "PriorityClass"};

/// The kind of an object, or that of an owner reference.
api::KindId kind_of(const Json& document) {
  return api::kind_id(document.string_at({"apiVersion"}), document.string_at({"kind"}));
}

std::optional<api::Quantity> quantity_at(const Json& object, std::initializer_list<std::string_view> path) {
  const auto quantity = api::parse_quantity(object.string_at(path));
  return quantity ? std::optional(*quantity) : std::nullopt;
}

/// The members of `from` that are named.
Json only(const Json& from, std::initializer_list<std::string_view> names) {
  Json out = Json::object();
  for (const std::string_view name : names) {
    if (const Json* found = from.find(name); found != nullptr && !found->is_null()) out[name] = *found;
  }
  return out;
}

bool is_ready_node(const Json& node) {
  const Json* conditions = node.at({"status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr) return false;
  return std::ranges::any_of(*conditions->if_array(), [](const Json& each) {
    return each.string_at({"type"}) == "Ready" && each.string_at({"status"}) == "True";
  });
}

class Importer {
 public:
  explicit Importer(const ImportOptions& options) : options_(options) {}

  Result<Inventory> run(const Json::Array& items) {
    for (const Json& item : items) {
      if (kind_of(item) == kNode) take_node(item);
    }
    if (out_.machines.empty()) return make_error(ErrorCode::kInvalid, "it has no Node that is Ready");
    for (const Json& item : items) record_owner(item);
    for (const Json& item : items) record_use(item);
    for (const Json& item : items) {
      if (kind_of(item) != kDeployment) take(item);
    }
    // Deployments are made after their ReplicaSets, which they adopt: else each would make one of its own.
    for (const Json& item : items) {
      if (kind_of(item) == kDeployment) take(item);
    }
    add_namespaces();
    return std::move(out_);
  }

 private:
  void omit(std::string what, std::string why) { out_.left_out.push_back({std::move(what), std::move(why)}); }

  void take_node(const Json& node) {
    const std::string name(node.string_at({"metadata", "name"}));
    if (!is_ready_node(node)) return omit(text_of_object(node), "it is not Ready");
    MachineSpec machine{.name = name, .labels = {}, .memory = gibibytes(4)};
    if (const auto memory = quantity_at(node, {"status", "capacity", "memory"})) machine.memory = memory->bytes();
    if (const auto disk = quantity_at(node, {"status", "capacity", "ephemeral-storage"})) machine.disk = disk->bytes();
    if (const auto cpu = quantity_at(node, {"status", "capacity", "cpu"})) machine.cpu_milli = cpu->milli_value();
    if (const Json* labels = node.at({"metadata", "labels"}); labels != nullptr && labels->is_object()) {
      for (const auto& [label, value] : *labels->if_object()) {
        if (value.is_string() && label != "kubernetes.io/hostname") machine.labels[label] = *value.if_string();
      }
    }
    if (const Json* taints = node.at({"spec", "taints"}); taints != nullptr && taints->is_array()) {
      omit(text_of_object(node) + " spec.taints", "machines begin without taints");
    }
    if (const Json* cordon = node.at({"spec", "unschedulable"}); cordon != nullptr && cordon->if_bool() == true) {
      omit(text_of_object(node) + " spec.unschedulable", "machines begin schedulable");
    }
    nodes_.insert(name);
    out_.machines.push_back(std::move(machine));
  }

  /// Notes which ReplicaSets belong to a Deployment that is there. Pods of all its templates are assumed to use the
  /// same: the templates of a Deployment and of its ReplicaSets count as one.
  void record_owner(const Json& object) {
    if (kind_of(object) == kDeployment && object.at({"spec", "template", "spec"}) != nullptr) {
      deployments_.insert(fmt::format("Deployment/{}", key_of(object)));
    }
    if (kind_of(object) != kReplicaSet) return;
    const std::string owner = owner_of(object);
    if (owner.starts_with("Deployment/")) deployment_of_[fmt::format("ReplicaSet/{}", key_of(object))] = owner;
  }

  /// The Deployment of that ReplicaSet, if it is simulated, else itself.
  const std::string& roller_of(const std::string& owner) const {
    const auto found = deployment_of_.find(owner);
    return found != deployment_of_.end() && deployments_.contains(found->second) ? found->second : owner;
  }

  /// Notes the use of a pod for the template of its owner: the most that one of its pods uses.
  void record_use(const Json& pod) {
    if (kind_of(pod) != kPod) return;
    const std::string owner = owner_of(pod);
    if (owner.empty()) return;
    Bytes& most = use_of_owner_[roller_of(owner)];
    most = std::max(most, use_of_pod(pod));
  }

  std::string owner_of(const Json& object) const {
    const Json* owners = object.at({"metadata", "ownerReferences"});
    if (owners == nullptr || owners->if_array() == nullptr) return {};
    for (const Json& each : *owners->if_array()) {
      const Json* controller = each.find("controller");
      if (controller == nullptr || controller->if_bool() != true) continue;
      return fmt::format("{}/{}/{}", api::text_of(kind_of(each)), object.string_at({"metadata", "namespace"}),
                         each.string_at({"name"}));
    }
    return {};
  }

  Bytes use_of_pod(const Json& pod) const {
    const std::string key = key_of(pod);
    for (const auto& [glob, memory] : options_.profile) {
      if (matches_glob(glob, key)) return memory;
    }
    if (const auto found = options_.measured.find(key); found != options_.measured.end()) return found->second;
    const Json* spec = pod.find("spec");
    return spec == nullptr ? kUnknownUse : declared_use(*spec);
  }

  /// The requests or the limits; if only one of them is given, that stands for both.
  Bytes declared_use(const Json& spec) const {
    const bool limits = options_.load == ImportOptions::Load::kLimits;
    Bytes total{0};
    const Json* containers = spec.find("containers");
    if (containers == nullptr || containers->if_array() == nullptr) return kUnknownUse;
    for (const Json& each : *containers->if_array()) {
      auto use = quantity_at(each, {"resources", limits ? "limits" : "requests", "memory"});
      if (!use) use = quantity_at(each, {"resources", limits ? "requests" : "limits", "memory"});
      total += use ? use->bytes() : kUnknownUse;
    }
    return total;
  }

  /// Containers that use that much together; everything a simulated machine does not act on is gone.
  Json spec_of(const Json& spec, Bytes use) {
    Json out = only(spec, {"nodeName", "nodeSelector", "affinity", "tolerations", "priorityClassName", "restartPolicy",
                           "terminationGracePeriodSeconds", "topologySpreadConstraints", "hostNetwork"});
    Json containers = Json::array();
    const Json* given = spec.find("containers");
    if (given == nullptr || given->if_array() == nullptr) return out;
    const auto parts = static_cast<std::int64_t>(given->if_array()->size());
    for (const Json& each : *given->if_array()) {
      Json container = only(each, {"name", "image", "resources"});
      container["command"] = Json::array({"stress", "--memory", fmt::format("{}", use.count() / parts)});
      containers.if_array()->push_back(std::move(container));
    }
    out["containers"] = std::move(containers);
    return out;
  }

  Json plain(const Json& object) {
    Json out = only(object, {"apiVersion", "kind", "spec"});
    Json metadata = Json::object();
    if (const Json* from = object.find("metadata")) metadata = only(*from, {"name", "namespace", "labels"});
    constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
    if (const Json* revision = object.at({"metadata", "annotations", kRevision})) {
      metadata.make({"annotations", kRevision}) = *revision;
    }
    out["metadata"] = std::move(metadata);
    return out;
  }

  void place(std::string_view group, std::string_view plural, Json object) {
    const std::string ns(object.string_at({"metadata", "namespace"}));
    if (!ns.empty()) namespaces_.insert(ns);
    const std::string collection =
        ns.empty() ? fmt::format("{}/{}", group, plural) : fmt::format("{}/namespaces/{}/{}", group, ns, plural);
    out_.objects.push_back({collection, std::move(object)});
  }

  void take_workload(const Json& object, std::string_view plural) {
    const Json* replicas = object.at({"spec", "replicas"});
    const std::string id = fmt::format("{}/{}", object.string_at({"kind"}), key_of(object));
    const std::string& roller = roller_of(id);
    // A set of an old rollout has no pods, and without its Deployment it is no use for an undo.
    if (replicas != nullptr && replicas->if_int64() == 0 && roller == id && plural == "replicasets") return;
    Json out = plain(object);
    const Json* spec = object.at({"spec", "template", "spec"});
    if (spec == nullptr) return omit(text_of_object(object), "it has no template");
    const auto use = use_of_owner_.find(roller);
    out.make({"spec", "template", "spec"}) =
        spec_of(*spec, use == use_of_owner_.end() ? declared_use(*spec) : use->second);
    place("/apis/apps/v1", plural, std::move(out));
  }

  void take_pod(const Json& pod) {
    const std::string_view phase = pod.string_at({"status", "phase"});
    if (phase == "Succeeded" || phase == "Failed") return omit(text_of_object(pod), "it has ended");
    const std::string node(pod.string_at({"spec", "nodeName"}));
    if (!node.empty() && !nodes_.contains(node)) return omit(text_of_object(pod), "its node is not simulated");
    const Json* annotations = pod.at({"metadata", "annotations"});
    if (annotations != nullptr && annotations->find("kubernetes.io/config.mirror") != nullptr) {
      return omit(text_of_object(pod), "it comes from a file of its node");
    }
    const std::string owner = owner_of(pod);
    const bool replaced = owner.starts_with("ReplicaSet/") || owner.starts_with("DaemonSet/");
    if (!owner.empty() && !replaced) {
      omit(text_of_object(pod) + " metadata.ownerReferences", fmt::format("no controller acts for {} here", owner));
    }
    Json out = plain(pod);
    out["spec"] = spec_of(*pod.find("spec"), use_of_pod(pod));
    if (replaced) out.make({"metadata", "ownerReferences"}) = *pod.at({"metadata", "ownerReferences"});
    const std::string ns(pod.string_at({"metadata", "namespace"}));
    namespaces_.insert(ns);
    out_.pods.push_back({fmt::format("/api/v1/namespaces/{}/pods", ns), std::move(out)});
  }

  void take(const Json& item) {
    const api::KindId kind = kind_of(item);
    if (kind == kNode || kind == kLease) return;  // agents renew their own leases
    if (kind == kPod) return take_pod(item);
    if (kind == kReplicaSet) return take_workload(item, "replicasets");
    if (kind == kDaemonSet) return take_workload(item, "daemonsets");
    if (kind == kBudget) return place("/apis/policy/v1", "poddisruptionbudgets", plain(item));
    if (kind == kPriorityClass) return take_priority_class(item);
    if (kind == kDeployment) return take_workload(item, "deployments");
    omit(text_of_object(item), "objects of this kind are not simulated");
  }

  void take_priority_class(const Json& item) {
    // built-in objects, which every server creates
    if (item.string_at({"metadata", "name"}).starts_with("system-")) return;
    Json out = plain(item);
    for (const std::string_view name : {"value", "globalDefault", "preemptionPolicy"}) {
      if (const Json* found = item.find(name)) out[name] = *found;
    }
    place("/apis/scheduling.k8s.io/v1", "priorityclasses", std::move(out));
  }

  void add_namespaces() {
    std::vector<PlacedObject> objects;
    for (const std::string& ns : namespaces_) {
      if (ns == "default" || ns.starts_with("kube-")) continue;
      objects.push_back(
          {"/api/v1/namespaces",
           Json::object({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", Json::object({{"name", ns}})}})});
    }
    out_.objects.insert(out_.objects.begin(), objects.begin(), objects.end());
  }

  const ImportOptions& options_;
  Inventory out_;
  std::set<std::string> nodes_;
  std::set<std::string> namespaces_;
  std::set<std::string> deployments_;                 // "Deployment/default/web", those that are simulated
  std::map<std::string, std::string> deployment_of_;  // by "ReplicaSet/default/web-1"
  std::map<std::string, Bytes> use_of_owner_;         // "ReplicaSet/default/web"; of a Deployment's all together
};

}  // namespace

Result<Inventory> import_cluster(const Json& list, const ImportOptions& options) {
  const Json* items = list.find("items");
  if (items == nullptr || items->if_array() == nullptr) {
    return make_error(ErrorCode::kInvalid, "expected a List as `kubectl get … -o json` prints it");
  }
  return Importer(options).run(*items->if_array());
}

std::span<const std::string_view> cluster_lists() {
  static constexpr auto kLists =
      std::to_array<std::string_view>({"/api/v1/nodes", "/api/v1/pods", "/apis/policy/v1/poddisruptionbudgets",
                                       "/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/apps/v1/daemonsets",
                                       "/apis/apps/v1/replicasets", "/apis/apps/v1/deployments", kMeasuredList});
  return kLists;
}

Outcome add_list(ClusterLists& to, Json list) {
  constexpr std::string_view kEnd = "List";
  std::string kind(list.string_at({"kind"}));
  const std::string version(list.string_at({"apiVersion"}));
  Json* items = list.find("items");
  if (!kind.ends_with(kEnd) || kind.size() == kEnd.size() || version.empty() || items == nullptr)
    return invalid("list", "expected a list of one kind, as an API server answers it, got \"{}\"", kind);
  if (kind == "PodMetricsList") {
    to.options.measured.merge(measured_memory(list));
    return {};
  }
  kind.resize(kind.size() - kEnd.size());
  if (items->if_array() == nullptr) return {};  // null: none
  for (Json& item : *items->if_array()) {
    item["kind"] = kind;
    item["apiVersion"] = version;
    to.items.push_back(std::move(item));
  }
  return {};
}

Result<Inventory> import_cluster(ClusterLists lists) {
  return import_cluster(Json::object({{"items", Json(std::move(lists.items))}}), lists.options);
}

std::map<std::string, Bytes> measured_memory(const Json& pod_metrics) {
  std::map<std::string, Bytes> out;
  const Json* items = pod_metrics.find("items");
  if (items == nullptr || items->if_array() == nullptr) return out;
  for (const Json& pod : *items->if_array()) {
    const Json* containers = pod.find("containers");
    if (containers == nullptr || containers->if_array() == nullptr) continue;
    Bytes& total = out[key_of(pod)];
    for (const Json& each : *containers->if_array()) {
      if (const auto memory = quantity_at(each, {"usage", "memory"})) total += memory->bytes();
    }
  }
  return out;
}

}  // namespace spillway::sim
