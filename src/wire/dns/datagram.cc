#include "wire/dns/datagram.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

namespace spillway::wire {
namespace {

std::string words_of(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

struct Place {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

std::optional<Place> place_of(const std::string& address, std::uint16_t port) {
  Place place;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&place.storage);
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    place.length = sizeof *v4;
    return place;
  }
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&place.storage);
  if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) != 1) return std::nullopt;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  place.length = sizeof *v6;
  return place;
}

std::optional<api::IpAddress> ip_of(const sockaddr* address) {
  api::IpAddress ip;
  if (address->sa_family == AF_INET) {
    ip.v4 = true;
    ip.octets[10] = 0xff;
    ip.octets[11] = 0xff;
    std::memcpy(ip.octets.data() + 12, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
    return ip;
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  std::memcpy(ip.octets.data(), v6.s6_addr, ip.octets.size());
  ip.v4 = IN6_IS_ADDR_V4MAPPED(&v6) != 0;
  return ip;
}

Result<Socket> open_socket(const Place& place, const std::string& name) {
  Socket socket(::socket(place.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) return Error{ErrorCode::kServiceUnavailable, words_of(errno), name};
  return socket;
}

/// The control message with which an answer is sent from the address at which the query arrived.
void keep_arrival(msghdr& message, DatagramPath& path) {
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    const bool v4 = each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_PKTINFO;
    const bool v6 = each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_PKTINFO;
    if (!v4 && !v6) continue;
    const std::size_t data = v4 ? sizeof(in_pktinfo) : sizeof(in6_pktinfo);
    std::memcpy(path.arrival.data(), each, CMSG_LEN(data));
    path.arrival_bytes = CMSG_SPACE(data);
    return;
  }
}

}  // namespace

api::IpAddress DatagramPath::peer_address() const {
  return ip_of(reinterpret_cast<const sockaddr*>(&peer)).value_or(api::IpAddress{});
}

Result<Socket> bind_datagrams(const std::string& address, std::uint16_t port) {
  const std::string name = format_endpoint(address, port);
  const auto place = place_of(address, port);
  if (!place) return invalid(name, "\"{}\" is not a numeric IP address", address);
  SPILLWAY_TRY(socket, open_socket(*place, name));
  const int on = 1;
  const bool v4 = place->storage.ss_family == AF_INET;
  ::setsockopt(socket.fd(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_PKTINFO : IPV6_RECVPKTINFO, &on, sizeof on);
  if (::bind(socket.fd(), place->get(), place->length) != 0)
    return Error{ErrorCode::kServiceUnavailable, words_of(errno), name};
  return socket;
}

Result<Socket> connect_datagrams(const std::string& address, std::uint16_t port) {
  const std::string name = format_endpoint(address, port);
  const auto place = place_of(address, port);
  if (!place) return invalid(name, "\"{}\" is not a numeric IP address", address);
  SPILLWAY_TRY(socket, open_socket(*place, name));
  if (::connect(socket.fd(), place->get(), place->length) != 0)
    return Error{ErrorCode::kServiceUnavailable, words_of(errno), name};
  return socket;
}

std::optional<Datagram> receive_datagram(const Socket& socket, std::span<char> buffer) {
  Datagram datagram;
  alignas(cmsghdr) std::array<std::byte, 256> control{};
  iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr message{};
  message.msg_name = &datagram.path.peer;
  message.msg_namelen = sizeof datagram.path.peer;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket.fd(), &message, MSG_TRUNC);
  if (size < 0) return std::nullopt;  // none waits; or an earlier answer could not be delivered, which is forgotten
  datagram.size = static_cast<std::size_t>(size);
  datagram.path.peer_length = message.msg_namelen;
  keep_arrival(message, datagram.path);
  return datagram;
}

void send_datagram(const Socket& socket, const DatagramPath& path, std::string_view bytes) {
  std::string data(bytes);
  DatagramPath to = path;
  alignas(cmsghdr) std::array<std::byte, sizeof(DatagramPath::arrival)> control = path.arrival;
  iovec part{.iov_base = data.data(), .iov_len = data.size()};
  msghdr message{};
  message.msg_name = &to.peer;
  message.msg_namelen = to.peer_length;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (path.arrival_bytes > 0) {
    message.msg_control = control.data();
    message.msg_controllen = path.arrival_bytes;
    if (auto* const header = CMSG_FIRSTHDR(&message);
        header != nullptr && header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO)
      reinterpret_cast<in_pktinfo*>(CMSG_DATA(header))->ipi_ifindex = 0;  // the route decides, the address is fixed
  }
  [[maybe_unused]] const ssize_t sent = ::sendmsg(socket.fd(), &message, MSG_NOSIGNAL);
}

std::set<api::IpAddress> own_addresses() {
  std::set<api::IpAddress> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    if (const auto ip = ip_of(each->ifa_addr)) found.insert(*ip);
  }
  return found;
}

std::optional<api::IpAddress> peer_ip(const Socket& socket) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (::getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&peer), &length) != 0) return std::nullopt;
  return ip_of(reinterpret_cast<const sockaddr*>(&peer));
}

}  // namespace spillway::wire
