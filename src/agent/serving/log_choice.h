// Chooses the instance of a container for `kubectl logs`, or the error if there is none. Thread: any (pure). Source:
// Kubernetes 1.32's answers (vectors pod-lifecycle/log_selection).
#pragma once

#include "api/object/pod.h"
#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::agent {

enum class LogInstance { kCurrent, kPrevious };

/// The id of the container, without its scheme. kBadRequest, in upstream's words: it has not started, it has not run
/// before, or the pod has no such container.
Result<std::string> choose_log(const api::Pod& pod, std::string_view container, LogInstance wanted);

/// The attempt that an id of this agent names ("UID/CONTAINER/3"); nullopt for any other text.
std::optional<std::int32_t> attempt_of(std::string_view id);

}  // namespace spillway::agent
