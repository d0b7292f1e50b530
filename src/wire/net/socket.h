// TCP sockets: non-blocking, close-on-exec, owned. Addresses are numeric here; names are looked up in name_lookup.h.
// Thread: one at a time.
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace spillway::wire {

/// An open socket; closed by the destructor.
class Socket {
 public:
  Socket() = default;

  explicit Socket(int fd) : fd_(fd) {}

  int fd() const { return fd_.get(); }

  bool open() const { return static_cast<bool>(fd_); }

  void close() { fd_.reset(); }

 private:
  UniqueFd fd_;
};

/// "127.0.0.1:6443", "[::1]:6443".
std::string format_endpoint(const std::string& address, std::uint16_t port);

/// True for "127.0.0.1", "::1"; false for names.
bool is_numeric_address(const std::string& host);

/// A socket that listens there; port 0 picks a free one. The error names the place: "127.0.0.1:6443: address already in
/// use".
Result<Socket> listen_on(const std::string& address, std::uint16_t port);

/// Listens at an address that this machine may only get later.
Result<Socket> listen_ahead_on(const std::string& address, std::uint16_t port);

std::uint16_t local_port(const Socket& socket);

/// One accepted connection; nullopt if none waits. kServiceUnavailable: out of descriptors or memory.
Result<std::optional<Socket>> accept_from(const Socket& listener);

/// The network of the peer, without its port; for IPv6 the network of 64 bits, which one host may use up alone. Empty
/// if the peer is gone.
std::string peer_network(const Socket& socket);

/// The address of the peer; an IPv4 address mapped into IPv6 is written as IPv4.
std::string peer_address(const Socket& socket);

/// Bytes that were written and not acknowledged by the peer yet; 0 if unknown.
std::size_t untaken_bytes(const Socket& socket);

/// Makes closing the socket a failure for the peer instead of an end; unread bytes are lost.
void close_as_failure(const Socket& socket);

/// Begins to connect; the socket becomes writable when that has succeeded or failed.
Result<Socket> connect_to(const std::string& address, std::uint16_t port);

/// True if the other end of a connected socket is on this machine.
bool leads_home(const Socket& socket);

/// True if the other end of an accepted socket is an address that an interface of this machine has at the moment.
bool is_from_here(const Socket& socket);

/// The result of connecting: nullopt if it is established, else the reason why not ("connection refused").
std::optional<std::string> connect_problem(const Socket& socket);

}  // namespace spillway::wire
