// The runtime that runs the pods of `spillway up`: processes of the machine, a containerd of its own, or a runtime that
// runs already. Thread: any (pure). Source: docs/runtimes.md.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::checkup {

/// The label and the taint of nodes whose pods are processes, and the name of their runtime's handler.
inline constexpr std::string_view kRuntimeLabel = "spillway.io/runtime";
inline constexpr std::string_view kProcessRuntime = "process";

/// A flag's wish. kSocket: a runtime that runs already.
enum class RuntimeWish { kAuto, kContainerd, kProcess, kSocket };

struct RuntimeFacts {
  RuntimeWish wish = RuntimeWish::kAuto;
  std::string wished_socket;  // the path, for kSocket
  std::string configured;     // containerRuntimeEndpoint of the node's configuration; empty: none
  bool is_root = false;
  std::string containerd;         // the program; empty: not found
  std::string shim;               // containerd-shim-runc-v2; empty: not found
  std::string low_level;          // runc; empty: not found
  std::string plugins_directory;  // has the CNI plug-ins; empty: none has them
  std::string running_socket;     // belongs to a runtime that runs already at its usual place; empty: none does

  friend bool operator==(const RuntimeFacts&, const RuntimeFacts&) = default;
};

enum class RuntimeKind { kProcess, kOwnContainerd, kSocket };

enum class RuntimeReason {
  kWished,       // set by a flag
  kConfigured,   // the node's configuration names a socket
  kInstalled,    // all parts of the runtime are installed
  kNotRoot,      // containers need root
  kNotInstalled  // `missing` is not installed
};

struct RuntimeChoice {
  RuntimeKind kind = RuntimeKind::kProcess;
  RuntimeReason reason = RuntimeReason::kWished;
  std::string socket;                // kSocket: unix:///PATH, or the configured one
  std::vector<std::string> missing;  // Debian packages without which not every pod with an image can run, sorted
  std::string running_socket;        // belongs to a runtime that runs already and is not used; empty: none

  friend bool operator==(const RuntimeChoice&, const RuntimeChoice&) = default;
};

/// Debian packages without which no pod, or no pod with a network of its own, can be a container, sorted.
std::vector<std::string> missing_packages(const RuntimeFacts& facts);

/// kInvalid: the wish is impossible, or contradicts the configuration; the message names the remedy.
Result<RuntimeChoice> choose_runtime(const RuntimeFacts& facts);

/// One sentence for the operator: what to do so that pods run images. Empty: nothing has to be done.
std::string advice_of(const RuntimeChoice& choice);

/// The choice and its reason in one sentence, for a log.
std::string sentence_of(const RuntimeChoice& choice);

}  // namespace spillway::checkup
