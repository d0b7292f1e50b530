// Pods by the controller that owns them, kept from the changes of a pod cache; and the writes that make and break
// ownership.
// Thread: loop.
#pragma once

#include "api/object/pod.h"
#include "api/object/workload.h"
#include "client/object_cache.h"
#include "policy/workloads/pod_state.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {

using workloads::PodPtr;

/// The workload that a pod belongs to, as owner references name it.
struct Owner {
  std::string_view api_version;
  std::string_view kind;
  const api::ObjectMeta& metadata;
};

class OwnedPods {
 public:
  void on_change(const PodPtr& before, const PodPtr& after);

  /// In key order.
  std::vector<PodPtr> of(const std::string& owner_uid) const;
  /// Pods of the namespace without a controller, in key order.
  std::vector<PodPtr> orphans_in(const std::string& ns) const;

  bool has_orphans_in(const std::string& ns) const { return orphans_.contains(ns); }

 private:
  std::map<std::string, std::map<client::ObjectKey, PodPtr>> by_owner_;
  std::map<std::string, std::map<client::ObjectKey, PodPtr>> orphans_;  // by namespace
};

/// A new pod of that owner: its template, labels and annotations, a generated name, the owner reference.
api::Json pod_from_template(const Owner& owner, const api::PodTemplate& pod_template);
/// The patches that take a pod over and let it go. The uid in them refuses a namesake.
api::Json adoption_patch(const Owner& owner, const api::Pod& pod);
api::Json release_patch(const api::ObjectMeta& owner, const api::Pod& pod);

/// {preconditions: {uid}}: never a namesake.
api::Json delete_options(const api::Pod& pod);

using workloads::is_active;
using workloads::is_ready;

}  // namespace spillway::controllers
