// The supervisor of a container: a program of its own, started with the descriptors of supervisor_state.h. It is the
// parent of the container's first process, writes the output of the pipes to the log, keeps the exit status of the
// process, and holds the namespaces of the pod. It starts, ends and decides nothing, reads no file, and obeys only the
// socket that it was started with. All signals stay blocked, as its parent left them.
// Memory: its pages, one buffer per stream, one packet.
#include "host/logs/container_log.h"
#include "host/supervisor/supervisor_state.h"
#include "runtime/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::size_t kChunkBytes = 16'384;
constexpr std::size_t kCopyBytesMax = 65'536;          // limit for one stream in one turn
constexpr std::size_t kFinalCopyBytesMax = 1'048'576;  // a full pipe still holds this much after the end
constexpr auto kByPidfd = static_cast<idtype_t>(3);    // P_PIDFD

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

struct Stream {
  int fd;
  LogFramer framer;
  char channel;  // api::Channel
  bool open = false;
};

class Supervisor {
 public:
  explicit Supervisor(SupervisorState& state) : state_(state) {
    for (Stream& stream : streams_) stream.open = is_open(stream.fd);
    LogLimits limits;
    limits.file_max = Bytes{state.log_file_max};
    limits.files_max = state.log_files_max;
    state.log_path[kLogPathMax - 1] = '\0';
    if (auto log = ContainerLog::create(state.log_path, limits)) log_ = *std::move(log);
    state_.log_fails = log_ ? 0 : 1;
  }

  int run() {
    while (!quits_) turn();
    if (state_.phase != SupervisedPhase::kRecorded) collect();
    return 0;
  }

 private:
  void turn() {
    const bool held_up = !packet_.empty();
    std::array<pollfd, 5> waits = {{{kOrdersFd, POLLIN, 0},
                                    {state_.phase == SupervisedPhase::kRuns ? int{kProcessFd} : -1, POLLIN, 0},
                                    {held_up || !streams_[0].open ? -1 : streams_[0].fd, POLLIN, 0},
                                    {held_up || !streams_[1].open ? -1 : streams_[1].fd, POLLIN, 0},
                                    {held_up ? listener_.get() : -1, POLLOUT, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0) return;
    for (std::size_t i = 0; i < streams_.size(); ++i)
      if (waits[i + 2].revents != 0) pump(streams_[i], kCopyBytesMax);
    if (waits[4].revents != 0) send_packet();
    if (waits[1].revents != 0) mark_ended();
    if (waits[0].revents != 0) take_order();
  }

  void mark_ended() {
    siginfo_t info = {};
    if (state_.phase != SupervisedPhase::kRuns) return;
    if (::waitid(kByPidfd, kProcessFd, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    state_.wait_status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
    state_.finished_at_micros = runtime::RealClock::read().wall.time_since_epoch().count();
    std::atomic_ref(state_.phase).store(SupervisedPhase::kEnded, std::memory_order_release);
  }

  void collect() {
    siginfo_t info = {};
    if (::waitid(kByPidfd, kProcessFd, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0)
      std::atomic_ref(state_.phase).store(SupervisedPhase::kRecorded, std::memory_order_release);
  }

  /// Called also at the end of the stream: a pipe reports that once.
  void pump(Stream& stream, std::size_t bytes_max) {
    std::array<char, kChunkBytes> chunk;
    std::string records;
    for (std::size_t total = 0; stream.open && total < bytes_max && packet_.empty();) {
      const ssize_t got = ::read(stream.fd, chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) break;
      if (got <= 0) {
        finish(stream, records);
        break;
      }
      total += static_cast<std::size_t>(got);
      const std::string_view said(chunk.data(), static_cast<std::size_t>(got));
      stream.framer.add(said, runtime::RealClock::read().wall, records);
      if (listener_) {
        packet_.assign(1, stream.channel);
        packet_ += said;
        send_packet();
      }
    }
    write_log(records);
  }

  static void finish(Stream& stream, std::string& records) {
    stream.open = false;
    ::close(stream.fd);
    stream.framer.finish(runtime::RealClock::read().wall, records);
  }

  void send_packet() {
    if (packet_.empty()) return;
    if (listener_ && ::send(listener_.get(), packet_.data(), packet_.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) return;
      listener_.reset();
    }
    packet_.clear();
  }

  void write_log(std::string_view records) {
    if (records.empty() || !log_) return;
    state_.log_fails = log_->write(records) ? 0 : 1;
    state_.log_bytes = static_cast<std::uint64_t>(log_->size().count());
  }

  void drain() {
    for (Stream& stream : streams_) {
      do {
        packet_.clear();  // a reader this far behind must read the rest from the log
        pump(stream, kFinalCopyBytesMax);
      } while (!packet_.empty());
      std::string records;
      if (stream.open) finish(stream, records);
      write_log(records);
    }
  }

  void take_order() {
    char order = 0;
    std::array<char, CMSG_SPACE(sizeof(int))> control = {};
    iovec text = {&order, 1};
    msghdr message = {};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(kOrdersFd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1) return;
    UniqueFd given;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      given.reset(fd);
    }
    switch (static_cast<SupervisorOrder>(order)) {
      case SupervisorOrder::kListen:
        listener_ = std::move(given);
        packet_.assign(1, '\0');
        send_packet();
        break;
      case SupervisorOrder::kFinish:
        mark_ended();
        drain();
        break;  // `given` is closed
      case SupervisorOrder::kCollect:
        collect();
        break;
      case SupervisorOrder::kCloseInput:
        ::close(kStdinFd);
        break;
      case SupervisorOrder::kQuit:
        quits_ = true;
        break;
    }
  }

  SupervisorState& state_;
  std::array<Stream, 2> streams_ = {{{.fd = kStdoutFd, .framer = LogFramer(LogStream::kStdout), .channel = 1},
                                     {.fd = kStderrFd, .framer = LogFramer(LogStream::kStderr), .channel = 2}}};
  std::optional<ContainerLog> log_;
  UniqueFd listener_;
  std::string packet_;  // not sent yet
  bool quits_ = false;
};

}  // namespace
}  // namespace spillway::host

int main() {
  using spillway::host::SupervisorState;
  void* page =
      ::mmap(nullptr, spillway::host::kStateBytes, PROT_READ | PROT_WRITE, MAP_SHARED, spillway::host::kStateFd, 0);
  if (page == MAP_FAILED) return 1;
  auto& state = *static_cast<SupervisorState*>(page);
  // Allows the next agent to trace this process even if the kernel allows that to ancestors only.
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  if (state.magic != spillway::host::kSupervisorMagic || ::chdir("/") != 0) return 1;
  return spillway::host::Supervisor(state).run();
}
