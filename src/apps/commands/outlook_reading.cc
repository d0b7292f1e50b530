#include "apps/commands/outlook_reading.h"

#include "api/codec/codec.h"
#include "api/exchange/exchange.h"
#include "api/object/endpoints.h"
#include "api/object/horizontal_autoscaler.h"
#include "api/object/job.h"
#include "api/object/pod_volumes.h"
#include "api/object/proxied_service.h"
#include "api/object/selector.h"
#include "api/object/service.h"
#include "api/object/storage.h"
#include "api/object/workload.h"
#include "apps/process/process.h"
#include "base/edit_distance.h"
#include "client/api_client.h"
#include "policy/autoscaling/scale_path.h"
#include "policy/outlook/autoscaler_outlook.h"
#include "policy/outlook/claim_outlook.h"
#include "policy/outlook/cron_outlook.h"
#include "policy/outlook/job_outlook.h"
#include "policy/outlook/service_outlook.h"
#include "policy/outlook/service_paths.h"
#include "policy/outlook/workload_outlook.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

bool is_denied(const Error& error) {
  return error.code == ErrorCode::kForbidden || error.code == ErrorCode::kUnauthorized;
}

class OutlookReading {
 public:
  OutlookReading(ClusterView& cluster, std::string name_space, std::string name, ServiceView view, Now now)
      : cluster_(cluster), ns_(std::move(name_space)), name_(std::move(name)), view_(std::move(view)), now_(now) {}

  Result<outlook::Outlook> job() {
    SPILLWAY_TRY(job, named<api::Job>("jobs"));
    outlook::JobScene scene{job, owned<api::Pod>("v1", "pods", job.metadata.uid, api::to_string(job.selector)), {}};
    scene.refused = last_refusal(job.metadata.uid);
    return outlook::explain_job(scene, now_.wall);
  }

  Result<outlook::Outlook> cron_job() {
    SPILLWAY_TRY(cron, named<api::CronJob>("cronjobs"));
    const outlook::CronScene scene{cron, owned<api::Job>(api::Job::kApiVersion, "jobs", cron.metadata.uid, {})};
    return outlook::explain_cron_job(scene, now_.wall);
  }

  Result<outlook::Outlook> service() {
    SPILLWAY_TRY(document, document_of<api::Service>("services"));
    SPILLWAY_TRY(service, api::decode<api::Service>(document));
    outlook::ServiceScene scene{service, std::string(document.string_at({"spec", "externalName"})), {}, {}, {}};
    const bool selects = endpoints::has_selected_pods(service);
    if (selects) scene.pods = listed<api::Pod>(client::object_path("v1", "pods", ns_));
    if (service.type != "ExternalName") {
      const std::string label = fmt::format("{}={}", endpoints::kServiceNameLabel, name_);
      scene.slices = listed<api::EndpointSlice>(
          selecting(client::object_path(api::EndpointSlice::kApiVersion, "endpointslices", ns_), label));
    }
    if (selects) scene.nodes = node_names();
    scene.not_carried = view_.not_carried;
    outlook::Outlook outlook = outlook::explain_service(scene, now_.wall);
    if (const auto proxied = api::decode<api::ProxiedService>(document); proxied && scene.slices) {
      for (outlook::Part& part : outlook::service_paths(*proxied, *scene.slices, path_node()))
        outlook.parts.push_back(std::move(part));
    }
    return outlook;
  }

  Result<outlook::Outlook> claim() {
    SPILLWAY_TRY(claim, named<api::PersistentVolumeClaim>("persistentvolumeclaims"));
    outlook::ClaimScene scene{
        claim, read_storage_classes(cluster_), listed<api::Pod>(client::object_path("v1", "pods", ns_)), {}};
    if (claim.status.phase != "Bound") scene.last_message = last_warning(claim.metadata.uid);
    return outlook::explain_claim(scene, now_.wall);
  }

  Result<outlook::Outlook> replica_set() {
    SPILLWAY_TRY(set, named<api::ReplicaSet>("replicasets"));
    return workload(api::ReplicaSet::kKind, set.metadata, set.replicas, outlook::PodOrder::kAny);
  }

  Result<outlook::Outlook> stateful_set() {
    SPILLWAY_TRY(set, named<api::StatefulSet>("statefulsets"));
    const bool is_ordered = set.pod_management_policy != "Parallel";
    return workload(api::StatefulSet::kKind, set.metadata, set.replicas,
                    is_ordered ? outlook::PodOrder::kOneByOne : outlook::PodOrder::kAny);
  }

