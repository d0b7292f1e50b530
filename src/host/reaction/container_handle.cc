#include "host/reaction/container_handle.h"

#include <signal.h>
#include <sys/syscall.h>
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
  static_cast<void>(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0U));  // else it ended by itself
}

}  // namespace

bool has_default_action(std::string_view status, int signal) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (signal - 1);
  for (const std::string_view name : {"\nSigBlk:\t", "\nSigIgn:\t", "\nSigCgt:\t"}) {
    const auto set = signals_of(status, name);
    if (!set || (*set & bit) != 0) return false;
  }
  return true;
}

void ContainerHandle::terminate() noexcept {
  if (terminated.exchange(true)) return;
  if (status) {
    std::array<char, kStatusBytesMax> text;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const ssize_t got = ::pread(status.get(), text.data(), text.size(), 0);
    const bool begun = running;
    if (!begun || (got > 0 && has_default_action({text.data(), static_cast<std::size_t>(got)}, SIGTERM))) {
      ended_for = true;
      return send_to(pidfd.get(), SIGKILL);
    }
  }
  send_to(pidfd.get(), SIGTERM);
}

}  // namespace spillway::host
