#include "controllers/endpoints/selected_pods.h"

#include "client/informer.h"
#include "policy/endpoints/service_pods.h"

#include <algorithm>

namespace spillway::controllers {

namespace {

std::string value_in(const std::string& ns, const std::string& value) {
  return ns + '/' + value;
}

/// Calls `visit` with the keys of a pod's labels and their values, if `labels` has them.
template <typename Labels, typename Visit>
void each_label(Labels& labels, const api::Pod& pod, Visit visit) {
  for (const auto& [key, value] : pod.metadata.labels) {
    const auto label = labels.find(key);
    if (label != labels.end()) visit(label->second, value_in(pod.metadata.ns, value));
  }
}

}  // namespace

SelectedPods::SelectedPods(client::ObjectCache<api::Pod>& pods, client::ObjectCache<api::Service>& services)
    : pods_(pods), services_(services) {
  pods.listen({[this](const PodPtr& before, const PodPtr& after, Now) { on_pod(before, after); }});
  services.listen({[this](const ServicePtr& before, const ServicePtr& after, Now) { on_service(before, after); }});
}

void SelectedPods::on_pod(const PodPtr& before, const PodPtr& after) {
  if (before && (!after || before->metadata.labels != after->metadata.labels)) {
    each_label(labels_, *before, [&](Label& label, const std::string& value) {
      const auto pods = label.pods.find(value);
      if (pods == label.pods.end()) return;
      pods->second.erase(client::key_of(before->metadata));
      if (pods->second.empty()) label.pods.erase(pods);
    });
  }
  if (!after) return;
  each_label(labels_, *after, [&](Label& label, const std::string& value) {
    label.pods[value][client::key_of(after->metadata)] = after;
  });
}

void SelectedPods::on_service(const ServicePtr& before, const ServicePtr& after) {
  if (before && after && before->selector == after->selector) return;
  if (before) take_out(*before);
  if (after) file(*after);
}

void SelectedPods::file(const api::Service& service) {
  for (const auto& [key, value] : service.selector) {
    Label& label = labels_[key];
    if (label.selectors++ == 0) read_pods(key, label);
  }
  if (service.selector.empty()) return;
  const auto& [key, value] = *service.selector.begin();
  labels_[key].services[value_in(service.metadata.ns, value)].insert(client::key_of(service.metadata));
}

void SelectedPods::take_out(const api::Service& service) {
  const auto first = service.selector.begin();
  for (auto pair = first; pair != service.selector.end(); ++pair) {
    const auto label = labels_.find(pair->first);
    if (label == labels_.end()) continue;
    if (pair == first) {
      const auto services = label->second.services.find(value_in(service.metadata.ns, pair->second));
      if (services != label->second.services.end()) {
        services->second.erase(client::key_of(service.metadata));
        if (services->second.empty()) label->second.services.erase(services);
      }
    }
    if (--label->second.selectors == 0) labels_.erase(label);
  }
}

void SelectedPods::read_pods(const std::string& key, Label& label) const {
  for (const auto& [name, pod] : pods_.all()) {
    const auto value = pod->metadata.labels.find(key);
    if (value != pod->metadata.labels.end()) label.pods[value_in(pod->metadata.ns, value->second)][name] = pod;
  }
}

std::vector<PodPtr> SelectedPods::pods_of(const api::Service& service) const {
  const Pods* fewest = nullptr;
  for (const auto& [key, value] : service.selector) {
    const auto label = labels_.find(key);
    if (label == labels_.end()) return {};
    const auto pods = label->second.pods.find(value_in(service.metadata.ns, value));
    if (pods == label->second.pods.end()) return {};
    if (fewest == nullptr || pods->second.size() < fewest->size()) fewest = &pods->second;
  }
  std::vector<PodPtr> selected;
  if (fewest == nullptr) return selected;
  for (const auto& [key, pod] : *fewest) {
    if (endpoints::selects(service, pod->metadata.labels)) selected.push_back(pod);
  }
  return selected;
}

std::vector<client::ObjectKey> SelectedPods::services_of(const std::string& ns, const api::StringMap& labels) const {
  std::vector<client::ObjectKey> selecting;
  for (const auto& [key, value] : labels) {
    const auto label = labels_.find(key);
    if (label == labels_.end()) continue;
    const auto services = label->second.services.find(value_in(ns, value));
    if (services == label->second.services.end()) continue;
    for (const client::ObjectKey& name : services->second) {
      const ServicePtr service = services_.find(name);
      if (service && endpoints::selects(*service, labels)) selecting.push_back(name);
    }
  }
  std::ranges::sort(selecting);
  return selecting;
}

}  // namespace spillway::controllers
