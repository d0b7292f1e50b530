#include "host/netfilter/connection_table.h"

#include "base/file.h"
#include "base/unique_fd.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::host {
namespace {

constexpr std::size_t kEntriesMax = 1'000'000;
constexpr std::size_t kBufferSize = std::size_t{1} << 17U;
constexpr int kPatienceSeconds = 10;
constexpr std::uint16_t kTypeMask = 0x3fff;  // without NLA_F_NESTED

using Octets = std::span<const std::uint8_t>;

struct Attribute {
  std::uint16_t type = 0;
  Octets whole;  // the message with its header
  Octets body;
};

std::vector<Attribute> attributes_in(Octets bytes) {
  std::vector<Attribute> out;
  while (bytes.size() >= NLA_HDRLEN) {
    nlattr header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nla_len < NLA_HDRLEN || header.nla_len > bytes.size()) break;
    out.push_back({static_cast<std::uint16_t>(header.nla_type & kTypeMask), bytes.first(header.nla_len),
                   bytes.subspan(NLA_HDRLEN, header.nla_len - NLA_HDRLEN)});
    bytes = bytes.subspan(std::min<std::size_t>(bytes.size(), NLA_ALIGN(header.nla_len)));
  }
  return out;
}

const Attribute* find(const std::vector<Attribute>& attributes, int type) {
  const auto found = std::ranges::find(attributes, type, &Attribute::type);
  return found == attributes.end() ? nullptr : &*found;
}

std::optional<api::IpAddress> address_in(Octets tuple, int v4_type, int v6_type) {
  const auto parts = attributes_in(tuple);
  const Attribute* ip = find(parts, CTA_TUPLE_IP);
  if (ip == nullptr) return std::nullopt;
  const auto addresses = attributes_in(ip->body);
  api::IpAddress out;
  if (const Attribute* v4 = find(addresses, v4_type); v4 != nullptr && v4->body.size() == 4) {
    out.v4 = true;
    out.octets[10] = 0xff;
    out.octets[11] = 0xff;
    std::ranges::copy(v4->body, out.octets.begin() + 12);
    return out;
  }
  const Attribute* v6 = find(addresses, v6_type);
  if (v6 == nullptr || v6->body.size() != out.octets.size()) return std::nullopt;
  std::ranges::copy(v6->body, out.octets.begin());
  return out;
}

std::optional<std::int32_t> udp_destination_port(Octets tuple) {
  const auto parts = attributes_in(tuple);
  const Attribute* protocol = find(parts, CTA_TUPLE_PROTO);
  if (protocol == nullptr) return std::nullopt;
  const auto fields = attributes_in(protocol->body);
  const Attribute* number = find(fields, CTA_PROTO_NUM);
  const Attribute* port = find(fields, CTA_PROTO_DST_PORT);
  if (number == nullptr || number->body.size() != 1 || number->body[0] != IPPROTO_UDP) return std::nullopt;
  if (port == nullptr || port->body.size() != 2) return std::nullopt;
  return port->body[0] << 8 | port->body[1];
}

/// An entry, and the attributes that identify it to the kernel.
struct Found {
  network::Flow flow;
  std::uint8_t family = 0;
  std::vector<std::uint8_t> identity;  // attributes of a request to delete it
};

std::optional<Found> udp_entry(Octets message) {
  if (message.size() < NLMSG_HDRLEN + sizeof(nfgenmsg)) return std::nullopt;
  nfgenmsg general{};
  std::memcpy(&general, message.data() + NLMSG_HDRLEN, sizeof general);
  const auto attributes = attributes_in(message.subspan(NLMSG_HDRLEN + NLMSG_ALIGN(sizeof general)));
  const Attribute* sent = find(attributes, CTA_TUPLE_ORIG);
  const Attribute* answered = find(attributes, CTA_TUPLE_REPLY);
  if (sent == nullptr || answered == nullptr) return std::nullopt;
  const auto port = udp_destination_port(sent->body);
  const auto destination = address_in(sent->body, CTA_IP_V4_DST, CTA_IP_V6_DST);
  const auto server = address_in(answered->body, CTA_IP_V4_SRC, CTA_IP_V6_SRC);
  if (!port || !destination || !server) return std::nullopt;
  Found found{{*destination, *port, *server}, general.nfgen_family, {}};
  for (const int type : {CTA_TUPLE_ORIG, CTA_ZONE, CTA_ID}) {
    const Attribute* part = find(attributes, type);
    if (part == nullptr) continue;
    found.identity.insert(found.identity.end(), part->whole.begin(), part->whole.end());
    found.identity.resize(NLA_ALIGN(found.identity.size()));
  }
  return found;
}

