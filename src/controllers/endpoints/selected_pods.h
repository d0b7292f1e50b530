// The pods that each Service of a namespace selects, updated on changes of both caches, so that the sync of a Service
// does not read every pod, nor a change of a pod every Service. Pods are kept by the labels that selectors name, no
// others; a Service by the first label of its selector. Thread: loop. Bounds: an entry for each pod and each label of
// it that a selector names. Cost: a label that no selector named before reads every pod once.
#pragma once

#include "api/object/pod.h"
#include "api/object/service.h"
#include "client/object_cache.h"
#include "controllers/shared/owned_pods.h"

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class SelectedPods {
 public:
  /// Listens to the caches; later listeners find it up to date.
  SelectedPods(client::ObjectCache<api::Pod>& pods, client::ObjectCache<api::Service>& services);
  SelectedPods(const SelectedPods&) = delete;
  SelectedPods& operator=(const SelectedPods&) = delete;

  /// The pods that the Service selects, in the order of their keys. The Service must be in the cache.
  std::vector<PodPtr> pods_of(const api::Service& service) const;
  /// Keys of the Services of the namespace that select such a pod, in order.
  std::vector<client::ObjectKey> services_of(const std::string& ns, const api::StringMap& labels) const;

 private:
  using ServicePtr = std::shared_ptr<const api::Service>;
  using Pods = std::map<client::ObjectKey, PodPtr>;

  /// The index of one label key.
  struct Label {
    std::size_t selectors = 0;  // number of selectors that name it
    std::map<std::string, Pods> pods;
    std::map<std::string, std::set<client::ObjectKey>> services;  // services whose selectors begin with it
  };

  void on_pod(const PodPtr& before, const PodPtr& after);
  void on_service(const ServicePtr& before, const ServicePtr& after);
  void file(const api::Service& service);
  void take_out(const api::Service& service);
  void read_pods(const std::string& key, Label& label) const;

  const client::ObjectCache<api::Pod>& pods_;
  const client::ObjectCache<api::Service>& services_;
  std::map<std::string, Label, std::less<>> labels_;  // keys that selectors name; values are NAMESPACE/VALUE
};

}  // namespace spillway::controllers
