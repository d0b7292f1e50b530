#include "policy/eviction/containerfs.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::eviction {
namespace {

enum class Kind { kHard, kSoft };

/// The last one in the list counts, as several soft thresholds with a zero grace may count as hard.
std::optional<std::size_t> find_last(const std::vector<std::optional<Threshold>>& list, Signal signal, Kind kind) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] && list[i]->signal == signal && list[i]->is_hard() == (kind == Kind::kHard)) found = i;
  }
  return found;
}

}  // namespace

DerivedThresholds derive_containerfs(std::vector<Threshold> configured, StorageLayout layout) {
  DerivedThresholds derived;
  std::vector<std::optional<Threshold>> list(std::make_move_iterator(configured.begin()),
                                             std::make_move_iterator(configured.end()));
  const bool from_image_fs = layout.dedicated_image_fs && !layout.split_container_fs;
  const bool real = layout.dedicated_image_fs || !layout.split_container_fs;
  const std::pair<Signal, Signal> pairs[] = {
      {Signal::kContainerFsAvailable, from_image_fs ? Signal::kImageFsAvailable : Signal::kNodeFsAvailable},
      {Signal::kContainerFsInodesFree, from_image_fs ? Signal::kImageFsInodesFree : Signal::kNodeFsInodesFree}};
  // position behind the last replaced threshold; only the last one in the list is reported
  std::size_t last_replaced = 0;
  for (const Kind kind : {Kind::kHard, Kind::kSoft}) {
    for (const auto& [target, source] : pairs) {
      const std::optional<std::size_t> existing = find_last(list, target, kind);
      if (existing && *existing + 1 > last_replaced) {
        last_replaced = *existing + 1;
        derived.warning =
            fmt::format("found {} for {} eviction. ignoring", to_string(target), kind == Kind::kHard ? "hard" : "soft");
      }
      if (!real) continue;
      std::optional<Threshold> copy;
      if (const auto from = find_last(list, source, kind)) {
        copy = list[*from];
        copy->signal = target;
      }
      if (existing) {
        list[*existing] = std::move(copy);
      } else if (copy) {
        list.push_back(std::move(copy));
      }
    }
  }
  for (std::optional<Threshold>& each : list) {
    if (each) derived.thresholds.push_back(std::move(*each));
  }
  return derived;
}

}  // namespace spillway::eviction
