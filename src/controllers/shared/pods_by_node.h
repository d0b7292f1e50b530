// Pods by the node they are bound to, kept from the changes of a pod cache.
// Thread: loop.
#pragma once

#include "controllers/shared/owned_pods.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class PodsByNode {
 public:
  /// Listens to the cache; later listeners find it up to date.
  explicit PodsByNode(client::ObjectCache<api::Pod>& pods);
  PodsByNode(const PodsByNode&) = delete;
  PodsByNode& operator=(const PodsByNode&) = delete;

  /// The pods in key order.
  std::vector<PodPtr> on(std::string_view node) const;

 private:
  void on_change(const PodPtr& before, const PodPtr& after);

  std::map<std::string, std::map<client::ObjectKey, PodPtr>, std::less<>> by_node_;
};

}  // namespace spillway::controllers
