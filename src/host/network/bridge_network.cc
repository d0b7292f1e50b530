#include "host/network/bridge_network.h"

#include "api/json/json.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/unique_fd.h"
#include "host/kernel/kernel_file.h"
#include "host/network/plugin_call.h"
#include "policy/network/addresses.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace spillway::host {

namespace {

using api::Json;

constexpr std::string_view kPlugins[] = {"bridge", "host-local", "portmap"};
constexpr std::string_view kFile = "10-spillway.conflist";
/// Packets between two pods of one bridge must pass the rules of Services, or answers would not come from the Service.
constexpr const char* kBridgeCalls[] = {"/proc/sys/net/bridge/bridge-nf-call-iptables",
                                        "/proc/sys/net/bridge/bridge-nf-call-ip6tables"};
/// The kernel passes packets from one device to another only where this is 1; the plug-in bridge sets it.
constexpr const char* kForwarding = "/proc/sys/net/ipv4/ip_forward";
constexpr const char* kModprobe[] = {"/usr/sbin/modprobe", "/sbin/modprobe"};

bool is_program(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0;
}

void load_bridge_filter() {
  for (const char* const program : kModprobe) {
    if (!is_program(program)) continue;
    ignored(call_plugin({.program = program, .arguments = {"br_netfilter"}, .time_max = seconds(5)}),
            "its file says if it is there");
    return;
  }
}

/// The plug-ins bridge and portmap call it.
bool has_iptables(std::string_view left) {
  while (true) {
    const std::size_t colon = left.find(':');
    if (is_program(fmt::format("{}/iptables", left.substr(0, colon)))) return true;
    if (colon == std::string_view::npos) return false;
    left.remove_prefix(colon + 1);
  }
}

Result<ifreq> request_for(const std::string& device) {
  ifreq request = {};
  if (device.size() >= sizeof request.ifr_name) return invalid(device, "it is too long for the name of a device");
  std::memcpy(request.ifr_name, device.data(), device.size());
  return request;
}

/// An address in network order; 0: none.
std::uint32_t ipv4_of(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1 ? address.s_addr : 0;
}

Outcome set_ipv4(int socket, unsigned long what, ifreq request, std::uint32_t value) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = value;
  std::memcpy(&request.ifr_addr, &address, sizeof address);
  return ::ioctl(socket, what, &request) == 0 ? Outcome() : Outcome(errno_error(request.ifr_name, errno));
}

/// A bridge has the lowest hardware address among its ports until one is set. Pods cache the address of their gateway,
/// and would send to a wrong one each time that a port is added or removed.
Outcome keep_hardware_address(int socket, ifreq request) {
  const auto failed = [&request] { return errno_error(request.ifr_name, errno); };
  if (::ioctl(socket, SIOCGIFHWADDR, &request) != 0) return failed();
  return ::ioctl(socket, SIOCSIFHWADDR, &request) == 0 ? Outcome() : Outcome(failed());
}

}  // namespace

std::string bridge_name(std::string_view instance, std::string_view node) {
  return fmt::format("spill{:08x}", static_cast<std::uint32_t>(fnv1a64(node, fnv1a64(instance))));
}

std::string bridge_list(const BridgeNetwork& network) {
  Json ranges = Json::array();
  for (const std::string& each : network.ranges) {
    ranges.if_array()->push_back(Json::array({Json::object({{"subnet", each}})}));
  }
  const Json bridge = Json::object({{"type", "bridge"},
                                    {"bridge", network.bridge},
                                    {"isDefaultGateway", true},
                                    {"ipMasq", true},
                                    {"hairpinMode", true},
                                    {"ipam", Json::object({{"type", "host-local"},
                                                           {"dataDir", network.directory + "/addresses"},
                                                           {"ranges", std::move(ranges)}})}});
  const Json portmap =
      Json::object({{"type", "portmap"}, {"snat", true}, {"capabilities", Json::object({{"portMappings", true}})}});
  return api::to_text(
      Json::object({{"cniVersion", "0.4.0"}, {"name", "spillway"}, {"plugins", Json::array({bridge, portmap})}}));
}

