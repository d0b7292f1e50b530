#include "apiserver/write/server_members.h"

#include "api/text/time_text.h"
#include "apiserver/request/body.h"
#include "apiserver/write/committer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;

/// Members of metadata that a client does not set on a new object.
constexpr std::string_view kNotOfClients[] = {"uid", "creationTimestamp", "deletionTimestamp", "selfLink",
                                              "deletionGracePeriodSeconds"};

/// Sets member `name` of `to` to its value in `from`, or removes it if `from` has none.
void keep_member(Json& to, const Json& from, std::string_view name) {
  if (const Json* value = from.find(name)) {
    to[name] = *value;
  } else {
    to.erase({name});
  }
}

Status missing_version(const Resource& resource, std::string_view name) {
  api::FieldErrors errors;
  errors.invalid("metadata.resourceVersion", 0, "must be specified for an update");
  return api::invalid_status({std::string(resource.group), std::string(resource.plural)}, name, errors);
}

bool differs(const Json& object, const Json& old, std::initializer_list<std::string_view> path) {
  const Json* before = old.at(path);
  const Json* after = object.at(path);
  return (before == nullptr) != (after == nullptr) || (before != nullptr && !(*before == *after));
}

/// The spec, or the members that other kinds have instead.
constexpr std::array<std::string_view, 6> kCountedMembers{"spec",      "template", "webhooks",
                                                          "endpoints", "ports",    "addressType"};

/// True if objects of a custom kind differ in more than their metadata, and than their status where that has an
/// endpoint of its own.
bool differs_beyond_metadata(const Resource& resource, Json object, Json old) {
  for (Json* document : {&object, &old}) {
    document->erase({"metadata"});
    document->erase({"apiVersion"});
    if (resource.status_subresource) document->erase({"status"});
  }
  return !(object == old);
}

bool has_elements(const Json* list) {
  return list != nullptr && list->if_array() != nullptr && !list->if_array()->empty();
}

/// The members of a container that a resize writes. Where the containers are not the same ones, `resized` is kept as it
/// was sent: validation refuses it.
void merge_resized(Json& spec, const Json& resized, std::string_view list) {
  Json* kept = spec.find(list);
  const Json* sent = resized.find(list);
  Json::Array* containers = kept == nullptr ? nullptr : kept->if_array();
  const Json::Array* wanted = sent == nullptr ? nullptr : sent->if_array();
  const auto has_same_name = [](const Json& a, const Json& b) {
    return a.string_at({"name"}) == b.string_at({"name"});
  };
  if (containers == nullptr || wanted == nullptr || !std::ranges::equal(*containers, *wanted, has_same_name)) {
    return keep_member(spec, resized, list);
  }
  for (std::size_t i = 0; i < containers->size(); ++i) {
    for (const std::string_view member : {"resources", "resizePolicy"}) {
      keep_member((*containers)[i], (*wanted)[i], member);
    }
  }
}

}  // namespace

Endpoint endpoint_of(SubresourceId part) {
  switch (part) {
    case SubresourceId::kStatus:
      return Endpoint::kStatus;
    case SubresourceId::kApproval:
      return Endpoint::kApproval;
    case SubresourceId::kEphemeralContainers:
      return Endpoint::kEphemeralContainers;
    case SubresourceId::kResize:
      return Endpoint::kResize;
    case SubresourceId::kFinalize:
      return Endpoint::kFinalize;
    case SubresourceId::kNone:
    case SubresourceId::kScale:
    case SubresourceId::kBinding:
    case SubresourceId::kEviction:
    case SubresourceId::kLog:
    case SubresourceId::kExec:
    case SubresourceId::kToken:
    case SubresourceId::kProxy:
      return Endpoint::kMain;
  }
  return Endpoint::kMain;
}

api::Status uid_mismatch(const api::GroupResource& of, std::string_view name, std::string_view wanted,
                         std::string_view actual) {
  return api::conflict_status(of, name,
                              "Precondition failed: UID in precondition: " + std::string(wanted) +
                                  ", UID in object meta: " + std::string(actual));
}

void give_identity(const Resource& resource, const std::string& ns, std::string uid, WallTime now, Json& metadata) {
  for (const std::string_view member : kNotOfClients) metadata.erase({member});
  metadata.erase({"resourceVersion"});
  if (!ns.empty()) metadata["namespace"] = ns;
  metadata["uid"] = std::move(uid);
  metadata["creationTimestamp"] = api::format_time(now);
  if (resource.counts_generation) metadata["generation"] = 1;
}

StatusResult<void> check_address(const UpdateJob& job, const Resource& resource, const StoredObject& current,
                                 Json& metadata) {
  if (metadata.string_at({"name"}) != job.name) {
    return make_error(ErrorCode::kBadRequest, "the name of the object ({}) does not match the name on the URL ({})",
                      metadata.string_at({"name"}), job.name);
  }
  if (!resource.namespaced()) metadata.erase({"namespace"});
  if (const std::string_view ns = metadata.string_at({"namespace"}); !ns.empty() && ns != job.ns) {
    return make_error(ErrorCode::kBadRequest,
                      "the namespace of the object ({}) does not match the namespace on the URL ({})", ns, job.ns);
  }
  if (!job.ns.empty()) metadata["namespace"] = job.ns;
  if (!job.uid.empty() && job.uid != current.meta.uid) {
    return uid_mismatch(resource.group_resource(), job.name, job.uid, current.meta.uid);
  }
  const std::string_view version = metadata.string_at({"resourceVersion"});
  const std::string current_version = std::to_string(current.revision.number());
  const bool any_version = version.empty() || version == "0";
  if (any_version && resource.requires_version && !job.trusted) return missing_version(resource, job.name);
  if (!any_version && version != current_version) {
    return api::stale_version_status(resource.group_resource(), job.name);
  }
  metadata["resourceVersion"] = current_version;
  return {};
}

