// What holds of the product in every run of the simulator, whatever breaks: each promise has a name, which every
// violation of it carries. Thread: any (values). Source: spec "Eviction end to end", promises with their checkers;
// docs/properties.md is this table for people.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace spillway::sim {

enum class Property : std::uint8_t {
  kTaintRate,
  kActLimits,
  kProtectedPods,
  kJournalFirst,
  kEvictionsResume,
  kAcknowledgedWrites,
  kWatchesWhole,
  kBudgetsKept,
  kRolloutAvailability,
  kOneMachine,
  kPodsEndOnce,
  kNewerStatus,
  kNoSurplus,
  kTaintsGo,
  kOneActingServer,
  kNoSharedAddress,
  kNamespacesEmpty,
  kComesToRest,
};

struct PropertyInfo {
  Property property{};
  std::string_view name;     // "taint-rate"
  std::string_view promise;  // one sentence
  std::string_view source;   // where it is promised
};

/// All of them, in the order of the enumeration.
std::span<const PropertyInfo> all_properties();

std::string_view name_of(Property property);

}  // namespace spillway::sim
