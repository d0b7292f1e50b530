#include "apiserver/flow/flow_limits.h"

#include "policy/flow/documents.h"

#include <fmt/format.h>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kFlowGroup = "flowcontrol.apiserver.k8s.io";

}  // namespace

StatusResult<void> FlowLimits::check_words(const Resource& resource, const Json& object) const {
  const flow::Schema schema = flow::schema_of(object);
  if (feed_.words_but(schema.name) + flow::words_of(schema) <= flow::kWordsMax) return {};
  return api::forbidden_status(resource.group_resource(), schema.name,
                               fmt::format("the rules of all FlowSchemas have at most {} words", flow::kWordsMax));
}

StatusResult<void> FlowLimits::check_create(const api::UserInfo& /*user*/, const Resource& resource,
                                            const Json& object) const {
  const std::string_view name = object.string_at({"metadata", "name"});
  if (resource.group != kFlowGroup || flow::is_built_in(name)) return {};
  const bool is_schema = resource.is(kFlowGroup, flow::kSchemaKind);
  const std::size_t most = is_schema ? flow::kSchemasMax : flow::kLevelsMax;
  if ((is_schema ? feed_.schemas() : feed_.levels()) >= most) {
    return api::forbidden_status(resource.group_resource(), name,
                                 fmt::format("this server holds at most {} {}", most, resource.plural));
  }
  return is_schema ? check_words(resource, object) : StatusResult<void>();
}

StatusResult<void> FlowLimits::check_update(const api::UserInfo& /*user*/, const Resource& resource, SubresourceId part,
                                            const Json& object, const Json& old) const {
  if (part != SubresourceId::kNone || !resource.is(kFlowGroup, flow::kSchemaKind)) return {};
  if (flow::words_of(flow::schema_of(object)) <= flow::words_of(flow::schema_of(old))) return {};
  return check_words(resource, object);
}

}  // namespace spillway::apiserver
