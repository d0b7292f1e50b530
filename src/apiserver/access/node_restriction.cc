#include "apiserver/access/node_restriction.h"

#include "api/object/kind_id.h"
#include "apiserver/access/node_authorizer.h"
#include "apiserver/access/pod_references.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kLeaseGroup = "coordination.k8s.io";
constexpr std::string_view kStorageGroup = "storage.k8s.io";
constexpr std::array<std::string_view, 5> kOwnLabels{"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
                                                     "topology.kubernetes.io/region", "topology.kubernetes.io/zone"};
constexpr std::array<std::string_view, 5> kOldLabels{
    "beta.kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone"};

template <typename List>
bool contains(const List& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

/// `domain` itself or one below it.
bool within(std::string_view prefix, std::string_view domain) {
  return prefix == domain || (prefix.size() > domain.size() && prefix.ends_with(domain) &&
                              prefix[prefix.size() - domain.size() - 1] == '.');
}

/// Keys of labels that differ between two objects.
std::set<std::string> changed_labels(const Json& object, const Json* old) {
  const auto labels = [](const Json* document) {
    const Json* value = document == nullptr ? nullptr : document->at({"metadata", "labels"});
    return value == nullptr || value->if_object() == nullptr ? Json::Object() : *value->if_object();
  };
  const Json::Object now = labels(&object);
  const Json::Object before = labels(old);
  std::set<std::string> keys;
  for (const auto& [key, value] : now) {
    const Json* was = before.find(key);
    if (was == nullptr || !(*was == value)) keys.insert(key);
  }
  for (const auto& [key, value] : before) {
    if (now.find(key) == nullptr) keys.insert(key);
  }
  return keys;
}

/// The elements of a list; none if it is absent.
Json::Array list_in(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* found = object.at(path);
  return found == nullptr || found->if_array() == nullptr ? Json::Array() : *found->if_array();
}

bool same_at(const Json& a, const Json& b, std::initializer_list<std::string_view> path) {
  const Json* left = a.at(path);
  const Json* right = b.at(path);
  if (left == nullptr || right == nullptr) return left == right;
  return *left == *right;
}

api::Status refused(const Resource& resource, const Json& object, const std::string& node, std::string_view why) {
  return api::forbidden_status(resource.group_resource(), object.string_at({"metadata", "name"}),
                               fmt::format("node \"{}\" {}", node, why));
}

StatusResult<void> check_labels(const Resource& resource, const std::string& node, const Json& object,
                                const Json* old) {
  for (const std::string& key : changed_labels(object, old)) {
    if (!node_may_label(key)) {
      return refused(resource, object, node, fmt::format("is not allowed to modify label \"{}\"", key));
    }
  }
  return {};
}

}  // namespace

bool node_may_label(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return true;
  const std::string_view prefix = key.substr(0, slash);
  if (within(prefix, "node-restriction.kubernetes.io")) return false;
  if (contains(kOwnLabels, key) || contains(kOldLabels, key)) return true;
  if (within(prefix, "kubelet.kubernetes.io") || within(prefix, "node.kubernetes.io")) return true;
  return !within(prefix, "kubernetes.io") && !within(prefix, "k8s.io");
}

StatusResult<void> NodeRestriction::check_create(const api::UserInfo& user, const Resource& resource,
                                                 const Json& object) const {
  const std::optional<std::string> node = node_identity(user);
  if (!node) return {};
  const std::string_view name = object.string_at({"metadata", "name"});
  if (resource.is("", "Node")) {
    if (name != *node) return refused(resource, object, *node, "is not allowed to create another node");
    if (object.at({"metadata", "ownerReferences"}) != nullptr) {
      return refused(resource, object, *node, "is not allowed to set ownerReferences");
    }
    return check_labels(resource, *node, object, nullptr);
  }
  if (resource.is(kLeaseGroup, "Lease")) {
    if (object.string_at({"metadata", "namespace"}) != "kube-node-lease" || name != *node) {
      return refused(resource, object, *node, "may have one lease only: its own in kube-node-lease");
    }
    return {};
  }
  if (resource.is(kStorageGroup, "CSINode")) {
    if (name != *node) return refused(resource, object, *node, "is not allowed to create the CSINode of another node");
    return {};
  }
  if (resource.is("", "Pod")) return check_mirror_pod(*node, object);
  return {};
}

