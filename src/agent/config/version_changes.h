// Changes of Kubernetes 1.33 to 1.36 that concern the configuration of a kubelet: members, feature gates and flags that
// are removed, whose value is refused, or whose default or meaning changes. `lint --for kubelet --version` reports
// those that concern a file. Thread: any (pure, constant data). Source: Kubernetes changelogs 1.33 to 1.36; Kubernetes
// docs, "Kubelet Configuration (v1beta1)", "Feature Gates". The ids are those of docs/compat/upstream-1.36.md.
#pragma once

#include "agent/config/config_lint.h"
#include "agent/config/kubelet_config.h"
#include "api/json/json.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// Two versions 1.`from` and 1.`to`; `from` is the older one.
struct MinorRange {
  int from = 32;
  int to = 36;
};

enum class ChangeSubject : std::uint8_t { kMember, kGate, kFlag };

/// True if the change concerns a configuration. `given`: the value of the row's member or gate; nullptr: not named.
using ChangeConcerns = bool (*)(const api::Json* given, const api::Json& config);

/// One row: a change, and the configurations that it concerns.
struct ConfigChange {
  ChangeSubject subject = ChangeSubject::kMember;
  std::string_view name;  // "crashLoopBackOff[maxContainerRestartPeriod]", "KubeletPSI", "--cloud-config"
  int since = 33;         // the minor version that has the change
  int until = 33;         // above `since`: the change came with one of the versions from `since` to `until`
  /// kInvalid: the newer kubelet refuses to start.
  LintSeverity severity = LintSeverity::kWarning;
  ChangeConcerns concerns = nullptr;
  std::string_view what;
  std::string_view remedy;
  std::string_view source;  // an id of the page, or a section of it
  /// JSON text of the value that the older kubelet has when the file names none; empty: no default changes. The answer
  /// of /configz names every default.
  std::string_view old_default = {};
};

/// All rows, those of members first, then gates, then flags.
std::span<const ConfigChange> config_changes();

/// Flags of a kubelet, from a file such as kubeadm-flags.env or a unit: each word that begins with "--".
struct KubeletFlags {
  struct Flag {
    std::string name;   // "--cloud-config"
    std::string value;  // behind "=", or the next word; empty: none
    int line = 0;       // from 1
  };

  std::string file;
  std::vector<Flag> flags;
};

/// Quotes, backslashes at line ends and comments (lines that begin with '#') are left out.
KubeletFlags parse_kubelet_flags(std::string file, std::string_view text);

/// A row that concerns the file.
struct ChangeFinding {
  LintSeverity severity = LintSeverity::kWarning;
  ChangeSubject subject = ChangeSubject::kMember;
  std::string file;
  int line = 0;       // 0: the file does not name it
  std::string path;   // "featureGates[KubeletPSI]"
  std::string since;  // "1.34"; "1.33 to 1.36": one of these
  std::string what;
  std::string remedy;
  std::string source;
};

/// Worst first, then by version, line and path.
std::vector<ChangeFinding> changes_of_config(const ConfigDocument& document, MinorRange range);
/// The same for flags, and for the gates that --feature-gates names.
std::vector<ChangeFinding> changes_of_flags(const KubeletFlags& flags, MinorRange range);

std::string_view to_string(ChangeSubject subject);

}  // namespace spillway::agent
