// Maps user and group ids of pods to ids of this machine: each pod has a range of its own, so that root of one pod has
// no rights here nor in another pod. Thread: loop (plain values). Source: systemd, "Users, Groups, UIDs and GIDs on
// systemd Systems", container UID ranges; spec "Pod lifecycle", 6.12.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

namespace spillway::host {

class IdRanges {
 public:
  /// Reserves 65,536 unused ids and returns the first. The choice follows from the pod's uid, so that two agents of one
  /// machine rarely collide. At most kCount ranges at a time.
  std::uint32_t take(std::string_view pod_uid);

  /// Marks the range of a pod of an earlier process as taken.
  void keep(std::uint32_t first) { taken_.insert((first - kFirst) / kSize); }

  void release(std::uint32_t first);

  static constexpr std::uint32_t kFirst = 0x0008'0000;  // first id that the convention reserves for containers
  static constexpr std::uint32_t kLast = 0x6FFF'FFFF;
  static constexpr std::uint32_t kSize = 65'536;
  static constexpr std::uint32_t kCount = (kLast - kFirst + 1) / kSize;

 private:
  std::set<std::uint32_t> taken_;  // numbers of the ranges in use
};

}  // namespace spillway::host
