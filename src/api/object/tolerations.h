// Default tolerations and their sources, and taints as operators write them.
// Thread: any. Source: Kubernetes docs, "Taints and Tolerations"; spec "Pod admission", 13; vectors
// admission/taints_tolerations.
#pragma once

#include "api/object/taint.h"
#include "base/error.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// Seconds that a pod stays on a node that is not ready or unreachable, unless it has such tolerations.
inline constexpr std::int64_t kDefaultTolerationSeconds = 300;

/// Appends the NoExecute tolerations for not-ready and unreachable, each unless some toleration has that key (or none)
/// and the effect NoExecute (or none). True if something was added. Source: admission plugin DefaultTolerationSeconds.
bool add_default_tolerations(std::vector<Toleration>& tolerations, std::int64_t seconds = kDefaultTolerationSeconds);

enum class HostNetwork { kNo, kYes };

/// Adds the tolerations of the DaemonSet controller: pods of daemons stay on nodes in trouble. A toleration with the
/// same key, effect, operator and value is replaced in its place.
void add_daemon_set_tolerations(std::vector<Toleration>& tolerations, HostNetwork host_network);

/// One toleration per taint, in the order of the taints; nullopt: some taint is not tolerated.
std::optional<std::vector<Toleration>> matching_tolerations(std::span<const Taint> taints,
                                                            std::span<const Toleration> tolerations);

/// Key and effect are equal: the same taint, whatever its value.
bool is_same_taint(const Taint& a, const Taint& b);

/// "key=value:Effect", "key:Effect", "key=value:" or "key".
std::string to_string(const Taint& taint);

struct TaintChange {
  enum class Kind { kAdd, kRemove };

  Kind kind = Kind::kAdd;
  Taint taint;  // for a removal: the key, and the effect unless all effects are meant

  friend bool operator==(const TaintChange&, const TaintChange&) = default;
};

/// "key=value:Effect", "key:Effect"; with a trailing "-" a removal. kInvalid, in upstream's words.
Result<TaintChange> parse_taint_change(std::string_view text);

}  // namespace spillway::api
