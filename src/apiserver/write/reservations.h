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

/// The value stored under one key.
struct Reservation {
  enum class State { kPending, kHeld };

  std::string object;  // key of the object within its resource: "default/web"
  std::string uid;
  State state = State::kPending;

  std::string text() const;
  /// nullopt: not a reservation.
  static std::optional<Reservation> read(std::string_view text);
};

inline constexpr std::string_view kReservationPrefix = "/registry/spillway.dev/reserved/";

/// "services/ip/10.96.0.7": what the object has, beyond what `old` has (null: nothing). Empty: a kind that shares all.
std::vector<std::string> reserved_names(const Resource& resource, const api::Json& object, const api::Json* old);
/// True if the object with the reservation exists and has the name, as far as this server has received.
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

  /// The object gets another name: its reservations must be secured again.
  static void rename(const HoldPtr& hold, std::string object);

  /// The object has been written. Not called if that is uncertain: ReservationKeeper cleans up then.
  void mark_held(const HoldPtr& hold);
  /// The object has not been written.
  void give_back(const HoldPtr& hold);

 private:
  struct Attempt;
  using AttemptPtr = std::shared_ptr<Attempt>;

  void take(const AttemptPtr& attempt, std::size_t index, store::Revision expected, bool again);
  void on_written(const AttemptPtr& attempt, std::size_t index, bool again, const Result<store::WriteResult>& result);
  void check_owner(const AttemptPtr& attempt, std::size_t index, const store::Entry& found);
  void yield(const AttemptPtr& attempt, std::size_t index, const Result<store::Revision>& reached);
  void finish(const AttemptPtr& attempt);

  Core& core_;
};

}  // namespace spillway::apiserver
