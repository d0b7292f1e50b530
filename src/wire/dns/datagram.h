// UDP sockets and the addresses of their datagrams. Thread: one at a time.
#pragma once

#include "api/text/ip_address.h"
#include "base/error.h"
#include "wire/net/socket.h"

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace spillway::wire {

/// A datagram's other end, and the address of this machine at which it arrived: the answer is sent from there.
struct DatagramPath {
  sockaddr_storage peer{};
  socklen_t peer_length = 0;
  std::array<std::byte, CMSG_SPACE(sizeof(std::array<std::byte, 20>))> arrival{};  // the control message, as received
  std::size_t arrival_bytes = 0;

  api::IpAddress peer_address() const;
};

struct Datagram {
  DatagramPath path;
  std::size_t size = 0;  // larger than the buffer: the message was cut
};

/// A bound socket; port 0 picks a free one. The error names the place.
Result<Socket> bind_datagrams(const std::string& address, std::uint16_t port);

/// A socket with a random port that takes datagrams from this place only.
Result<Socket> connect_datagrams(const std::string& address, std::uint16_t port);

/// nullopt: none waits.
std::optional<Datagram> receive_datagram(const Socket& socket, std::span<char> buffer);

/// A datagram that the system does not take is lost, as any may be.
void send_datagram(const Socket& socket, const DatagramPath& path, std::string_view bytes);

/// The addresses of this machine's interfaces; empty if they cannot be read.
std::set<api::IpAddress> own_addresses();

/// The address of the other end of a connected socket. nullopt: not connected any more.
std::optional<api::IpAddress> peer_ip(const Socket& socket);

}  // namespace spillway::wire
