// The properties of the product that hold in every run of the simulator, whatever breaks: each promise has a name,
// which every violation of it carries. Thread: any (values). Source: spec "Eviction end to end", promises with their
// checkers; docs/properties.md is this table for people.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
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
  kReachesRest,
};

struct PropertyInfo {
  Property property{};
  std::string_view name;     // "taint-rate"
  std::string_view subject;  // the kind of object, unless a violation names another: "Node"
  std::string_view promise;  // the promise in one sentence
  std::string_view source;   // the document with the promise
};

/// The properties, in the order of the enumeration.
std::span<const PropertyInfo> all_properties();

std::string_view name_of(Property property);

/// A violated property, and the kind of object that violates it: "Node", or a place in the store ("/registry/pods/").
/// Two violations of different kinds are two failures.
struct Violated {
  Property property{};
  std::string subject;

  friend auto operator<=>(const Violated&, const Violated&) = default;
};

/// A violation for the kind that the property is about.
Violated violated(Property property);

/// "/registry/pods/" of "/registry/pods/default/web-1"; the whole key if it has no such part.
std::string collection_of(std::string_view key);

}  // namespace spillway::sim