  Result<outlook::Outlook> daemon_set() {
    SPILLWAY_TRY(set, named<api::DaemonSet>("daemonsets"));
    return workload(api::DaemonSet::kKind, set.metadata, set.status.desired_number_scheduled, outlook::PodOrder::kAny);
  }

  Result<outlook::Outlook> autoscaler() {
    SPILLWAY_TRY(autoscaler, named<api::HorizontalPodAutoscaler>("horizontalpodautoscalers"));
    outlook::AutoscalerScene scene{autoscaler, {}, {}, {}, {}};
    const Result<autoscaling::Scale> scale = scale_of(autoscaler);
    if (!scale && is_denied(scale.error())) {
      print_error(scale.error());
      scene.selecting = selecting_of(autoscaler, {});
      return outlook::explain_autoscaler(scene, now_);
    }
    scene.scale = scale;
    Listed<api::Pod> pods;
    if (scale && !scale->selector.empty()) {
      pods = listed<api::Pod>(selecting(client::object_path("v1", "pods", ns_), scale->selector));
    }
    scene.selecting = selecting_of(autoscaler, pods.value_or(std::vector<autoscaling::PodPtr>()));
    const bool asks = scale && !scale->selector.empty() && scene.selecting.size() == 1 &&
                      autoscaling::needs_metrics(autoscaler, *scale);
    if (asks) {
      scene.pods = std::move(pods);
      scene.answers = answers_for(autoscaler, *scale);
    } else {
      scene.pods.emplace();
      scene.answers.emplace();
    }
    return outlook::explain_autoscaler(scene, now_);
  }

 private:
  template <typename T>
  using Listed = std::optional<std::vector<std::shared_ptr<const T>>>;

  static std::string selecting(std::string path, std::string_view labels) {
    if (labels.empty()) return path;
    return path + "?labelSelector=" + api::percent_encode(labels);
  }

  template <typename T>
  Result<api::Json> document_of(std::string_view resource) {
    auto answer = cluster_.get(client::object_path(T::kApiVersion, resource, ns_, name_));
    if (answer || answer.error().code != ErrorCode::kNotFound) return answer;
    Error error = answer.error();
    error.message += near_name(client::object_path(T::kApiVersion, resource, ns_));
    return error;
  }

  template <typename T>
  Result<T> named(std::string_view resource) {
    SPILLWAY_TRY(document, document_of<T>(resource));
    return api::decode<T>(document);
  }

  /// "; did you mean import?", or empty when nothing is close.
  std::string near_name(const std::string& collection) {
    NearestWord nearest(name_);
    std::size_t compared = 0;
    for (const api::Json& each : cluster_.list(collection)) {
      if (++compared > kNamesCompared) break;
      nearest.offer(each.string_at({"metadata", "name"}));
    }
    return nearest.found().empty() ? std::string() : fmt::format("; did you mean {}?", nearest.found());
  }

  /// nullopt: the object cannot be read, which has been reported.
  std::optional<api::Json::Array> items_at(const std::string& path) {
    const auto answer = cluster_.get(path);
    if (!answer) {
      print_error(answer.error());
      return std::nullopt;
    }
    const api::Json* items = answer->find("items");
    return items != nullptr && items->if_array() != nullptr ? *items->if_array() : api::Json::Array();
  }

  /// Objects by name; those that cannot be decoded are left out.
  template <typename T>
  Listed<T> listed(const std::string& path) {
    const auto items = items_at(path);
    if (!items) return std::nullopt;
    std::vector<std::shared_ptr<const T>> values;
    for (const api::Json& each : *items) {
      auto value = api::decode<T>(each);
      if (value) values.push_back(std::make_shared<const T>(*std::move(value)));
    }
    std::ranges::sort(values, {}, [](const auto& value) { return value->metadata.name; });
    return values;
  }

  template <typename T>
  Listed<T> owned(std::string_view api_version, std::string_view resource, const std::string& uid,
                  std::string_view labels) {
    auto values = listed<T>(selecting(client::object_path(api_version, resource, ns_), labels));
    if (!values) return values;
    std::erase_if(*values, [&uid](const auto& value) {
      const api::OwnerReference* owner = api::controller_of(value->metadata);
      return owner == nullptr || owner->uid != uid;
    });
    return values;
  }

