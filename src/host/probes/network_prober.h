// Executes the requests and connections of probes and hooks: one non-blocking socket each, ended by its time-out. Names
// are not resolved: the target is an address, or "localhost". No certificate is verified. Thread: loop. Bounds:
// kAttemptsMax at a time, kHeadMax bytes of a head, containers::kProbeOutputMax of a body. Source: spec "Pod
// lifecycle", 9.5; RFC 9112.
#pragma once

#include "agent/contract/ports.h"
#include "base/unique_fd.h"
#include "host/probes/secure_stream.h"
#include "runtime/loop.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace spillway::host {

class NetworkProber {
 public:
  static constexpr std::size_t kAttemptsMax = 512;
  static constexpr std::size_t kHeadMax = 64 * 1024;

  /// `emit` is called with each answer, also from inside ask() and connect().
  NetworkProber(runtime::Loop& loop, std::function<void(agent::HostEvent)> emit, SecureStreams secure = {});
  ~NetworkProber();
  NetworkProber(const NetworkProber&) = delete;
  NetworkProber& operator=(const NetworkProber&) = delete;

  void ask(const agent::AskHttp& command);
  void connect(const agent::TryTcp& command);

 private:
  struct Attempt;

  void begin(std::uint64_t id, std::unique_ptr<Attempt> attempt, Duration timeout);
  void on_ready(std::uint64_t id);
  void on_connected(std::uint64_t id, Attempt& attempt);
  void secure(std::uint64_t id, Attempt& attempt);
  void handshake(std::uint64_t id, Attempt& attempt);
  /// False: the attempt cannot continue now; another event follows, or the attempt has ended.
  bool on_step(std::uint64_t id, Attempt& attempt, SecureStream::Step step);
  void send(std::uint64_t id, Attempt& attempt);
  void receive(std::uint64_t id, Attempt& attempt);
  void fail(std::uint64_t id, const std::string& text);
  void answer(std::uint64_t id, Result<containers::HttpAnswer> answer);
  std::unique_ptr<Attempt> take(std::uint64_t id);

  runtime::Loop& loop_;
  std::function<void(agent::HostEvent)> emit_;
  SecureStreams secure_;
  std::map<std::uint64_t, std::unique_ptr<Attempt>> attempts_;
};

}  // namespace spillway::host
