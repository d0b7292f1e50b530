// One client that talks with a program: what it sends becomes the program's input, what the program says goes to it, at
// the pace of the slower side. What the program is, and how it ends, is for the derived class.
// Thread: loop. Bounds: of input what the connection may hold (it is not asked for more before the program has taken
// it), kWaitingMax of output; idle kIdleMax. What it says before it is ready waits too. Source: spec "Pod
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
  static constexpr Duration kIdleMax = hours(4);
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

  /// The client has all its channels: the rest may be called.
  virtual void on_ready() = 0;
  /// Where input goes; not blocking. Empty: it is dropped. Until this is called input waits.
  void take_input(UniqueFd in);
  /// Where output comes from; not blocking.
  void take_output(api::Channel channel, UniqueFd from);
  /// Output that comes from elsewhere.
  void say(api::Channel channel, std::string_view data);
  /// The program has ended: what it has said goes out, then how it ended.
  void finish(const Result<std::int32_t>& exit_code);

  bool is_open() const { return sink_ != nullptr; }

  /// Whether the client is behind: nothing should be said until it is not.
  bool is_full() const { return sink_ != nullptr && sink_->waiting_bytes() > kWaitingMax; }

  /// Bytes that the client has not taken.
  std::size_t waiting() const { return sink_ == nullptr ? 0 : sink_->waiting_bytes(); }

  virtual bool holds_program() const = 0;
  virtual void on_resize(api::TerminalSize size) = 0;

  /// Input is at its end.
  virtual void on_input_closed() {}

  /// The client is gone, or was idle for too long.
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
  void look_for_idleness();
  void begin();

  runtime::Loop& loop_;
  std::shared_ptr<api::UpgradingSink> sink_;  // null: the client is gone
  std::unique_ptr<api::CommandChannels> channels_;
  api::StreamOptions options_;
  bool begun_ = false;
  bool input_settled_ = false;  // take_input() has said where it goes; until then it waits
  UniqueFd in_;
  bool in_watched_ = false;
  bool in_ends_ = false;    // after what waits
  std::string input_;       // waits for the program
  std::size_t unused_ = 0;  // bytes of the connection not yet told as used
  std::array<Output, 2> outputs_;
  std::optional<runtime::Loop::TimerId> pace_timer_;
  std::optional<runtime::Loop::TimerId> idle_timer_;
  std::optional<runtime::Loop::TimerId> ready_timer_;
  Instant active_{};
};

}  // namespace spillway::host
