// The file of --flow-config: flow schemas and priority levels that replace built-in ones of the same name, or are added
// to them. One FlowSchema or PriorityLevelConfiguration of flowcontrol.apiserver.k8s.io/v1, or a List of them as
// `kubectl get -o yaml` prints it. Strict: an unknown member is an error with its line.
// Thread: any. Bounds: kFlowSchemasMax, kFlowLevelsMax. Source: Kubernetes docs, "API Priority and Fairness".
#pragma once

#include "base/error.h"
#include "policy/flow/schema.h"
#include "yaml/yaml_document.h"

#include <cstddef>
#include <functional>
#include <string>

namespace spillway::cli {

inline constexpr std::size_t kFlowSchemasMax = flow::kSchemasMax;
inline constexpr std::size_t kFlowLevelsMax = flow::kLevelsMax;

/// The built-in configuration, changed by the file, which is read with `read`. kInvalid: the mistake and its place; the
/// objects "exempt" and "catch-all" keep their values.
Result<flow::Configuration> read_flow_config(const std::string& file,
                                             const std::function<Result<yaml::Document>(const std::string&)>& read);

}  // namespace spillway::cli
