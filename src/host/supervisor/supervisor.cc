#include "host/supervisor/supervisor.h"

#include "base/file.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>

namespace spillway::host {
namespace {

Result<UniqueFd> copy_fd(int pidfd, int number) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, number, 0U)));
  if (!fd) return errno_error("pidfd_getfd", errno);
  return fd;
}

Outcome write_at(int fd, std::string_view text, std::size_t offset) {
  while (!text.empty()) {
    const ssize_t wrote = ::pwrite(fd, text.data(), text.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return errno_error("state of a supervisor", errno);
    text.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::size_t>(wrote);
  }
  return {};
}

bool has_ended(int pidfd) {
  pollfd wait{pidfd, POLLIN, 0};
  return ::poll(&wait, 1, 0) > 0;
}

}  // namespace

Result<Supervisor> Supervisor::prepare(const SupervisorWish& wish) {
  if (wish.log_path.size() >= kLogPathMax || wish.record.size() > kRecordBytesMax)
    return invalid("supervisor", "a path of {} bytes or a record of {} is too long", wish.log_path.size(),
                   wish.record.size());
  SupervisorState state;
  state.record_bytes = static_cast<std::uint32_t>(wish.record.size());
  state.started_at_micros = wish.started_at.time_since_epoch().count();
  state.log_file_max = wish.log_limits.file_max.count();
  state.log_files_max = wish.log_limits.files_max;
  wish.log_path.copy(state.log_path, kLogPathMax - 1);
  Supervisor made;
  made.state_.reset(::memfd_create("spillway-container", MFD_CLOEXEC));
  if (!made.state_ || ::ftruncate(made.state_.get(), kStateBytes) != 0) return errno_error("memfd_create", errno);
  SPILLWAY_TRY_VOID(write_at(made.state_.get(), {reinterpret_cast<const char*>(&state), sizeof state}, 0));
  SPILLWAY_TRY_VOID(write_at(made.state_.get(), wish.record, kStateBytes));
  std::array<int, 2> ends = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return errno_error("socketpair", errno);
  made.orders_.reset(ends[0]);
  made.give_orders_.reset(ends[1]);
  return made;
}

Result<Supervisor> Supervisor::find(pid_t pid) {
  Supervisor found;
  SPILLWAY_TRY(pidfd, open_pidfd(pid));
  found.pid_ = pid;
  found.pidfd_ = std::move(pidfd);
  SPILLWAY_TRY(state, copy_fd(found.pidfd(), kStateFd));
  found.state_ = std::move(state);
  SPILLWAY_TRY(orders, copy_fd(found.pidfd(), kGiveOrdersFd));
  found.give_orders_ = std::move(orders);
  SPILLWAY_TRY(now, found.state());
  if (now.magic != kSupervisorMagic || now.version == 0 || now.version > kSupervisorVersion || now.process <= 0)
    return invalid("supervisor", "process {} is not a supervisor, or has version {}; this agent knows {}", pid,
                   now.version, kSupervisorVersion);
  return found;
}

std::vector<std::pair<int, int>> Supervisor::descriptors() const {
  return {{state_.get(), kStateFd}, {orders_.get(), kOrdersFd}, {give_orders_.get(), kGiveOrdersFd}};
}

bool Supervisor::is_alive() const {
  return pidfd_ && !has_ended(pidfd_.get());
}

Result<SupervisorState> Supervisor::state() const {
  SupervisorState state;
  const ssize_t got = ::pread(state_.get(), &state, sizeof state, 0);
  if (got != static_cast<ssize_t>(sizeof state)) return invalid("supervisor", "its state has {} bytes", got);
  state.log_path[kLogPathMax - 1] = '\0';
  return state;
}

Result<std::string> Supervisor::record() const {
  SPILLWAY_TRY(now, state());
  if (now.record_bytes > kRecordBytesMax) return invalid("supervisor", "a record of {} bytes", now.record_bytes);
  std::string text(now.record_bytes, '\0');
  const ssize_t got = ::pread(state_.get(), text.data(), text.size(), kStateBytes);
  if (got != static_cast<ssize_t>(text.size())) return invalid("supervisor", "its record is cut off");
  return text;
}

UniqueFd Supervisor::copy(SupervisorFd number) const {
  auto fd = copy_fd(pidfd_.get(), number);
  return fd ? *std::move(fd) : UniqueFd();
}

bool Supervisor::send_order(SupervisorOrder order, int with) const {
  char byte = static_cast<char>(order);
  iovec text = {&byte, 1};
  std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  if (with >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &with, sizeof with);
  }
  return ::sendmsg(give_orders_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

void Supervisor::quit(runtime::Loop& loop) {
  if (!pidfd_) return;
  static_cast<void>(send_order(SupervisorOrder::kQuit));
  const auto held = std::make_shared<UniqueFd>(std::move(pidfd_));
  loop.watch_fd(held->get(), POLLIN, [&loop, held] {
    const auto kept = held;  // the callback is destroyed with the watch
    loop.unwatch_fd(kept->get());
    ignored(reap(kept->get()), "it is another agent's child, or was one");
  });
  state_.reset();
  give_orders_.reset();
}

ProcessEnd end_of(std::int32_t wait_status) {
  const std::int32_t signal = wait_status & 0x7f;
  if (signal == 0) return {(wait_status >> 8) & 0xff, 0};
  return {128 + signal, signal};
}

std::optional<ProcessEnd> end_in_stat(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');  // the name may hold anything
  if (name_end == std::string_view::npos || !stat.substr(name_end).starts_with(") Z ")) return std::nullopt;
  while (stat.ends_with('\n')) stat.remove_suffix(1);
  const std::string_view last = stat.substr(stat.rfind(' ') + 1);
  std::int32_t status = 0;
  const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), status);
  if (error != std::errc{} || end != last.data() + last.size()) return std::nullopt;
  return end_of(status);
}

std::optional<ProcessEnd> read_end(const Supervisor& supervisor, pid_t process) {
  const auto known = supervisor.state();
  if (known && known->phase != SupervisedPhase::kRuns) return end_of(known->wait_status);
  const auto stat = read_file(fmt::format("/proc/{}/stat", process));
  // The process number cannot be reused while its parent lives and has not reaped it.
  if (!stat || !supervisor.is_alive()) return std::nullopt;
  return end_in_stat(*stat);
}

}  // namespace spillway::host
