// vectors/workloads: statefulset_actions.
#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "policy/workloads/stateful_plan.h"
#include "policy/workloads/stateful_revisions.h"
#include "support/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

namespace spillway::workloads {
namespace {

using api::Json;
using support::Mismatch;

template <typename T>
std::vector<std::shared_ptr<const T>> objects_in(const Json& in, std::string_view member) {
  std::vector<std::shared_ptr<const T>> out;
  const Json* list = in.find(member);
  if (list == nullptr || list->if_array() == nullptr) return out;
  for (const Json& each : *list->if_array()) out.push_back(std::make_shared<const T>(api::decode<T>(each).value()));
  return out;
}

std::vector<RevisionPtr> revisions_in(const Json& in, const api::StatefulSet& set) {
  std::vector<RevisionPtr> out;
  for (const Json& each : *in.find("revisions")->if_array()) {
    api::PodTemplate pod_template = set.pod_template;
    for (Json& container : *pod_template.spec.at({"containers"})->if_array()) {
      container["image"] = each.string_at({"image"});
    }
    api::ControllerRevision revision;
    revision.metadata.name = each.string_at({"name"});
    revision.revision = each.find("revision")->if_int64().value();
    revision.data = template_data(pod_template);
    out.push_back(std::make_shared<const api::ControllerRevision>(std::move(revision)));
  }
  return out;
}

Json labels_or_nothing(const api::StringMap& labels) {
  Json out = Json::object();
  for (const auto& [key, value] : labels) out[key] = value;
  return out;
}

/// The outcome of the steps, every one of which succeeded.
class StatefulOutcome {
 public:
  explicit StatefulOutcome(const api::StatefulSet& set) : set_(set) {}

  void operator()(const CreateClaim& step) {
    const std::string name(step.document.string_at({"metadata", "name"}));
    const Json* labels = step.document.at({"metadata", "labels"});
    write("create", "persistentvolumeclaims", name,
          Json::object({{"labels", labels != nullptr ? *labels : Json()}, {"ownerReferences", Json()}}));
    record_event("SuccessfulCreate",
                 fmt::format("create Claim {} Pod {} in StatefulSet {} success", name, step.pod, owner()));
  }

  void operator()(const CreateStatefulPod& step) {
    write("create", "pods", step.pod, digest(step.document));
    record_event("SuccessfulCreate", fmt::format("create Pod {} in StatefulSet {} successful", step.pod, owner()));
  }

  void operator()(const OwnClaim& step) {
    api::PersistentVolumeClaim owned = *step.claim;
    owned.metadata.owner_references = step.owners;
    const Json document = api::encode(owned);
    const Json* owners = document.at({"metadata", "ownerReferences"});
    write("update", "persistentvolumeclaims", owned.metadata.name,
          Json::object({{"labels", labels_or_nothing(owned.metadata.labels)},
                        {"ownerReferences", owners != nullptr ? *owners : Json()}}));
  }

  void operator()(const RepairPod& step) {
    api::Pod pod = *step.pod;
    for (const auto& [key, value] : step.labels) pod.metadata.labels[key] = value;
    Json document = api::encode(pod);
    if (!step.volumes.is_null()) document.make({"spec", "volumes"}) = step.volumes;
    write("update", "pods", pod.metadata.name, digest(document));
    record_event("SuccessfulUpdate",
                 fmt::format("update Pod {} in StatefulSet {} successful", pod.metadata.name, owner()));
  }

  void operator()(const DeleteStatefulPod& step) {
    const std::string& name = step.pod->metadata.name;
    write("delete", "pods", name, Json());
    record_event("SuccessfulDelete", fmt::format("delete Pod {} in StatefulSet {} successful", name, owner()));
  }

  void operator()(const CannotCreate&) {}

  Json row(const api::StatefulSetStatus& status) {
    api::StatefulSet written;
    written.status = status;
    const Json document = api::encode(written);
    const Json& shown = *document.find("status");
    if (status != set_.status) write("update", "statefulsets/status", owner(), shown);
    if (is_parallel(set_)) {  // upstream's order is not defined
      std::ranges::stable_sort(*writes_.if_array(), {}, [](const Json& each) {
        return std::tuple(std::string(each.string_at({"resource"})), std::string(each.string_at({"verb"})),
                          std::string(each.string_at({"name"})));
      });
      std::ranges::stable_sort(*events_.if_array(), {},
                               [](const Json& each) { return std::string(each.string_at({"message"})); });
    }
    Json row = Json::object({{"writes", writes_}, {"status", shown}});
    if (!events_.if_array()->empty()) row["events"] = events_;
    return row;
  }

 private:
  const std::string& owner() const { return set_.metadata.name; }

  static Json digest(const Json& pod) {
    Json claims = Json::array();
    const Json* volumes = pod.at({"spec", "volumes"});
    if (volumes != nullptr && volumes->if_array() != nullptr) {
      for (const Json& volume : *volumes->if_array()) {
        claims.if_array()->push_back(
            fmt::format("{}={}", volume.string_at({"name"}), volume.string_at({"persistentVolumeClaim", "claimName"})));
      }
    }
    const Json& container = pod.at({"spec", "containers"})->if_array()->front();
    return Json::object({{"claims", std::move(claims)},
                         {"hostname", pod.string_at({"spec", "hostname"})},
                         {"image", container.string_at({"image"})},
                         {"labels", *pod.at({"metadata", "labels"})},
                         {"subdomain", pod.string_at({"spec", "subdomain"})}});
  }

  void write(std::string_view verb, std::string_view resource, const std::string& name, Json object) {
    Json out = Json::object({{"verb", verb}, {"resource", resource}, {"name", name}});
    if (!object.is_null()) out["object"] = std::move(object);
    writes_.if_array()->push_back(std::move(out));
  }

  void record_event(std::string_view reason, std::string message) {
    events_.if_array()->push_back(
        Json::object({{"type", "Normal"}, {"reason", reason}, {"message", std::move(message)}}));
  }

  const api::StatefulSet& set_;
  Json writes_ = Json::array();
  Json events_ = Json::array();
};

std::optional<Mismatch> check_stateful(const Json& row) {
  const Json& in = *row.find("in");
  const api::StatefulSet set = api::decode<api::StatefulSet>(*in.find("statefulset")).value();
  const std::vector<PodPtr> pods = objects_in<api::Pod>(in, "pods");
  std::map<std::string, ClaimPtr> claims;
  for (const ClaimPtr& claim : objects_in<api::PersistentVolumeClaim>(in, "claims")) {
    claims[claim->metadata.name] = claim;
  }
  const StatefulRevisions revisions = plan_stateful_revisions(set, revisions_in(in, set), 0);
  const RevisionPtr& current = revisions.current ? revisions.current : revisions.update;
  const std::function<ClaimPtr(const std::string&)> claim = [&claims](const std::string& name) {
    const auto found = claims.find(name);
    return found == claims.end() ? ClaimPtr() : found->second;
  };
  const WallTime now = api::parse_time("2026-01-01T00:00:00Z").value();
  const StatefulPlan plan = plan_stateful({set, pods, claim, *current, *revisions.update}, now);
  StatefulOutcome outcome(set);
  for (const StatefulStep& step : plan.steps) std::visit(outcome, step);
  return support::compare(*row.find("want"), outcome.row(plan.status));
}

const bool kStatefulRows = support::add_vector_check("workloads/statefulset_actions", check_stateful);

}  // namespace
}  // namespace spillway::workloads
