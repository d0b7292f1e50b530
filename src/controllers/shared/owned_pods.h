// Objects by the controller that owns them, kept from the changes of a cache; and the writes that make and break
// ownership.
// Thread: loop.
#pragma once

#include "api/object/pod.h"
#include "api/object/workload.h"
#include "client/object_cache.h"
#include "policy/workloads/pod_state.h"

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {

using workloads::PodPtr;

/// The wait of a controller for the newer version of an object after a write of its status met a conflict.
inline constexpr Duration kAfterConflict = seconds(1);

/// The workload that a pod belongs to, as owner references name it.
struct Owner {
  std::string_view api_version;
  std::string_view kind;
  const api::ObjectMeta& metadata;
};

template <typename T>
class OwnedObjects {
 public:
  using Ptr = std::shared_ptr<const T>;

  void on_change(const Ptr& before, const Ptr& after);

  /// The pods in key order.
  std::vector<Ptr> of(const std::string& owner_uid) const { return listed(by_owner_, owner_uid); }

  /// The pods of the namespace without a controller, in key order.
  std::vector<Ptr> orphans_in(const std::string& ns) const { return listed(orphans_, ns); }

  bool has_orphans_in(const std::string& ns) const { return orphans_.contains(ns); }

  std::size_t count_orphans_in(const std::string& ns) const {
    const auto entry = orphans_.find(ns);
    return entry == orphans_.end() ? 0 : entry->second.size();
  }

 private:
  using Index = std::map<std::string, std::map<client::ObjectKey, Ptr>>;

  static std::vector<Ptr> listed(const Index& index, const std::string& of) {
    std::vector<Ptr> objects;
    const auto entry = index.find(of);
    if (entry == index.end()) return objects;
    for (const auto& [key, object] : entry->second) objects.push_back(object);
    return objects;
  }

  Index by_owner_;
  Index orphans_;  // by namespace
};

/// Calls `visit(key, object)` for the objects of one namespace in a cache, in key order.
template <typename Objects, typename Visit>
void visit_namespace(const Objects& objects, const std::string& ns, Visit visit) {
  const std::string prefix = ns + "/";
  for (auto at = objects.lower_bound(prefix); at != objects.end() && at->first.starts_with(prefix); ++at) {
    visit(at->first, at->second);
  }
}

using OwnedPods = OwnedObjects<api::Pod>;
using OwnedReplicaSets = OwnedObjects<api::ReplicaSet>;

/// A new pod of that owner: its template, labels and annotations, a generated name, the owner reference.
api::Json pod_from_template(const Owner& owner, const api::PodTemplate& pod_template);
/// The patches that take a pod over and let it go. The uid in them refuses a namesake.
api::Json adoption_patch(const Owner& owner, const api::ObjectMeta& object);
api::Json release_patch(const api::ObjectMeta& owner, const api::ObjectMeta& object);

/// {preconditions: {uid}}: never a namesake.
api::Json delete_options(const api::ObjectMeta& object);

inline api::Json delete_options(const api::Pod& pod) {
  return delete_options(pod.metadata);
}

/// The entry of metadata.ownerReferences.
api::Json owner_reference(const Owner& owner);
api::Json json_of(const api::StringMap& map);

using workloads::is_active;
using workloads::is_ready;

}  // namespace spillway::controllers
