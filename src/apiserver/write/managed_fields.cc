#include "apiserver/write/managed_fields.h"

#include "api/text/time_text.h"
#include "apiserver/request/body.h"
#include "apiserver/resource/object_change.h"

#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

}  // namespace

api::FieldWriter field_writer(const Resource& resource, SubresourceId part, std::string manager, WallTime now,
                              bool creates) {
  static constexpr std::string_view kStatusMember[] = {"status"};
  static constexpr std::string_view kSpecMember[] = {"spec"};
  api::FieldWriter writer{std::move(manager), {}, now, {}};
  switch (part) {
    case SubresourceId::kStatus:
      writer.subresource = "status";
      writer.untracked = kSpecMember;
      return writer;
    case SubresourceId::kApproval:
      writer.subresource = "approval";
      writer.untracked = kSpecMember;
      return writer;
    case SubresourceId::kScale:
      writer.subresource = "scale";
      break;
    case SubresourceId::kEphemeralContainers:
      writer.subresource = "ephemeralcontainers";
      break;
    case SubresourceId::kResize:
      writer.subresource = "resize";
      break;
    case SubresourceId::kNone:
    case SubresourceId::kBinding:
    case SubresourceId::kEviction:
    case SubresourceId::kLog:
    case SubresourceId::kExec:
    case SubresourceId::kFinalize:
    case SubresourceId::kToken:
    case SubresourceId::kProxy:
      break;
  }
  if (resource.status_subresource && !(creates && resource.keeps_status_on_create)) writer.untracked = kStatusMember;
  return writer;
}

Json with_managers(const Resource& resource, SubresourceId part, const WriteContext& context, WallTime now,
                   const Json* old, Json object) {
  if (!resource.tracks_managers || context.manager.empty()) return object;
  const api::FieldWriter writer = field_writer(resource, part, context.manager, now, old == nullptr);
  if (old != nullptr && is_repeated_update(object, *old, writer.manager, writer.subresource)) {
    Json managers = *old->at({"metadata", "managedFields"});
    managers.if_array()->front()["time"] = api::format_time(now);
    object["metadata"]["managedFields"] = std::move(managers);
    return object;
  }
  return api::track_update(field_type_of(resource), old, std::move(object), writer);
}

}  // namespace spillway::apiserver
