// FlowSchemas and PriorityLevelConfigurations (flowcontrol.apiserver.k8s.io/v1) as objects, and the configuration that
// all objects of a cluster make. Thread: any (pure). Source: Kubernetes API reference, FlowSchema and
// PriorityLevelConfiguration; docs/adr/0079.
#pragma once

#include "api/json/json.h"
#include "policy/flow/schema.h"

#include <string_view>
#include <vector>

namespace spillway::flow {

inline constexpr std::string_view kFlowApi = "flowcontrol.apiserver.k8s.io/v1";
inline constexpr std::string_view kSchemaKind = "FlowSchema";
inline constexpr std::string_view kLevelKind = "PriorityLevelConfiguration";

/// The schema, or level, that an object describes. The object has passed the rules of its kind; members that it lacks
/// have their defaults.
Schema schema_of(const api::Json& object);
Level level_of(const api::Json& object);

/// The document of an object, with name and spec only.
api::Json document_of(const Schema& schema);
api::Json document_of(const Level& level);

/// True for a name of the table that is built in, of a schema or of a level.
bool is_built_in(std::string_view name);

/// Makes a configuration of all schemas and levels of a cluster, in any order. "exempt" and "catch-all" are always
/// there and have their fixed values. Heartbeats of nodes always have their schema, and node-high at least its floor of
/// the seats, with queues. Left out: a schema of a level that does not exist, and what exceeds the bounds (schema.h);
/// those that are built in come first.
Configuration assemble(std::vector<Schema> schemas, std::vector<Level> levels);

}  // namespace spillway::flow