std::vector<std::uint8_t> request(int type, unsigned flags, std::uint8_t family, Octets body) {
  const std::size_t length = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(nfgenmsg)) + body.size();
  std::vector<std::uint8_t> out(length);
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(length);
  header.nlmsg_type = static_cast<std::uint16_t>(NFNL_SUBSYS_CTNETLINK << 8 | type);
  header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  nfgenmsg general{};
  general.nfgen_family = family;
  general.version = NFNETLINK_V0;
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(out.data() + NLMSG_HDRLEN, &general, sizeof general);
  std::ranges::copy(body, out.begin() + NLMSG_HDRLEN + NLMSG_ALIGN(sizeof general));
  return out;
}

class Netlink {
 public:
  static Result<Netlink> open() {
    UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
    if (!socket) return errno_error("connection table", errno);
    const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return Netlink(std::move(socket));
  }

  Outcome send(const std::vector<std::uint8_t>& message) {
    if (::send(socket_.get(), message.data(), message.size(), 0) < 0) return errno_error("connection table", errno);
    return {};
  }

  /// Calls `act` for each message until the kernel ends the answer, with an error number: 0 for none.
  template <typename Act>
  Result<int> receive(Act act) {
    while (true) {
      const ssize_t got = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error("connection table", errno);
      Octets bytes(buffer_.data(), static_cast<std::size_t>(got));
      while (bytes.size() >= NLMSG_HDRLEN) {
        nlmsghdr header{};
        std::memcpy(&header, bytes.data(), sizeof header);
        if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > bytes.size()) break;
        if (header.nlmsg_type == NLMSG_DONE) return 0;
        if (header.nlmsg_type == NLMSG_ERROR) {
          int code = 0;
          if (header.nlmsg_len >= NLMSG_HDRLEN + sizeof code)
            std::memcpy(&code, bytes.data() + NLMSG_HDRLEN, sizeof code);
          return -code;
        }
        act(bytes.first(header.nlmsg_len));
        bytes = bytes.subspan(std::min<std::size_t>(bytes.size(), NLMSG_ALIGN(header.nlmsg_len)));
      }
    }
  }

 private:
  explicit Netlink(UniqueFd socket) : socket_(std::move(socket)), buffer_(kBufferSize) {}

  UniqueFd socket_;
  std::vector<std::uint8_t> buffer_;
};

Result<std::vector<Found>> stale_entries(Netlink& netlink, const network::FlowCheck& check) {
  std::vector<Found> stale;
  std::size_t read = 0;
  SPILLWAY_TRY_VOID(netlink.send(request(IPCTNL_MSG_CT_GET, NLM_F_DUMP, AF_UNSPEC, {})));
  SPILLWAY_TRY(code, netlink.receive([&](Octets message) {
    if (++read > kEntriesMax) return;
    auto found = udp_entry(message);
    if (found && check.is_stale(found->flow)) stale.push_back(*std::move(found));
  }));
  if (code != 0) return errno_error("connection table", code);
  return stale;
}

}  // namespace

Result<std::size_t> delete_stale_flows(const network::FlowCheck& check) {
  if (check.empty()) return std::size_t{0};
  SPILLWAY_TRY(netlink, Netlink::open());
  SPILLWAY_TRY(stale, stale_entries(netlink, check));
  std::size_t deleted = 0;
  for (const Found& each : stale) {
    SPILLWAY_TRY_VOID(netlink.send(request(IPCTNL_MSG_CT_DELETE, NLM_F_ACK, each.family, each.identity)));
    SPILLWAY_TRY(code, netlink.receive([](Octets) {}));
    if (code != 0 && code != ENOENT) return errno_error("connection table", code);
    if (code == 0) ++deleted;
  }
  return deleted;
}

}  // namespace spillway::host
