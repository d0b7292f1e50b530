// Annotations by which a Node or a Pod says how its hollow machine behaves (docs/hollow.md). A value that cannot be
// read has no effect and is a problem of its own; the others hold. Thread: any (pure).
#pragma once

#include "api/object/meta.h"
#include "base/bytes.h"
#include "base/time.h"
#include "sim/sim_host.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

inline constexpr std::string_view kHollowPrefix = "spillway.io/hollow-";

enum class HollowState : std::uint8_t {
  kUp,
  kSilent,   // the agent and its pods run, but no message passes in either direction
  kCrashed,  // the machine is down
};

/// The wishes of a Node's annotations.
struct HollowNodeWishes {
  HollowState state = HollowState::kUp;  // hollow-state: silent, crashed
  Duration disk_delay{};                 // hollow-disk-delay: 2s
  Duration link_delay{};                 // hollow-link-delay: 300ms
  Bytes images;                          // hollow-images: 40Gi, which no container uses

  friend bool operator==(const HollowNodeWishes&, const HollowNodeWishes&) = default;
};

/// The wishes of a Pod's annotations. Rates are per second; zero: at once.
struct HollowPodWishes {
  std::optional<Bytes> memory;            // hollow-memory: of all containers together
  Bytes memory_rate;                      // hollow-memory-rate
  std::optional<Bytes> disk;              // hollow-disk
  Bytes disk_rate;                        // hollow-disk-rate
  std::optional<std::int64_t> processes;  // hollow-processes
  std::optional<Duration> runs_for;       // hollow-runs-for: of each container, from its start
  std::int32_t exit_code = 0;             // hollow-exit-code
  std::optional<SimHost::Ending> ending;  // hollow-ending: prompt, at-grace, never

  friend bool operator==(const HollowPodWishes&, const HollowPodWishes&) = default;
};

template <typename Wishes>
struct ReadAnnotations {
  Wishes wishes;
  std::vector<std::string> problems;  // "spillway.io/hollow-memory: expected …", in the order of the names
};

ReadAnnotations<HollowNodeWishes> read_node_annotations(const api::StringMap& annotations);
ReadAnnotations<HollowPodWishes> read_pod_annotations(const api::StringMap& annotations);

}  // namespace spillway::sim
