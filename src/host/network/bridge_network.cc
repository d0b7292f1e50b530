#include "host/network/bridge_network.h"

#include "api/json/json.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/unique_fd.h"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <net/if.h>
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

bool is_program(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0;
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

Outcome remove_bridge(const std::string& name) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("socket", errno);
  ifreq request = {};
  if (name.size() >= sizeof request.ifr_name) return invalid(name, "it is too long for the name of a device");
  std::memcpy(request.ifr_name, name.data(), name.size());
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
  return {};
}

}  // namespace spillway::host
