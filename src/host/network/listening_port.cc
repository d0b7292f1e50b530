#include "host/network/listening_port.h"

#include "base/unique_fd.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace spillway::host {
namespace {

/// Connections that are ending do not count: the address may be used again.
int open_probe(int family, std::string_view protocol) {
  const bool is_tcp = protocol == "TCP";
  const int fd = ::socket(family, (is_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0 && is_tcp) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (fd >= 0 && family == AF_INET6) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  return fd;
}

}  // namespace

bool is_listening(const std::string& address, std::string_view protocol, std::int32_t port) {
  if (protocol != "TCP" && protocol != "UDP") return false;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    const UniqueFd probe(open_probe(AF_INET, protocol));
    return probe && ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&v4), sizeof(v4)) != 0 && errno == EADDRINUSE;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) != 1) return false;
  const UniqueFd probe(open_probe(AF_INET6, protocol));
  return probe && ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&v6), sizeof(v6)) != 0 && errno == EADDRINUSE;
}

}  // namespace spillway::host