Outcome write_bridge_network(const BridgeNetwork& network) {
  SPILLWAY_TRY_VOID(make_directories(network.directory));
  const std::string file = fmt::format("{}/{}", network.directory, kFile);
  const std::string text = bridge_list(network);
  const Result<std::string> written = read_file(file);
  if (written && *written == text) return {};
  return replace_file(file, text);
}

std::optional<std::string> gateway_of(std::string_view range) {
  const auto parsed = api::parse_ip_range(range);
  if (!parsed) return std::nullopt;
  api::IpAddress gateway = network::masked(*parsed).first;
  gateway.octets.back() |= 1;
  return network::text_of(gateway);
}

Outcome make_bridge(const BridgeNetwork& network) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("socket", errno);
  SPILLWAY_TRY(request, request_for(network.bridge));
  if (::ioctl(socket.get(), SIOCBRADDBR, network.bridge.c_str()) != 0 && errno != EEXIST)
    return errno_error(network.bridge, errno);
  SPILLWAY_TRY_VOID(keep_hardware_address(socket.get(), request));
  for (const std::string& range : network.ranges) {
    const auto gateway = gateway_of(range);
    if (!gateway || gateway->contains(':')) continue;
    const int bits = api::parse_ip_range(range)->prefix_bits;
    SPILLWAY_TRY_VOID(set_ipv4(socket.get(), SIOCSIFADDR, request, ipv4_of(*gateway)));
    SPILLWAY_TRY_VOID(
        set_ipv4(socket.get(), SIOCSIFNETMASK, request, htonl(bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits))));
  }
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return errno_error(network.bridge, errno);
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return errno_error(network.bridge, errno);
  return {};
}

Outcome remove_bridge(const std::string& name) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("socket", errno);
  SPILLWAY_TRY(request, request_for(name));
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) {
    return errno == ENODEV ? Outcome() : Outcome(errno_error(name, errno));
  }
  request.ifr_flags = static_cast<short>(request.ifr_flags & ~IFF_UP);
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return errno_error(name, errno);
  if (::ioctl(socket.get(), SIOCBRDELBR, name.c_str()) != 0) return errno_error(name, errno);
  return {};
}

std::vector<std::string> plugin_directories(const std::string& given) {
  if (!given.empty()) return {given};
  return {"/opt/cni/bin", "/usr/lib/cni"};
}

Outcome filter_bridges() {
  if (::access(kBridgeCalls[0], F_OK) != 0) load_bridge_filter();
  for (const char* const file : kBridgeCalls) {
    const Result<std::string> value = read_file(file);
    if (!value) {
      return make_error(ErrorCode::kNotFound,
                        "the kernel does not show packets of bridges to nftables (run: modprobe br_netfilter)");
    }
    if (value->starts_with('0')) SPILLWAY_TRY_VOID(write_file_at(AT_FDCWD, file, "1"));
  }
  return {};
}

Outcome check_bridge_network(const std::vector<std::string>& directories, const std::string& program_path) {
  if (::geteuid() != 0) return make_error(ErrorCode::kForbidden, "this process is not root");
  for (const std::string_view plugin : kPlugins) {
    bool found = false;
    for (const std::string& directory : directories)
      found = found || is_program(fmt::format("{}/{}", directory, plugin));
    if (!found) {
      return make_error(ErrorCode::kNotFound, "there is no CNI plug-in {} (install containernetworking-plugins)",
                        plugin);
    }
  }
  if (!has_iptables(program_path))
    return make_error(ErrorCode::kNotFound, "there is no program iptables (install iptables)");
  const Result<std::string> forwards = read_file(kForwarding);
  const bool can_forward = forwards && (forwards->starts_with('1') || ::access(kForwarding, W_OK) == 0);
  if (!can_forward) {
    return make_error(ErrorCode::kForbidden,
                      "{} is not 1 and cannot be written here (on the machine: sysctl -w net.ipv4.ip_forward=1)",
                      kForwarding);
  }
  return {};
}

}  // namespace spillway::host
