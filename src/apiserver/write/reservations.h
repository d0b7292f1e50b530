// Reserves values that must be unique within a kind (KindHooks::reserves): addresses and ports of services. A write
// holds it in this process from the moment it is chosen. Where other servers write to the same store, it is taken there
// as well before the object is written, by one key for each name that only one of them can create:
//
// PREFIX services/ip/10.96.0.7 = {"object": "default/web", "uid": "…", "state": "pending" | "held"}
//
// "pending": its object is being written. "held": its object has been written; from then on the object itself shows
// whether it still has the name, and a server that finds that it does not may take the key over. Each step is a
// compare-and-swap. ReservationKeeper cleans up after servers that end in the middle. Thread: loop. Bounds: as many
// requests to the store as a write has names, each at most twice. Source: spec "etcd as the store", 12; Kubernetes
// docs, "Service ClusterIP allocation".
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/read/core.h"
#include "store/store.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// The value of one key.
struct Reservation {
  enum class State { kPending, kHeld };

  std::string object;  // its key within its resource: "default/web"
  std::string uid;
  State state = State::kPending;

  std::string text() const;
  /// nullopt: no such thing.
  static std::optional<Reservation> read(std::string_view text);
};

inline constexpr std::string_view kReservationPrefix = "/registry/spillway.dev/reserved/";

/// "services/ip/10.96.0.7": what the object has, beyond what `old` has (null: nothing). Empty: a kind that shares all.
std::vector<std::string> reserved_names(const Resource& resource, const api::Json& object, const api::Json* old);
/// The object that holds the reservation is there and has the name, as far as has been delivered here.
bool has_reserved(const Core& core, std::string_view name, const Reservation& reservation);

class Reservations {
 public:
  class Hold;
  using HoldPtr = std::shared_ptr<Hold>;

  explicit Reservations(Core& core) : core_(core) {}

  /// Holds names that were found free in this turn of the loop; they are released with the last pointer. Null: none.
  HoldPtr hold(const Resource& resource, const api::Json& object, const api::Json* old);

  /// No other server has them, and none can take them. False: one has; choose again. An error of the store: unknown.
  void secure(const HoldPtr& hold, std::move_only_function<void(api::StatusResult<bool>)> done);
  bool is_secured(const HoldPtr& hold) const;

  /// The object gets another name: its names have to be secured again.
  static void rename(const HoldPtr& hold, std::string object);

  /// The object has been written. Not called if that is uncertain: ReservationKeeper cleans up then.
  void settle(const HoldPtr& hold);
  /// The object has not been written.
  void give_back(const HoldPtr& hold);

 private:
  struct Attempt;
  using AttemptPtr = std::shared_ptr<Attempt>;

  void take(const AttemptPtr& attempt, std::size_t index, store::Revision expected, bool again);
  void look_at(const AttemptPtr& attempt, std::size_t index, store::Entry found);
  void finish(const AttemptPtr& attempt);

  Core& core_;
};

}  // namespace spillway::apiserver
