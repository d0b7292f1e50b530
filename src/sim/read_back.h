// A client that writes an object through one server of a store and reads it through another: it must find every
// acknowledged write. It runs for ever; an object with a write of unknown outcome is not used again. Thread: one. All
// randomness is drawn from the given stream. Source: Kubernetes, "Resource versions": a read without one is the most
// recent.
#pragma once

#include "base/alive.h"
#include "base/rng.h"
#include "client/engine.h"
#include "sim/invariants.h"
#include "sim/sim_network.h"
#include "sim/time/virtual_time.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::sim {

class ReadBack final : public client::Transport::Receiver {
 public:
  static constexpr Duration kEvery = milliseconds(400);
  static constexpr Duration kPatience = seconds(70);  // longer than the longest wait of a request in a server

  ReadBack(VirtualTime& time, Rng rng, SimNetwork& network, std::size_t servers, Invariants& invariants);
  ~ReadBack() override;
  ReadBack(const ReadBack&) = delete;
  ReadBack& operator=(const ReadBack&) = delete;

  void start() { ask(); }

  /// Number of answers that confirmed a write.
  std::uint64_t confirmed() const { return confirmed_; }

 private:
  void on_api_event(client::ApiEvent event) override;
  void ask();
  void give_up();
  void check_answer(int status);
  void later();
  std::string target() const;

  VirtualTime& time_;
  Rng rng_;
  Invariants& invariants_;
  std::vector<std::unique_ptr<client::Transport>> ways_;  // by server
  Alive alive_;
  client::CallId last_ = 0;
  std::optional<client::CallId> waits_;
  api::Method asked_ = api::Method::kGet;
  std::size_t server_ = 0;
  bool exists_ = false;  // state by the answers so far
  std::uint64_t names_ = 0;
  std::uint64_t confirmed_ = 0;
};

}  // namespace spillway::sim
