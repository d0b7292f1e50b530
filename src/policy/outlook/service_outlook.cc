#include "policy/outlook/service_outlook.h"

#include "policy/workloads/pod_complaint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace spillway::outlook {

namespace {

using endpoints::PodPtr;
using endpoints::SlicePtr;
using policy::Fact;
using policy::Verdict;

constexpr std::size_t kPortsMax = 100;  // ports that are explained; each is searched in every pod

/// Places in the order in which pods are listed: problems first.
enum class PodPlace { kNotReady, kNoAddress, kLeftOut, kEnding, kNearMiss, kReady, kEnded };

constexpr std::string_view name_of(PodPlace place) {
  switch (place) {
    case PodPlace::kNotReady:
      return "not ready";
    case PodPlace::kNoAddress:
      return "no address";
    case PodPlace::kLeftOut:
      return "left out";
    case PodPlace::kEnding:
      return "ending";
    case PodPlace::kNearMiss:
      return "not selected";
    case PodPlace::kReady:
      return "ready";
    case PodPlace::kEnded:
      break;
  }
  return "ended";
}

struct Placed {
  PodPtr pod;
  std::string why;
};

/// The only label that keeps a pod from being selected.
struct Difference {
  std::string key;
  std::string wanted;
  std::string has;  // value in the pod; empty: the pod has no such label
};

std::string selector_text(const api::StringMap& selector) {
  std::string text;
  for (const auto& [key, value] : selector) text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  return text;
}

std::string target_text(const api::ServicePort& port) {
  if (const std::string* name = port.target_port.if_string()) return *name;
  return fmt::format("{}", port.target_port.if_int64().value_or(port.port));
}

std::string label_text(const Difference& difference) {
  if (difference.has.empty()) return fmt::format("it has no label {}", difference.key);
  return fmt::format("its label {} is {}, not {}", difference.key, difference.has, difference.wanted);
}

class ServiceOutlook : OutlookMaker {
 public:
  ServiceOutlook(const ServiceScene& scene, WallTime now) : scene_(scene), s_(scene.service) {
    out_.at = now;
    out_.subject = {std::string(api::Service::kKind), s_.metadata.ns, s_.metadata.name, s_.metadata.uid};
  }

  Outlook explain() {
    if (scene_.pods && endpoints::has_selected_pods(s_)) place_pods();
    say_who_answers();
    if (s_.type != "ExternalName") {
      say_ports();
      say_manner();
      say_slices();
    }
    name_pods();
    name_ports();
    name_slices();
    return std::move(out_);
  }

 private:
  // The place of each pod.

  endpoints::SlicePlan plan(std::span<const PodPtr> pods, std::span<const SlicePtr> slices,
                            std::size_t per_slice) const {
    const auto node = [this](const std::string& name) -> const api::Node* {
      static const api::Node kAnyNode;
      return !scene_.nodes || scene_.nodes->contains(name) ? &kAnyNode : nullptr;
    };
    return endpoints::plan_slices(
        {.service = s_, .pods = pods, .node = node, .slices = slices, .per_slice = per_slice});
  }

  void place_pods() {
    for (const PodPtr& pod : *scene_.pods) {
      if (endpoints::selects(s_, pod->metadata.labels)) selected_.push_back(pod);
    }
    // The endpoint that a slice would have for each pod, computed as if there were no slices yet.
    const endpoints::SlicePlan fresh = plan(selected_, {}, std::max<std::size_t>(selected_.size(), 1));
    for (const api::EndpointSlice& slice : fresh.created) {
      for (const api::SliceEndpoint& endpoint : slice.endpoints) {
        if (endpoint.target) endpoints_[endpoint.target->name] = endpoint;
      }
    }
    for (const PodPtr& pod : selected_) place(pod);
    for (const PodPtr& pod : *scene_.pods) {
      if (api::is_terminal(*pod) || endpoints::selects(s_, pod->metadata.labels)) continue;
      if (const auto difference = near_miss(*pod)) record_near_miss(pod, *difference);
    }
  }

