#include "host/streams/port_connector.h"

#include "base/file.h"
#include "host/streams/port_listeners.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

namespace spillway::host {
namespace {

Result<UniqueFd> connect_to(const sockaddr* address, socklen_t size) {
  UniqueFd made(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return errno_error("socket", errno);
  if (::connect(made.get(), address, size) != 0 && errno != EINPROGRESS) return errno_error("connect", errno);
  return made;
}

/// Connects to "localhost" as other runtimes do: IPv4 first, then IPv6.
Result<UniqueFd> connect_to_loopback(std::uint16_t port) {
  sockaddr_in first = {};
  first.sin_family = AF_INET;
  first.sin_port = htons(port);
  first.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Result<UniqueFd> made = connect_to(reinterpret_cast<const sockaddr*>(&first), sizeof first);
  if (made) return made;
  sockaddr_in6 second = {};
  second.sin6_family = AF_INET6;
  second.sin6_port = htons(port);
  second.sin6_addr = in6addr_loopback;
  Result<UniqueFd> other = connect_to(reinterpret_cast<const sockaddr*>(&second), sizeof second);
  if (other) return other;
  return make_error(made.error().code, "connect to localhost:{}: {}", port, made.error().message);
}

Result<UniqueFd> reach(const PortTarget& target, int own_network, std::uint16_t port) {
  const int network = target.network ? target.network.get() : own_network;
  if (network >= 0 && ::syscall(SYS_setns, network, CLONE_NEWNET) != 0 && target.network)
    return errno_error("cannot enter the pod's network", errno);
  if (!target.network && !target.all_of_machine)
    SPILLWAY_TRY_VOID(check_listeners(port, target.processes, target.cgroup));
  return connect_to_loopback(port);
}

}  // namespace

PortConnector::PortConnector(runtime::Loop& loop)
    : loop_(loop), network_(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)), thread_(loop, kWaitingMax) {}

void PortConnector::connect(PortTarget target, std::uint16_t port, Answer answer) {
  const auto kept = std::make_shared<Answer>(std::move(answer));
  const bool queued =
      thread_.submit([target = std::move(target), own = network_.get(), port, kept]() mutable -> runtime::Loop::Task {
        return [kept, made = reach(target, own, port)]() mutable { (*kept)(std::move(made)); };
      });
  if (queued) return;
  loop_.post([kept] { (*kept)(make_error(ErrorCode::kTooManyRequests, "too many connections are being made")); });
}

}  // namespace spillway::host