  outlook::Outlook workload(std::string_view kind, const api::ObjectMeta& metadata, std::int64_t wanted,
                            outlook::PodOrder order) {
    outlook::WorkloadScene scene{.kind = kind,
                                 .metadata = metadata,
                                 .wanted = wanted,
                                 .order = order,
                                 .pods = owned<api::Pod>("v1", "pods", metadata.uid, {}),
                                 .claims = {},
                                 .classes = {},
                                 .refused = last_refusal(metadata.uid)};
    const bool has_claims = scene.pods && std::ranges::any_of(*scene.pods, [](const auto& pod) {
                              return pod->spec.node_name.empty() && !api::claims_of(*pod).empty();
                            });
    if (has_claims) {
      const auto claims = listed<api::PersistentVolumeClaim>(client::object_path("v1", "persistentvolumeclaims", ns_));
      if (claims) scene.claims = *claims;
      scene.classes = read_storage_classes(cluster_);
    }
    return outlook::explain_workload(scene, now_.wall);
  }

  /// The message of the last Warning event about the object.
  std::optional<std::string> last_warning(const std::string& uid) {
    const std::string about = api::percent_encode(fmt::format("involvedObject.uid={}", uid));
    const auto events = listed<api::Event>(client::object_path("v1", "events", ns_) + "?fieldSelector=" + about);
    if (!events) return std::nullopt;
    const api::Event* last = nullptr;
    for (const auto& event : *events) {
      if (event->type != "Warning") continue;
      if (last == nullptr || event->last_timestamp > last->last_timestamp) last = event.get();
    }
    return last == nullptr ? std::nullopt : std::optional(last->message);
  }

  std::optional<outlook::RefusedPods> last_refusal(const std::string& uid) {
    const std::string about = api::percent_encode(fmt::format("involvedObject.uid={}", uid));
    const auto events = listed<api::Event>(client::object_path("v1", "events", ns_) + "?fieldSelector=" + about);
    std::optional<outlook::RefusedPods> last;
    if (!events) return last;
    for (const auto& event : *events) {
      const bool refuses = event->reason == "FailedCreate" && event->involved_object.uid == uid;
      const auto& at = event->last_timestamp ? event->last_timestamp : event->metadata.creation_timestamp;
      if (refuses && at && (!last || *at > last->at)) last = outlook::RefusedPods{event->message, *at};
    }
    return last;
  }

  /// Not every user may read nodes, and little depends on them: no line is printed.
  std::optional<std::set<std::string>> node_names() {
    const auto answer = cluster_.get(client::object_path("v1", "nodes", {}));
    const api::Json* items = answer ? answer->find("items") : nullptr;
    if (items == nullptr || items->if_array() == nullptr) return std::nullopt;
    std::set<std::string> names;
    for (const api::Json& node : *items->if_array()) names.emplace(node.string_at({"metadata", "name"}));
    return names;
  }

  // Autoscalers.

  /// Autoscalers of the same target, or of one that selects some of these pods, itself among them. Of many others the
  /// targets of kOthersMax are read, in the order of their names; a target that cannot be read selects nothing.
  std::vector<std::string> selecting_of(const api::HorizontalPodAutoscaler& own,
                                        const std::vector<autoscaling::PodPtr>& pods) {
    constexpr std::size_t kOthersMax = 64;
    std::vector<std::string> keys{fmt::format("{}/{}", own.metadata.ns, own.metadata.name)};
    const auto all = listed<api::HorizontalPodAutoscaler>(
        client::object_path(api::HorizontalPodAutoscaler::kApiVersion, "horizontalpodautoscalers", ns_));
    if (!all) return keys;
    std::size_t asked = 0;
    for (const auto& other : *all) {
      if (other->metadata.uid == own.metadata.uid) continue;
      bool shares = other->target == own.target;
      if (!shares && !pods.empty() && asked < kOthersMax) {
        ++asked;
        shares = selects_any(*other, pods);
      }
      if (shares) keys.push_back(fmt::format("{}/{}", other->metadata.ns, other->metadata.name));
    }
    std::ranges::sort(keys);
    return keys;
  }

