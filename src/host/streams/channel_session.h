// One client connected to a program: the client's data become the program's input, the program's output is sent to the
// client, at the pace of the slower side. The derived class starts and ends the program.
// Thread: loop. Bounds: for input the connection's own buffer (no more is read before the program has taken it),
// kWaitingMax for output; idle idle_max(). Input that arrives before the program is ready waits too. Source: spec "Pod
// lifecycle", 11.2, 11.4, 11.5.
#pragma once

#include "api/exchange/upgrade.h"
#include "api/stream/command_channels.h"
#include "api/stream/stream_options.h"
#include "base/error.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "host/streams/stream_session.h"
#include "runtime/loop.h"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

class ChannelSession : public StreamSession, public std::enable_shared_from_this<ChannelSession> {
 public:
  static constexpr std::size_t kWaitingMax = std::size_t{256} * 1024;
  static constexpr Duration kReadyMax = seconds(30);  // until the client has opened its channels

  ~ChannelSession() override;
  ChannelSession(const ChannelSession&) = delete;
  ChannelSession& operator=(const ChannelSession&) = delete;

  /// Greets the client and begins, once it is ready.
  void open() override;

  bool over() const override { return sink_ == nullptr && !holds_program(); }

  void cut() override;

  void on_input(std::string bytes) override;
  void on_input_end() override;

 protected:
  ChannelSession(runtime::Loop& loop, std::shared_ptr<api::UpgradingSink> sink,
                 std::unique_ptr<api::CommandChannels> channels, api::StreamOptions options);

  /// The client has all its channels: the other functions may be called from now on.
  virtual void on_ready() = 0;
  /// Sets the descriptor for input; not blocking. Empty: input is dropped. Until this is called input waits.
  void take_input(UniqueFd in);
  /// Sets the descriptor that output is read from; not blocking.
  void take_output(api::Channel channel, UniqueFd from);
  /// Sends output from another source.
  void say(api::Channel channel, std::string_view data);
  /// The program has ended: sends its last output, then its exit code.
  void finish(const Result<std::int32_t>& exit_code);

  bool is_open() const { return sink_ != nullptr; }

  /// True if the client is behind: send nothing more until it is not.
  bool is_full() const { return sink_ != nullptr && sink_->waiting_bytes() > kWaitingMax; }

  /// Bytes that the client has not taken.
  std::size_t waiting() const { return sink_ == nullptr ? 0 : sink_->waiting_bytes(); }

  virtual bool holds_program() const = 0;
  virtual void on_resize(api::TerminalSize size) = 0;

  /// The client's input has ended.
  virtual void on_input_closed() {}

  /// The client has disconnected, or was idle for too long.
  virtual void on_client_gone() = 0;

  runtime::Loop& loop() { return loop_; }

  const api::StreamOptions& options() const { return options_; }

 private:
  struct Output {
    UniqueFd from;
    bool watched = false;
    api::Channel channel = api::Channel::kOut;
  };

  void write_input();
  void close_input();
  bool pump(Output& output, std::size_t bytes_max);
  void close_output(Output& output);
  void watch(Output& output);
  void pace();
  void end();
  void arm_idle_timer();
  void begin();

  runtime::Loop& loop_;
  std::shared_ptr<api::UpgradingSink> sink_;  // null: the client has disconnected
  std::unique_ptr<api::CommandChannels> channels_;
  api::StreamOptions options_;
  bool begun_ = false;
  bool input_taken_ = false;  // take_input() was called; until then input waits
  UniqueFd in_;
  bool in_watched_ = false;
  bool in_ends_ = false;    // close the input after the waiting bytes
  std::string input_;       // waits for the program
  std::size_t unused_ = 0;  // bytes of the connection not yet reported as used
  std::array<Output, 2> outputs_;
  std::optional<runtime::Loop::TimerId> pace_timer_;
  std::optional<runtime::Loop::TimerId> idle_timer_;
  std::optional<runtime::Loop::TimerId> ready_timer_;
  Instant active_{};
};

}  // namespace spillway::host
