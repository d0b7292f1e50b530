#include "wire/net/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace spillway::wire {

namespace {

constexpr int kBacklog = 1024;

/// The system's words for an error, in lower case as the rest of a line: "address already in use".
std::string words(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }

  int family() const { return storage.ss_family; }
};

std::optional<Address> parse_address(const std::string& host, std::uint16_t port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof(sockaddr_in);
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length = sizeof(sockaddr_in6);
    return address;
  }
  return std::nullopt;
}

/// The address without the port; an IPv4 address that IPv6 carries is shown as IPv4.
std::string numeric_text(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.family() == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, text, sizeof text);
    return text;
  }
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    inet_ntop(AF_INET, v6.s6_addr + 12, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, &v6, text, sizeof text);
  }
  return text;
}

void set_option(int fd, int level, int name, int value) {
  // Comfort, not correctness: a kernel that refuses one of these options still carries the bytes.
  ::setsockopt(fd, level, name, &value, sizeof value);
}

/// Sends small segments at once; a peer that vanished without a word is noticed within about a minute.
void tune_connection(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

/// `prefix_bytes`: of an IPv6 address; the rest is left out.
std::string peer_text(const Socket& socket, std::ptrdiff_t prefix_bytes) {
  Address address;
  address.length = sizeof address.storage;
  if (::getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.family() == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, text.data(), text.size());
    return text.data();
  }
  in6_addr network = reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr;
  if (!IN6_IS_ADDR_V4MAPPED(&network)) {
    std::fill(network.s6_addr + prefix_bytes, network.s6_addr + sizeof network.s6_addr, std::uint8_t{0});
  }
  inet_ntop(AF_INET6, &network, text.data(), text.size());
  return text.data();
}

}  // namespace

std::string format_endpoint(const std::string& address, std::uint16_t port) {
  const bool v6 = address.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", address, v6 ? "]" : "", port);
}

bool is_numeric_address(const std::string& host) {
  return parse_address(host, 0).has_value();
}

namespace {

enum class AddressMust : std::uint8_t { kExist, kExistLater };

Result<Socket> listening_socket(const std::string& address, std::uint16_t port, AddressMust must) {
  const std::string place = format_endpoint(address, port);
  const std::optional<Address> parsed = parse_address(address, port);
  if (!parsed) return invalid(place, "\"{}\" is not a numeric IP address", address);
  Socket socket(::socket(parsed->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) return Error{ErrorCode::kServiceUnavailable, words(errno), place};
  set_option(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (must == AddressMust::kExistLater) set_option(socket.fd(), IPPROTO_IP, IP_FREEBIND, 1);  // also for IPv6
  if (::bind(socket.fd(), parsed->get(), parsed->length) != 0 || ::listen(socket.fd(), kBacklog) != 0) {
    return Error{ErrorCode::kServiceUnavailable, words(errno), place};
  }
  return socket;
}

}  // namespace

Result<Socket> listen_on(const std::string& address, std::uint16_t port) {
  return listening_socket(address, port, AddressMust::kExist);
}

Result<Socket> listen_ahead_on(const std::string& address, std::uint16_t port) {
  return listening_socket(address, port, AddressMust::kExistLater);
}

std::uint16_t local_port(const Socket& socket) {
  Address address;
  address.length = sizeof address.storage;
  if (::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return 0;
  if (address.family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
}

Result<std::optional<Socket>> accept_from(const Socket& listener) {
  for (;;) {
    Socket socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.open()) {
      tune_connection(socket.fd());
      return std::optional(std::move(socket));
    }
    // the client has disconnected; try the next one
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
    if (errno == EAGAIN) return std::optional<Socket>();
    return make_error(ErrorCode::kServiceUnavailable, "accept: {}", words(errno));
  }
}

std::string peer_network(const Socket& socket) {
  return peer_text(socket, 8);
}

std::string peer_address(const Socket& socket) {
  constexpr std::string_view kMapped = "::ffff:";
  std::string text = peer_text(socket, sizeof(in6_addr));
  const bool mapped = text.starts_with(kMapped) && text.find('.') != std::string::npos;
  return mapped ? text.substr(kMapped.size()) : text;
}

std::size_t untaken_bytes(const Socket& socket) {
  int bytes = 0;
  return ::ioctl(socket.fd(), SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

void close_as_failure(const Socket& socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

Result<Socket> connect_to(const std::string& address, std::uint16_t port) {
  const std::optional<Address> parsed = parse_address(address, port);
  if (!parsed) return invalid(format_endpoint(address, port), "\"{}\" is not a numeric IP address", address);
  Socket socket(::socket(parsed->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) return make_error(ErrorCode::kServiceUnavailable, "socket: {}", words(errno));
  tune_connection(socket.fd());
  if (::connect(socket.fd(), parsed->get(), parsed->length) != 0 && errno != EINPROGRESS) {
    return make_error(ErrorCode::kServiceUnavailable, "{}", words(errno));
  }
  return socket;
}

bool leads_home(const Socket& socket) {
  Address own;
  Address peer;
  own.length = sizeof own.storage;
  peer.length = sizeof peer.storage;
  if (::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own.storage), &own.length) != 0) return false;
  if (::getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.length) != 0) return false;
  const std::string there = numeric_text(peer);
  return there == numeric_text(own) || there.starts_with("127.") || there == "::1";
}

// The route to an address of this machine has that address as its source. Nothing is sent.
bool is_from_here(const Socket& socket) {
  Address peer;
  Address source;
  peer.length = sizeof peer.storage;
  source.length = sizeof source.storage;
  if (::getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.length) != 0) return false;
  const Socket probe(::socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.open() || ::connect(probe.fd(), peer.get(), peer.length) != 0) return false;
  if (::getsockname(probe.fd(), reinterpret_cast<sockaddr*>(&source.storage), &source.length) != 0) return false;
  return numeric_text(peer) == numeric_text(source);
}

std::optional<std::string> connect_problem(const Socket& socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error == 0) return std::nullopt;
  return words(error);
}

}  // namespace spillway::wire
