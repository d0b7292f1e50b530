// The credential plug-ins that the flags of a node name: --image-credential-provider-config and -bin-dir.
// Thread: main. Source: Kubernetes docs, "Configure a kubelet image credential provider".
#pragma once

#include "agent/cri/credential_plugin.h"
#include "base/error.h"
#include "cli/flags/command_line.h"

#include <vector>

namespace spillway::apps {

/// Empty: no flag names any. kInvalid: one flag without the other, a file with mistakes (the first is named), or a
/// program that the directory does not have. kNotFound: the file cannot be read.
Result<std::vector<agent::CredentialProvider>> read_credential_providers(const cli::NodeArgs& args);

}  // namespace spillway::apps
