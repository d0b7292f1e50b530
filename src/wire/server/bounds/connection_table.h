// Places of a server's connections, and the choice of the connection to close when there is no place for another:
// shares for clients that have not authenticated, for ordinary and for vital ones, the oldest or longest idle first. No
// I/O. Thread: any.
#pragma once

#include "wire/http/client_rank.h"
#include "wire/http/http_limits.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace spillway::wire {

class ConnectionTable {
 public:
  using Id = std::uint64_t;

  /// `displaced`: the connection to close; its place is taken already.
  struct Decision {
    bool admitted = true;
    std::optional<Id> displaced;

    friend bool operator==(const Decision&, const Decision&) = default;
  };

  explicit ConnectionTable(const ConnectionBounds& bounds) : bounds_(bounds) {}

  ConnectionTable(const ConnectionTable&) = delete;
  ConnectionTable& operator=(const ConnectionTable&) = delete;

  /// A new connection from `address`, which may be any text that distinguishes sources.
  Decision admit(Id id, const std::string& address);
  /// The connection's client has authenticated with this rank. A rank is not lost by a request without credentials. Not
  /// admitted: its place is given up. Harmless for a connection that is not in the table.
  Decision prove(Id id, ClientRank rank);
  /// `idle`: the connection could be closed without loss, as no request or answer is under way on it.
  void set_idle(Id id, bool idle);
  /// Removes a connection; harmless if it was displaced.
  void remove(Id id);

  std::size_t size() const;

 private:
  using Order = std::set<std::pair<std::uint64_t, Id>>;  // by when

  struct Entry {
    ClientRank rank = ClientRank::kUnproven;
    std::string address;
    std::uint64_t since = 0;  // order of arrival while unproven
    std::optional<std::uint64_t> idle_since;
  };

  using Entries = std::map<Id, Entry>;

  Order& idle_of(ClientRank rank) { return rank == ClientRank::kVital ? idle_vital_ : idle_ordinary_; }

  void forget(Entries::iterator entry);
  std::optional<Id> displace(const Order& order);

  const ConnectionBounds bounds_;
  mutable std::mutex mutex_;
  // All guarded by mutex.
  std::uint64_t tick_ = 0;
  Entries entries_;
  Order unproven_;
  std::map<std::string, Order> unproven_by_address_;
  std::size_t ordinary_ = 0;
  Order idle_ordinary_;
  Order idle_vital_;
};

}  // namespace spillway::wire