StatusResult<void> NodeRestriction::check_mirror_pod(const std::string& node, const Json& pod) const {
  const Resource& resource = core_.registry.get("pods");
  if (pod.string_at({"metadata", "annotations", "kubernetes.io/config.mirror"}).empty()) {
    return refused(resource, pod, node, "can only create mirror pods");
  }
  if (pod.string_at({"spec", "nodeName"}) != node) {
    return refused(resource, pod, node, "can only create pods with spec.nodeName set to itself");
  }
  const ObjectPtr self = core_.cache.of(core_.registry.get("nodes")).find(node);
  const Json* owners = pod.at({"metadata", "ownerReferences"});
  const Json::Array* list = owners == nullptr ? nullptr : owners->if_array();
  if (list != nullptr && list->size() > 1) {
    return refused(resource, pod, node, "can only create pods with a single owner reference set to itself");
  }
  const Json none;
  const Json& owner = list != nullptr && !list->empty() ? list->front() : none;
  if (owner.string_at({"apiVersion"}) != "v1" || owner.string_at({"kind"}) != "Node" ||
      owner.string_at({"name"}) != node || !self || owner.string_at({"uid"}) != self->meta.uid) {
    return refused(resource, pod, node, "can only create pods with an owner reference set to itself");
  }
  const auto is_set = [&](std::string_view member) {
    const Json* value = owner.find(member);
    return value != nullptr && value->if_bool().value_or(false);
  };
  if (!is_set("controller")) {
    return refused(resource, pod, node, "can only create pods with a controller owner reference set to itself");
  }
  if (is_set("blockOwnerDeletion")) {
    return refused(resource, pod, node, "must not set blockOwnerDeletion on an owner reference");
  }
  // A mirror pod must not let the node read what its other pods may not.
  StatusResult<void> verdict;
  visit_references(pod, [&](ReferenceKind kind, std::string_view) {
    const bool account = kind == ReferenceKind::kServiceAccount;
    verdict =
        refused(resource, pod, node,
                fmt::format("can not create pods that reference {}", account ? "a service account" : plural_of(kind)));
    return false;
  });
  return verdict;
}

StatusResult<void> NodeRestriction::check_update(const api::UserInfo& user, const Resource& resource,
                                                 SubresourceId part, const Json& object, const Json& old) const {
  const std::optional<std::string> node = node_identity(user);
  if (!node) return {};
  const std::string_view name = object.string_at({"metadata", "name"});
  if (resource.is("", "Node")) {
    if (name != *node) return refused(resource, object, *node, "is not allowed to modify another node");
    if (!same_at(object, old, {"metadata", "ownerReferences"})) {
      return refused(resource, object, *node, "is not allowed to modify ownerReferences");
    }
    if (!same_at(object, old, {"spec", "taints"})) {
      return refused(resource, object, *node, "is not allowed to modify taints");
    }
    return check_labels(resource, *node, object, &old);
  }
  if (resource.is("", "Pod") && part == SubresourceId::kResize) {
    return refused(resource, object, *node,
                   "may not use pod subresource \"resize\", only 'status' and 'eviction' are allowed");
  }
  if (resource.is("", "Pod") && part == SubresourceId::kStatus && !changed_labels(object, &old).empty()) {
    return refused(resource, object, *node, "cannot update labels through pod status");
  }
  if ((resource.is(kLeaseGroup, "Lease") || resource.is(kStorageGroup, "CSINode")) && name != *node) {
    return refused(resource, object, *node, "is not allowed to modify what belongs to another node");
  }
  return {};
}

bool NodeRestriction::passes_renewal(const api::UserInfo& user, const Resource& resource, std::string_view /*ns*/,
                                     std::string_view name) const {
  const std::optional<std::string> node = node_identity(user);
  return !node || (resource.is(kLeaseGroup, "Lease") && name == *node);
}