void keep_server_members(Json& metadata, const Json& old, Author author) {
  const bool trusted = author == Author::kServer;
  for (const std::string_view member : {"creationTimestamp", "generation"}) keep_member(metadata, old, member);
  const bool deleting = old.find("deletionTimestamp") != nullptr;
  if (trusted || deleting) keep_member(metadata, old, "deletionTimestamp");
  for (const std::string_view member : {"uid", "deletionGracePeriodSeconds"}) {
    const Json* sent = metadata.find(member);
    const std::string* text = sent != nullptr ? sent->if_string() : nullptr;
    const bool absent = sent == nullptr || sent->is_null() || (text != nullptr && text->empty());
    if (trusted || absent) keep_member(metadata, old, member);
  }
}

void isolate(const Resource& resource, SubresourceId part, Json& object, const Json& old) {
  if (part == SubresourceId::kEphemeralContainers || part == SubresourceId::kResize) {
    Json isolated = old;
    Json& spec = isolated["spec"];
    const Json& sent = object["spec"];
    if (part == SubresourceId::kEphemeralContainers) {
      keep_member(spec, sent, "ephemeralContainers");
    } else {
      keep_member(spec, sent, "resources");
      for (const std::string_view list : {"containers", "initContainers"}) merge_resized(spec, sent, list);
    }
    for (const std::string_view member : {"resourceVersion", "uid"}) {
      keep_member(isolated["metadata"], object["metadata"], member);
    }
    // Server-side apply has recorded its manager already.
    if (part == SubresourceId::kResize) keep_member(isolated["metadata"], object["metadata"], "managedFields");
    object = std::move(isolated);
    return;
  }
  if (part == SubresourceId::kStatus && (resource.custom != nullptr || resource.status_keeps_metadata)) {
    Json isolated = old;
    keep_member(isolated, object, "status");
    for (const std::string_view member : {"resourceVersion", "uid", "managedFields"}) {
      keep_member(isolated["metadata"], object["metadata"], member);
    }
    object = std::move(isolated);
    return;
  }
  if (part == SubresourceId::kStatus || part == SubresourceId::kApproval) {
    Json isolated = old;
    keep_member(isolated, object, "status");
    isolated["metadata"] = object["metadata"];
    const Json& old_metadata = *old.find("metadata");
    keep_member(isolated["metadata"], old_metadata, "ownerReferences");
    if (resource.status_keeps_labels) keep_member(isolated["metadata"], old_metadata, "labels");
    object = std::move(isolated);
    return;
  }
  if (resource.status_subresource) keep_member(object, old, "status");
  if (!resource.is("", "Namespace")) return;
  if (part != SubresourceId::kFinalize) keep_member(object, old, "spec");
}

void join_owners(Json& object, std::vector<std::string>& warnings) {
  const Json* listed = std::as_const(object).at({"metadata", "ownerReferences"});
  if (listed == nullptr || listed->if_array() == nullptr || listed->if_array()->size() < 2) return;
  Json::Array different;
  std::string doubled;
  for (const Json& owner : *listed->if_array()) {
    if (std::ranges::find(different, owner) == different.end()) {
      different.push_back(owner);
    } else {
      doubled += doubled.empty() ? "" : ", ";
      doubled += owner.string_at({"uid"});
    }
  }
  if (doubled.empty()) return;
  object["metadata"]["ownerReferences"] = Json(std::move(different));
  warnings.push_back(".metadata.ownerReferences contains duplicate entries; duplicate UID(s) observed: " + doubled);
}

void reset_status(const Resource& resource, Json& object) {
  const Result<api::TypedDocument> blank = api::read_body(type_of(resource), Json::object());
  const Json* status = blank ? blank->object.find("status") : nullptr;
  if (status != nullptr) {
    object["status"] = *status;
  } else {
    object.erase({"status"});
  }
}

void count_generation(const Resource& resource, const Resource& stored, Json& object, const Json& old) {
  const bool changed =
      resource.custom != nullptr
          ? differs_beyond_metadata(resource, at_rest_of(stored, object), old)
          : std::ranges::any_of(kCountedMembers, [&](auto member) { return differs(object, old, {member}); }) ||
                (resource.counts_annotations && differs(object, old, {"metadata", "annotations"})) ||
                (resource.counts_labels && differs(object, old, {"metadata", "labels"}));
  const std::int64_t count = api::integer_at(old, {"metadata", "generation"}, 0);
  if (count != 0 || changed) {
    object["metadata"]["generation"] = count + (changed ? 1 : 0);
  } else {
    object["metadata"].erase({"generation"});  // pods of older servers have none until their spec changes
  }
}

bool completes_deletion(const Json& object, const Json& old) {
  if (old.string_at({"metadata", "deletionTimestamp"}).empty()) return false;
  if (has_elements(object.at({"metadata", "finalizers"})) || has_elements(object.at({"spec", "finalizers"}))) {
    return false;
  }
  if (!has_elements(old.at({"metadata", "finalizers"})) && !has_elements(old.at({"spec", "finalizers"}))) return false;
  const Json* grace = old.at({"metadata", "deletionGracePeriodSeconds"});
  return grace == nullptr || grace->if_int64().value_or(0) == 0;
}

}  // namespace spillway::apiserver
