// The pods that name a claim. Thread: loop.
#pragma once

#include "api/object/pod.h"
#include "client/informer.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {

class ClaimUsers {
 public:
  using PodPtr = std::shared_ptr<const api::Pod>;

  explicit ClaimUsers(client::ObjectCache<api::Pod>& pods);
  ClaimUsers(const ClaimUsers&) = delete;
  ClaimUsers& operator=(const ClaimUsers&) = delete;

  /// Called with the key of every claim of a pod that was added, removed or bound.
  void when_changed(std::function<void(const client::ObjectKey& claim, Now now)> listener) {
    listeners_.push_back(std::move(listener));
  }

  /// A pod with a node names it, be it running or not.
  bool is_used(const client::ObjectKey& claim) const;
  /// Pods without a node that name it, by name, joined by commas.
  std::string waiting(const client::ObjectKey& claim) const;

 private:
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);

  client::ObjectCache<api::Pod>& pods_;
  std::map<client::ObjectKey, std::set<client::ObjectKey>> users_;  // claim → pods
  std::vector<std::function<void(const client::ObjectKey&, Now)>> listeners_;
};

}  // namespace spillway::controllers