StatusResult<void> NodeRestriction::check_token(const api::UserInfo& user, std::string_view ns,
                                                std::string_view account, const Json& request) const {
  const std::optional<std::string> node = node_identity(user);
  if (!node) return {};
  const Resource& accounts = core_.registry.get("serviceaccounts");
  const auto refuse = [&](std::string_view why) {
    return api::forbidden_status(accounts.group_resource(), account, fmt::format("node \"{}\" {}", *node, why));
  };
  const Json* bound = request.at({"spec", "boundObjectRef"});
  const auto is_pod = [](const Json& reference) {
    return api::kind_id(reference.string_at({"apiVersion"}), reference.string_at({"kind"})) == api::KindId{"", "Pod"};
  };
  if (bound == nullptr || !is_pod(*bound)) {
    return refuse("requested a token that is not bound to a pod");
  }
  const ObjectPtr pod = core_.cache.of(core_.registry.get("pods")).find(object_key(ns, bound->string_at({"name"})));
  if (!pod || pod->meta.uid != bound->string_at({"uid"}) || pod->meta.fields.front() != *node) {
    return refuse("requested a token bound to a pod that is not on it");
  }
  if (!refers_to(pod->document(), ReferenceKind::kServiceAccount, account)) {
    return refuse("requested a token of an account its pod does not use");
  }
  const auto forbid = [&](std::string_view why) {
    return api::forbidden_status(accounts.group_resource(), account, why);
  };
  const Json* listed = request.at({"spec", "audiences"});
  const Json::Array* audiences = listed == nullptr ? nullptr : listed->if_array();
  if (audiences != nullptr && audiences->size() > 1) return forbid("node may only request 0 or 1 audiences");
  const bool is_own = audiences == nullptr || audiences->empty();
  const std::string audience(is_own ? std::string_view() : audiences->front().string_at({}));
  if (names_audience(pod->document(), ns, audience) || may_request_audience(user, ns, account, audience)) return {};
  return forbid(fmt::format(
      "audience \"{}\" not found in pod spec volume, {} is not authorized to request tokens for this audience",
      audience, user.name));
}

std::string NodeRestriction::driver_of_claim(std::string_view ns, const std::string& claim) const {
  const ObjectPtr found = core_.cache.of(core_.registry.get("persistentvolumeclaims")).find(object_key(ns, claim));
  if (!found) return {};
  const std::string volume(found->document().string_at({"spec", "volumeName"}));
  const ObjectPtr bound = core_.cache.of(core_.registry.get("persistentvolumes")).find(volume);
  return bound ? std::string(bound->document().string_at({"spec", "csi", "driver"})) : std::string();
}

bool NodeRestriction::names_audience(const Json& pod, std::string_view ns, std::string_view audience) const {
  const auto of_driver = [&](const std::string& driver) {
    if (driver.empty()) return false;
    const ObjectPtr found = core_.cache.of(core_.registry.get("csidrivers.storage.k8s.io")).find(driver);
    return found && std::ranges::any_of(list_in(found->document(), {"spec", "tokenRequests"}),
                                        [&](const Json& each) { return each.string_at({"audience"}) == audience; });
  };
  return std::ranges::any_of(list_in(pod, {"spec", "volumes"}), [&](const Json& volume) {
    const bool is_projected = std::ranges::any_of(list_in(volume, {"projected", "sources"}), [&](const Json& source) {
      return source.find("serviceAccountToken") != nullptr &&
             source.string_at({"serviceAccountToken", "audience"}) == audience;
    });
    if (is_projected) return true;
    if (volume.find("csi") != nullptr) return of_driver(std::string(volume.string_at({"csi", "driver"})));
    if (volume.find("persistentVolumeClaim") != nullptr)
      return of_driver(driver_of_claim(ns, std::string(volume.string_at({"persistentVolumeClaim", "claimName"}))));
    if (volume.find("ephemeral") == nullptr) return false;
    return of_driver(
        driver_of_claim(ns, fmt::format("{}-{}", pod.string_at({"metadata", "name"}), volume.string_at({"name"}))));
  });
}

bool NodeRestriction::may_request_audience(const api::UserInfo& user, std::string_view ns, std::string_view account,
                                           std::string_view audience) const {
  RequestAttributes asked;
  asked.verb = "request-serviceaccounts-token-audience";
  asked.resource = audience;
  asked.ns = ns;
  asked.name = account;
  asked.is_resource = true;
  return authorizer_.authorize(user, asked).allowed;
}

}  // namespace spillway::apiserver