  void place(const PodPtr& pod) {
    const auto found = endpoints_.find(pod->metadata.name);
    if (found == endpoints_.end()) {
      const auto [where, why] = why_left_out(*pod);
      places_[where].push_back({pod, why});
      return;
    }
    const api::SliceEndpoint& endpoint = found->second;
    if (endpoint.terminating.value_or(false)) {
      const bool serves = endpoint.serving.value_or(false);
      draining_ += serves ? 1 : 0;
      places_[PodPlace::kEnding].push_back({pod, serves ? "it still answers" : "it no longer answers"});
    } else if (endpoint.serving.value_or(false)) {
      places_[PodPlace::kReady].push_back({pod, missing_ports(*pod)});
    } else {
      places_[PodPlace::kNotReady].push_back({pod, workloads::why_not_ready(*pod)});
    }
    if (endpoint.ready.value_or(false)) ready_.push_back(pod);
  }

  std::pair<PodPlace, std::string> why_left_out(const api::Pod& pod) const {
    if (api::is_terminal(pod)) return {PodPlace::kEnded, pod.status.phase};
    if (!endpoints::belongs_to_endpoints(pod, true)) return {PodPlace::kNoAddress, workloads::why_not_ready(pod)};
    const bool has_node = !scene_.nodes || scene_.nodes->contains(pod.spec.node_name);
    if (!has_node) return {PodPlace::kLeftOut, fmt::format("its node {} is not there", pod.spec.node_name)};
    return {PodPlace::kLeftOut, "none of its addresses is of a family of the service"};
  }

  /// The one label that differs from the selector; nullopt: none, or several do.
  std::optional<Difference> near_miss(const api::Pod& pod) const {
    std::optional<Difference> found;
    for (const auto& [key, wanted] : s_.selector) {
      const auto label = pod.metadata.labels.find(key);
      const bool has = label != pod.metadata.labels.end();
      if (has && label->second == wanted) continue;
      if (found) return std::nullopt;
      found = Difference{key, wanted, has ? label->second : std::string()};
    }
    // With a single label, a pod with another value of it belongs to something else; only a pod without the label is a
    // near miss.
    const bool conclusive = s_.selector.size() > 1 || (selected_.empty() && found && !found->has.empty());
    return conclusive ? found : std::nullopt;
  }

  void record_near_miss(const PodPtr& pod, const Difference& difference) {
    places_[PodPlace::kNearMiss].push_back({pod, label_text(difference)});
    ++misses_by_key_[difference.key];
  }

  /// Each port is searched in every pod, so a Service with more than kPortsMax has only the first ones explained.
  std::span<const api::ServicePort> ports() const {
    return std::span(s_.ports).first(std::min(s_.ports.size(), kPortsMax));
  }

  std::string missing_ports(const api::Pod& pod) const {
    std::string text;
    for (const api::ServicePort& port : ports()) {
      if (endpoints::target_port(port, pod)) continue;
      text += fmt::format("{}{}", text.empty() ? "it has no port named " : ", ", target_text(port));
    }
    return text;
  }

  std::int64_t count(PodPlace place) const {
    const auto found = places_.find(place);
    return found == places_.end() ? 0 : static_cast<std::int64_t>(found->second.size());
  }

  // The answer.

  void say_who_answers() {
    if (s_.metadata.deletion_timestamp) return add(Verdict::kRests, Code::kBeingDeleted, {});
    if (s_.type == "ExternalName") {
      return add(Verdict::kRests, Code::kServiceExternalName, {{"external_name", scene_.external_name}});
    }
    if (s_.selector.empty()) return say_without_selector();
    if (!scene_.pods) return say_by_slices();
    if (selected_.empty()) {
      return add(Verdict::kRefuses, Code::kServiceNoMatch, {{"selector", selector_text(s_.selector)}});
    }
    const std::int64_t pods = static_cast<std::int64_t>(selected_.size()) - count(PodPlace::kEnded);
    if (ready_.empty() && draining_ > 0) return add(Verdict::kWaits, Code::kServiceDraining, {{"pods", draining_}});
    if (ready_.empty()) return say_none_ready(pods);
    if (const api::ServicePort* port = port_of_nobody(); port != nullptr && s_.ports.size() == 1) {
      return say_port_missing(Verdict::kRefuses, *port);
    }
    const auto ready = static_cast<std::int64_t>(ready_.size());
    if (!scene_.not_carried.empty() && !endpoints::is_headless(s_) && !s_.ports.empty()) return say_not_carried(pods);
    add(Verdict::kRests, Code::kServiceReady, {{"ready", ready}, {"pods", pods}});
  }

