#include "host/reaction/container_handle.h"

#include "host/kernel/pidfd.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>

namespace spillway::host {
namespace {

constexpr std::size_t kStatusBytesMax = 4096;

/// The set of signals behind `name`, as a line of the text has it.
std::optional<std::uint64_t> signals_of(std::string_view status, std::string_view name) noexcept {
  const std::size_t at = status.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = status.substr(at + name.size(), 16);
  std::uint64_t set = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), set, 16);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return set;
}

void send_to(int pidfd, int signal) noexcept {
  static_cast<void>(try_send_signal(pidfd, signal));  // an error means that the process has ended by itself
}

/// A file of /proc, read into a buffer on the stack.
class ProcText {
 public:
  /// The content of a small file; empty: it cannot be read.
  std::string_view read(int fd) noexcept {
    const ssize_t got = ::pread(fd, text_.data(), text_.size(), 0);
    return {text_.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }

 private:
  std::array<char, kStatusBytesMax> text_;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
};

}  // namespace

SignalFate fate_of(std::string_view status, int signal) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (signal - 1);
  const auto blocked = signals_of(status, "\nSigBlk:\t");
  const auto ignored = signals_of(status, "\nSigIgn:\t");
  const auto caught = signals_of(status, "\nSigCgt:\t");
  if (!blocked || !ignored || !caught || ((*ignored | *caught) & bit) != 0) return SignalFate::kTaken;
  return (*blocked & bit) != 0 ? SignalFate::kBlocked : SignalFate::kEnds;
}

bool waits_for_signals(std::string_view call) noexcept {
  long number = -1;
  const auto [end, error] = std::from_chars(call.data(), call.data() + call.size(), number);
  if (error == std::errc{}) return number == SYS_rt_sigtimedwait;
  return !call.starts_with("running");
}

bool is_pending(std::string_view status, int signal) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (signal - 1);
  for (const std::string_view name : {"\nSigPnd:\t", "\nShdPnd:\t"}) {
    const auto set = signals_of(status, name);
    if (set && (*set & bit) != 0) return true;
  }
  return false;
}

SignalFate ContainerHandle::fate_of_sigterm(std::string_view status_text) const noexcept {
  const SignalFate fate = fate_of(status_text, SIGTERM);
  if (fate != SignalFate::kEnds) return fate;
  ProcText text;
  return waits_for_signals(text.read(call.get())) ? SignalFate::kTaken : SignalFate::kEnds;
}

void ContainerHandle::terminate() noexcept {
  if (terminated.exchange(true)) return;
  if (status) {
    ProcText text;
    const SignalFate fate = running ? fate_of_sigterm(text.read(status.get())) : SignalFate::kEnds;
    if (fate == SignalFate::kEnds) {
      ended_for = true;
      return send_to(pidfd.get(), SIGKILL);
    }
    in_doubt = fate == SignalFate::kBlocked;
  }
  send_to(pidfd.get(), SIGTERM);
}

void ContainerHandle::recheck() noexcept {
  if (!in_doubt) return;
  ProcText text;
  const std::string_view now = text.read(status.get());
  if (is_pending(now, SIGTERM)) return;
  const SignalFate fate = fate_of_sigterm(now);
  if (fate == SignalFate::kBlocked) return;  // dropped, and blocked again; or taken: its next state shows which
  in_doubt = false;                          // else a waiting thread took it, or it is caught by now
  if (fate != SignalFate::kEnds) return;
  ended_for = true;
  send_to(pidfd.get(), SIGKILL);
}

}  // namespace spillway::host
