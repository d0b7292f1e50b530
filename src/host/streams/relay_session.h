// A client connected to a server of container streams, such as a container runtime: the runtime has named the address
// at which it waits for one connection, and its data are passed on, translated if the client uses another protocol. The
// client's connection is upgraded once the server has agreed. Thread: loop. Bounds: for input the client's own
// connection, kWaitingMax for output, kHeadMax for the server's head; kAgreeMax until the server has agreed; idle
// idle_max(). Source: spec "Pod lifecycle", 11.2.
#pragma once

#include "api/exchange/upgrade.h"
#include "api/stream/stream_translation.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/streams/stream_session.h"
#include "runtime/loop.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// The address of a served stream: on this machine's loopback, in plain HTTP.
struct StreamAddress {
  bool six = false;  // ::1
  std::uint16_t port = 0;
  std::string path;  // path with query

  friend bool operator==(const StreamAddress&, const StreamAddress&) = default;
};

/// "http://127.0.0.1:35041/exec/8xS1oJfk". kInvalid: it is elsewhere, or no such address.
Result<StreamAddress> parse_stream_address(std::string_view url);

/// A client whose connection is not upgraded yet.
struct RelayedClient {
  std::shared_ptr<api::UpgradingSink> sink;
  api::Response head;               // head of the upgrade
  bool names_protocol = false;      // the head has to name the protocol that the server has chosen
  std::vector<std::string> offers;  // protocols of the streams, for the server
  std::unique_ptr<api::StreamTranslation> translation;
};

class RelaySession final : public StreamSession, public std::enable_shared_from_this<RelaySession> {
 public:
  static constexpr std::size_t kWaitingMax = std::size_t{256} * 1024;
  static constexpr std::size_t kHeadMax = std::size_t{16} * 1024;
  static constexpr Duration kAgreeMax = seconds(30);

  RelaySession(runtime::Loop& loop, RelayedClient client);
  ~RelaySession() override;
  RelaySession(const RelaySession&) = delete;
  RelaySession& operator=(const RelaySession&) = delete;

  /// A stream was requested from the runtime, which must agree in time.
  void open() override;
  /// Continues with the runtime's answer.
  void connect(const Result<std::string>& url);

  bool over() const override { return client_.sink == nullptr; }

  void cut() override;
  void on_input(std::string bytes) override;

  void on_input_end() override { cut(); }

 private:
  void on_ready();
  bool finish_connecting();
  void write_server();
  void read_server();
  void take_head();
  void take(std::string_view bytes);
  void begin();
  void send_to_client(std::string bytes);
  void refuse(int status, const std::string& why);
  void finish();
  void watch();
  void pace();
  void arm_idle_timer();
  void release();

  bool is_full() const { return client_.sink != nullptr && client_.sink->waiting_bytes() > kWaitingMax; }

  runtime::Loop& loop_;
  RelayedClient client_;  // the sink is null once the client's answer has ended
  StreamAddress address_;
  UniqueFd server_;
  bool connected_ = false;
  bool upgraded_ = false;
  bool begun_ = false;  // both handshakes are complete
  bool watched_ = false;
  std::string head_;       // beginning of the server's answer, until its head is complete
  std::string to_server_;  // waits
  std::size_t unused_ = 0;
  std::optional<runtime::Loop::TimerId> pace_timer_;
  std::optional<runtime::Loop::TimerId> begin_timer_;
  std::optional<runtime::Loop::TimerId> time_out_;
  Instant active_{};
};

}  // namespace spillway::host