  bool selects_any(const api::HorizontalPodAutoscaler& autoscaler, const std::vector<autoscaling::PodPtr>& pods) {
    const auto scale = scale_of(autoscaler);
    if (!scale || scale->selector.empty()) return false;
    const auto selector = api::parse_label_selector(scale->selector);
    return selector &&
           std::ranges::any_of(pods, [&](const auto& pod) { return selector->matches(pod->metadata.labels); });
  }

  Result<autoscaling::PluralKind> plural_of(const std::string& api_version, const std::string& kind) {
    SPILLWAY_TRY(path, autoscaling::version_path(api_version));
    const auto resources = cluster_.get(path);
    if (resources) return autoscaling::plural_of(*resources, api_version, kind);
    if (resources.error().code == ErrorCode::kNotFound) return autoscaling::unknown_kind(api_version, kind);
    return resources.error();
  }

  Result<autoscaling::Scale> scale_of(const api::HorizontalPodAutoscaler& autoscaler) {
    SPILLWAY_TRY(plural, plural_of(autoscaler.target.api_version, autoscaler.target.kind));
    SPILLWAY_TRY(path, autoscaling::scale_path(autoscaler, plural));
    SPILLWAY_TRY(document, cluster_.get(path));
    return autoscaling::read_scale(document);
  }

  Result<api::Json> ask(const autoscaling::MetricTarget& target, const std::string& pods) {
    std::string described;
    if (target.kind == autoscaling::MetricKind::kObject) {
      SPILLWAY_TRY(plural, plural_of(target.described.api_version, target.described.kind));
      described = plural.text();
    }
    const std::string path = autoscaling::question_path(target, ns_, pods, described);
    if (path.empty()) return make_error(ErrorCode::kInvalid, "unknown metric source type \"{}\"", target.type);
    return cluster_.get(path);
  }

  std::optional<std::vector<autoscaling::MetricAnswer>> answers_for(const api::HorizontalPodAutoscaler& autoscaler,
                                                                    const autoscaling::Scale& scale) {
    std::vector<autoscaling::MetricAnswer> answers;
    for (const autoscaling::MetricTarget& target : autoscaling::metric_targets(autoscaler)) {
      auto answer = ask(target, scale.selector);
      if (!answer && is_denied(answer.error())) {
        print_error(answer.error());
        return std::nullopt;
      }
      answers.push_back({target, std::move(answer)});
    }
    return answers;
  }

  /// The requested node, or the first by name.
  outlook::PathNode path_node() {
    outlook::PathNode node{.name = view_.node, .zone = {}};
    if (node.name.empty()) {
      const auto names = node_names();
      if (names && !names->empty()) node.name = *names->begin();
    }
    if (node.name.empty()) return node;
    const auto object = cluster_.get(client::object_path("v1", "nodes", {}, node.name));
    if (object) node.zone = object->string_at({"metadata", "labels", "topology.kubernetes.io/zone"});
    return node;
  }

  ClusterView& cluster_;
  std::string ns_;
  std::string name_;
  ServiceView view_;
  Now now_;
};

}  // namespace

std::optional<std::vector<outlook::ClassPtr>> read_storage_classes(ClusterView& cluster) {
  const auto answer = cluster.get(client::object_path(api::StorageClass::kApiVersion, "storageclasses", {}));
  const api::Json* items = answer ? answer->find("items") : nullptr;
  if (items == nullptr || items->if_array() == nullptr) return std::nullopt;
  std::vector<outlook::ClassPtr> classes;
  for (const api::Json& each : *items->if_array()) {
    auto value = api::decode<api::StorageClass>(each);
    if (value) classes.push_back(std::make_shared<const api::StorageClass>(*std::move(value)));
  }
  return classes;
}

Result<outlook::Outlook> read_outlook(ClusterView& cluster, std::string_view resource, const std::string& name_space,
                                      const std::string& name, const ServiceView& view, Now now) {
  OutlookReading reading(cluster, name_space, name, view, now);
  if (resource == "jobs") return reading.job();
  if (resource == "cronjobs") return reading.cron_job();
  if (resource == "services") return reading.service();
  if (resource == "persistentvolumeclaims") return reading.claim();
  if (resource == "replicasets") return reading.replica_set();
  if (resource == "statefulsets") return reading.stateful_set();
  if (resource == "daemonsets") return reading.daemon_set();
  return reading.autoscaler();
}

}  // namespace spillway::apps
