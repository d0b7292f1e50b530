// Counts the bytes of answers and streams that wait for their clients, in all and of each client, and reports when
// there are too many. Bytes that several connections share are counted once. Thread: any.
#pragma once

#include "telemetry/metrics.h"
#include "wire/http/client_rank.h"
#include "wire/http/http_limits.h"

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace spillway::wire {

class ByteLedger : public std::enable_shared_from_this<ByteLedger> {
 private:
  /// The charges for bytes at one place, and their number.
  struct Account {
    std::unordered_map<const std::string*, std::size_t> holders;
    std::size_t bytes = 0;

    bool holds(const std::string* data) const { return holders.contains(data); }

    void add(const std::string* data, std::size_t size);
    void remove(const std::string* data, std::size_t size);
  };

 public:
  /// Counts bytes for as long as it lives, and owns them.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&&) = default;

    Charge& operator=(Charge&& other) noexcept {
      std::swap(ledger_, other.ledger_);
      std::swap(data_, other.data_);
      std::swap(client_, other.client_);
      return *this;
    }

    ~Charge() {
      if (ledger_) ledger_->release(client_, *data_);
    }

   private:
    friend class ByteLedger;
    std::shared_ptr<ByteLedger> ledger_;
    std::shared_ptr<const std::string> data_;
    std::map<std::string, Account>::iterator client_;
  };

  /// `gauge` shows total_bytes().
  explicit ByteLedger(const WaitingBounds& bounds, telemetry::Gauge gauge = {}) : bounds_(bounds), gauge_(gauge) {}

  ByteLedger(const ByteLedger&) = delete;
  ByteLedger& operator=(const ByteLedger&) = delete;

  /// `waiting`: what waits for this connection already. nullopt: there are too many bytes.
  std::optional<Charge> charge(const std::string& client, ClientRank rank, std::shared_ptr<const std::string> data,
                               std::size_t waiting);
  /// Charges bytes that cannot be refused, because the event in them has happened.
  Charge charge_anyway(const std::string& client, std::shared_ptr<const std::string> data);

  /// True if there is room for another large answer to this client.
  bool has_room(const std::string& client, ClientRank rank) const;

  /// True if more than half of the allowed bytes are waiting.
  bool pressed() const { return total_ > bounds_.total_bytes_max / 2; }

  std::size_t total_bytes() const { return total_; }

 private:
  bool fits(const Account* client, ClientRank rank, std::size_t size) const;
  Charge enter(const std::string& client, std::shared_ptr<const std::string> data);
  void release(std::map<std::string, Account>::iterator client, const std::string& data);
  void publish();

  const WaitingBounds bounds_;
  telemetry::Gauge gauge_;
  mutable std::mutex mutex_;
  Account all_;                               // guarded by mutex
  std::map<std::string, Account> by_client_;  // guarded by mutex; those with charges only
  std::atomic<std::size_t> total_ = 0;        // all_.bytes
};

}  // namespace spillway::wire