  void say_not_carried(std::int64_t pods) {
    add(Verdict::kRefuses, Code::kServiceNotCarried,
        {{"ready", static_cast<std::int64_t>(ready_.size())},
         {"pods", pods},
         {"address", s_.cluster_ip},
         {"why", scene_.not_carried},
         {"name", s_.metadata.name},
         {"port", std::int64_t{s_.ports.front().port}}});
  }

  void say_without_selector() {
    std::vector<Fact> facts;
    if (scene_.slices) facts.push_back({"endpoints", slice_totals().first});
    const bool none = scene_.slices && slice_totals().first == 0;
    add(none ? Verdict::kRefuses : Verdict::kRests, Code::kServiceNoSelector, std::move(facts));
  }

  void say_by_slices() {
    if (scene_.slices) {
      const auto [total, ready] = slice_totals();
      add(ready > 0 ? Verdict::kRests : Verdict::kRefuses, Code::kServiceReady, {{"ready", ready}, {"pods", total}});
    }
    add(Verdict::kWaits, Code::kNotRead, {{"what", "pods"}});
  }

  void say_none_ready(std::int64_t pods) {
    std::vector<Fact> facts{{"pods", pods}};
    for (const PodPlace place : {PodPlace::kNotReady, PodPlace::kNoAddress, PodPlace::kLeftOut}) {
      if (count(place) == 0) continue;
      const Placed& first = places_.at(place).front();
      facts.push_back({"pod", first.pod->metadata.name});
      facts.push_back({"why", first.why});
      break;
    }
    add(Verdict::kRefuses, Code::kServiceNoneReady, std::move(facts));
  }

  std::int64_t pods_with(const api::ServicePort& port) const {
    return std::ranges::count_if(ready_,
                                 [&port](const PodPtr& pod) { return endpoints::target_port(port, *pod).has_value(); });
  }

  const api::ServicePort* port_of_nobody() const {
    const auto found = std::ranges::find_if(ports(), [this](const auto& port) { return pods_with(port) == 0; });
    return found == ports().end() ? nullptr : &*found;
  }

  void say_port_missing(Verdict verdict, const api::ServicePort& port) {
    add(verdict, Code::kServicePortMissing,
        {{"port", std::int64_t{port.port}},
         {"target", target_text(port)},
         {"pods", static_cast<std::int64_t>(ready_.size()) - pods_with(port)},
         {"ready", static_cast<std::int64_t>(ready_.size())}});
  }

  // Further remarks.

  void say_ports() {
    if (s_.ports.empty() && !s_.selector.empty()) add(Code::kServiceNoPorts, {});
    for (const api::ServicePort& port : ports()) {
      const bool lacks = pods_with(port) < static_cast<std::int64_t>(ready_.size());
      if (lacks && find_remark(out_, Code::kServicePortMissing) == nullptr) say_port_missing(out_.verdict, port);
    }
  }

  void say_manner() {
    if (endpoints::is_headless(s_)) add(Code::kServiceHeadless, {});
    if (s_.publish_not_ready) add(Code::kServiceNotReadyPublished, {});
    if (misses_by_key_.empty()) return;
    const auto most = std::ranges::max_element(misses_by_key_, {}, [](const auto& each) { return each.second; });
    add(Code::kServiceLeftOut, {{"pods", most->second}, {"key", most->first}, {"wanted", s_.selector.at(most->first)}});
  }

  /// The numbers of endpoints, and of ready ones.
  std::pair<std::int64_t, std::int64_t> slice_totals() const {
    std::int64_t total = 0;
    std::int64_t ready = 0;
    for (const SlicePtr& slice : *scene_.slices) {
      total += static_cast<std::int64_t>(slice->endpoints.size());
      ready += std::ranges::count_if(slice->endpoints, [](const auto& each) { return each.ready.value_or(true); });
    }
    return {total, ready};
  }

