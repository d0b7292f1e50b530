// A client that talks with ports of a pod: for each connection of its pair of streams one to the port.
// Thread: loop. Bounds: connections of a node kForwardsMax, of a client api::PortStreams::kPairsMax; of input what the
// client's connection may hold, for all its pairs together: a port that takes nothing holds up the others when that is
// used up; kWaitingMax of output; idle idle_max(). Source: spec "Pod lifecycle", 11.6.
#pragma once

#include "api/exchange/upgrade.h"
#include "api/stream/port_streams.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/streams/stream_session.h"
#include "runtime/loop.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

class PortSession final : public StreamSession, public std::enable_shared_from_this<PortSession> {
 public:
  static constexpr std::size_t kForwardsMax = 1024;
  static constexpr std::size_t kWaitingMax = std::size_t{256} * 1024;

  using Answer = std::move_only_function<void(Result<UniqueFd>)>;
  /// Connects to a port of the pod; answers later.
  using Dial = std::function<void(std::uint16_t port, Answer answer)>;

  /// `pod`: its name for messages. `forwards`: counter of the node's connections.
  PortSession(runtime::Loop& loop, std::shared_ptr<api::UpgradingSink> sink, api::PortStreams::Carrier carrier,
              std::string pod, Dial dial, std::shared_ptr<std::size_t> forwards);
  ~PortSession() override;
  PortSession(const PortSession&) = delete;
  PortSession& operator=(const PortSession&) = delete;

  void open() override;

  bool over() const override { return sink_ == nullptr; }

  void cut() override;
  void on_input(std::string bytes) override;

  void on_input_end() override { cut(); }

 private:
  using Pair = api::SpdyStreamId;

  struct Forward {
    UniqueFd socket;  // empty: not connected yet
    std::uint16_t port = 0;
    bool connected = false;
    bool watched = false;
    bool client_ended = false;
    bool port_ended = false;
    std::string to_port;
  };

  void take(api::PortEvent event);
  void begin(Pair pair, std::uint16_t port);
  void on_socket(Pair pair, Result<UniqueFd> socket);
  void on_ready(Pair pair);
  /// False: the forward is no more.
  bool finish_connecting(Pair pair, Forward& forward);
  bool write_port(Pair pair, Forward& forward);
  bool read_port(Pair pair, Forward& forward);
  void watch(Pair pair, Forward& forward);
  void unwatch(Forward& forward);
  void pace();
  void close(Pair pair, std::string_view why);
  void fail(Pair pair, std::uint16_t port, std::string_view why);
  void send(std::string bytes);
  void report_used();
  void arm_idle_timer();

  bool is_full() const { return sink_ != nullptr && sink_->waiting_bytes() > kWaitingMax; }

  runtime::Loop& loop_;
  std::shared_ptr<api::UpgradingSink> sink_;  // null: the client has disconnected
  api::PortStreams streams_;
  std::string pod_;
  Dial dial_;
  std::shared_ptr<std::size_t> open_;
  std::map<Pair, Forward> forwards_;
  std::size_t unused_ = 0;  // bytes of the connection not yet acknowledged as used
  std::optional<runtime::Loop::TimerId> pace_timer_;
  std::optional<runtime::Loop::TimerId> idle_timer_;
  Instant active_{};
};

}  // namespace spillway::host
