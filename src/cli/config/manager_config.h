// A KubeControllerManagerConfiguration file as flags: a file is converted to the flags of kube-controller-manager that
// it names, so that both are checked by the same parsers and a flag on the command line wins over the file. Member
// names are matched without regard to case, as upstream writes some in capitals. Members of other controllers are
// accepted and have no effect; brakes have a section "spillway". All mistakes are found, not the first alone. With
// several documents the flags of later ones follow, and win: mappings are merged member by member, lists are replaced.
// Thread: any (pure). Source: Kubernetes source, kubecontrollermanager.config.k8s.io/v1alpha1; docs,
// kube-controller-manager.
#pragma once

#include "api/json/json.h"
#include "cli/flags/command_line.h"
#include "yaml/yaml_document.h"

#include <string>
#include <vector>

namespace spillway::cli {

struct ManagerFlags {
  std::vector<std::string> flags;     // "--node-monitor-period=5s", in the order of the file
  std::vector<std::string> errors;    // "FILE:LINE: MEMBER: unknown (did you mean X?)"
  std::vector<std::string> warnings;  // members without effect: "FILE:LINE: MEMBER: has no effect here"
};

/// An empty document gives no flags, nor does a member without a value.
ManagerFlags manager_flags(const std::string& file, const yaml::Document& document);

/// The configuration in effect as a document.
api::Json manager_configuration(const ControllerCommand& command);

}  // namespace spillway::cli