  void say_slices() {
    if (!scene_.slices) return add(Code::kNotRead, {{"what", "endpoint slices"}});
    const auto [total, ready] = slice_totals();
    add(Code::kServiceSlices,
        {{"slices", static_cast<std::int64_t>(scene_.slices->size())}, {"endpoints", total}, {"ready", ready}});
    if (!scene_.pods || !endpoints::has_selected_pods(s_) || s_.metadata.deletion_timestamp) return;
    const endpoints::SlicePlan due = plan(selected_, own_slices(), endpoints::kEndpointsPerSlice);
    const auto writes = static_cast<std::int64_t>(due.created.size() + due.updated.size() + due.deleted.size());
    if (writes > 0) add(Code::kServiceBehind, {{"writes", writes}});
  }

  /// The slices that the controller manages.
  std::vector<SlicePtr> own_slices() const {
    std::vector<SlicePtr> own;
    for (const SlicePtr& slice : *scene_.slices) {
      const auto by = slice->metadata.labels.find(endpoints::kManagedByLabel);
      const bool is_own = by != slice->metadata.labels.end() && by->second == endpoints::kSliceController;
      if (is_own && !slice->metadata.deletion_timestamp) own.push_back(slice);
    }
    return own;
  }

  void name_pods() {
    Part part{.name = "pods", .rows = {}, .total = 0};
    for (const auto& [place, pods] : places_) {
      part.total += static_cast<std::int64_t>(pods.size());
      for (const Placed& each : pods) {
        if (part.rows.size() == kRowsMax) break;
        part.rows.push_back({each.pod->metadata.name,
                             std::string(name_of(place)),
                             {{"node", each.pod->spec.node_name}, {"why", each.why}}});
      }
    }
    if (part.total > 0) out_.parts.push_back(std::move(part));
  }

  void name_ports() {
    if (s_.type == "ExternalName") return;
    Part part{.name = "ports", .rows = {}, .total = static_cast<std::int64_t>(s_.ports.size())};
    for (const api::ServicePort& port : s_.ports) {
      if (part.rows.size() == kRowsMax) break;
      Row row{port.name, fmt::format("{}/{}", port.port, port.protocol), {{"target", target_text(port)}}};
      if (scene_.pods && endpoints::has_selected_pods(s_)) row.facts.push_back({"pods", pods_with(port)});
      part.rows.push_back(std::move(row));
    }
    if (part.total > 0) out_.parts.push_back(std::move(part));
  }

  void name_slices() {
    if (!scene_.slices) return;
    Part part{.name = "slices", .rows = {}, .total = static_cast<std::int64_t>(scene_.slices->size())};
    for (const SlicePtr& slice : *scene_.slices) {
      if (part.rows.size() == kRowsMax) break;
      const auto ready =
          std::ranges::count_if(slice->endpoints, [](const auto& each) { return each.ready.value_or(true); });
      part.rows.push_back({slice->metadata.name,
                           slice->address_type,
                           {{"endpoints", static_cast<std::int64_t>(slice->endpoints.size())},
                            {"ready", std::int64_t{ready}},
                            {"ports", ports_text(*slice)}}});
    }
    if (part.total > 0) out_.parts.push_back(std::move(part));
  }

  static std::string ports_text(const api::EndpointSlice& slice) {
    std::string text;
    std::size_t named = 0;
    for (const api::SlicePort& port : slice.ports) {
      if (++named > kRowsMax) return text + ", ...";
      text += fmt::format("{}{}/{}", text.empty() ? "" : ", ", port.port.value_or(0), port.protocol.value_or("TCP"));
    }
    return text;
  }

  const ServiceScene& scene_;
  const api::Service& s_;
  std::vector<PodPtr> selected_;
  std::vector<PodPtr> ready_;                            // pods that receive connections
  std::int64_t draining_ = 0;                            // terminating endpoints that still serve
  std::map<std::string, api::SliceEndpoint> endpoints_;  // by the name of the pod
  std::map<PodPlace, std::vector<Placed>> places_;
  std::map<std::string, std::int64_t> misses_by_key_;
};

}  // namespace

Outlook explain_service(const ServiceScene& scene, WallTime now) {
  return ServiceOutlook(scene, now).explain();
}

}  // namespace spillway::outlook
