#include "apiserver/access/node_restriction.h"

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
  if (bound == nullptr || bound->string_at({"kind"}) != "Pod") {
    return refuse("requested a token that is not bound to a pod");
  }
  const ObjectPtr pod = core_.cache.of(core_.registry.get("pods")).find(object_key(ns, bound->string_at({"name"})));
  if (!pod || pod->meta.uid != bound->string_at({"uid"}) || pod->meta.fields.front() != *node) {
    return refuse("requested a token bound to a pod that is not on it");
  }
  if (!refers_to(pod->document(), ReferenceKind::kServiceAccount, account)) {
    return refuse("requested a token of an account its pod does not use");
  }
  return {};
}

}  // namespace spillway::apiserver
