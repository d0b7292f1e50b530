// Bounds the syncs of one step of a controller. Each sync of a workload compares its selector with every object of its
// namespace that has no controller: a client that makes many of both makes a product. The syncs beyond the bound follow
// in the next turn of the loop, and other work in between.
// Thread: loop. Bound: kObjectsMax, and one sync beyond it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace spillway::controllers {

class SyncSlice {
 public:
  /// Comparisons with selectors in one step: some 4 ms with selectors of a few terms. With fewer, a large cluster
  /// without any such objects would sync its workloads in more turns than it needs.
  static constexpr std::size_t kObjectsMax = 20'000;

  bool has_room() const { return compared_ < kObjectsMax; }

  /// Counts a sync that compares that many objects.
  void add(std::size_t objects) { compared_ += objects + 1; }

 private:
  std::size_t compared_ = 0;
};

/// The namespace of a key "NAMESPACE/NAME".
inline std::string namespace_of(std::string_view key) {
  return std::string(key.substr(0, key.find('/')));
}

}  // namespace spillway::controllers
