// A node's KubeletConfiguration: file, drop-in directory and flags, read, checked and merged.
// Thread: main. Source: Kubernetes docs, "Set Kubelet Parameters Via A Configuration File".
#pragma once

#include "agent/config/kubelet_config.h"
#include "api/json/json.h"
#include "base/error.h"
#include "cli/flags/command_line.h"

#include <string>
#include <vector>

namespace spillway::apps {

struct NodeConfig {
  api::Json value;  // merged and checked, without defaults
  std::vector<agent::ConfigFinding> findings;

  bool usable() const;
};

/// Reads one file; "-": standard input, to its end. kNotFound: it cannot be read; kInvalid: it is not a YAML document.
Result<agent::ConfigDocument> read_config_document(const std::string& file);
/// All documents of a file that may be a KubeletConfiguration: of several those of another kind are left out, as in a
/// file for kubeadm. At least one. Errors as read_config_document.
Result<std::vector<agent::ConfigDocument>> read_config_documents(const std::string& file);

/// File, then the directory's *.conf in the order of their names, then flags. Errors as read_config_document; what is
/// wrong with the content is in the findings.
Result<NodeConfig> read_node_config(const cli::NodeConfigArgs& args);

/// Prints everything that is wrong or without effect in the configuration and the labels, one line each; false if they
/// cannot be used.
bool check_node_config(const cli::NodeArgs& args);

/// As above, and checks nodes of these names before any of them is made: that the names, the memory, the addresses and
/// the runtime's socket are possible, and that no more is reserved than exists.
bool check_nodes(const cli::NodeArgs& args, const std::vector<std::string>& names,
                 const std::vector<std::string>& ips = {});

/// Prints the configuration in effect on a node with so much memory (absent: upstream's defaults) as YAML.
int print_node_config(const cli::NodeArgs& args);

/// The devices that the text of /proc/swaps lists, as the kernel names them, with ", " between; empty: none.
std::string swaps_in(std::string_view proc_swaps);

/// `effective`: checked, with defaults. kForbidden: the machine is not as a member demands; the message names the
/// member, what was found, and what to do. failSwapOn counts only where it is written: a kubelet has it on by default.
Outcome check_machine(const api::Json& effective, int cgroup_version);

}  // namespace spillway::apps
