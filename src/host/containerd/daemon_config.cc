#include "host/containerd/daemon_config.h"

#include "api/json/json.h"

#include <fmt/format.h>

#include <cstddef>

namespace spillway::host {
namespace {

constexpr std::size_t kSocketPathMax = 107;  // the limit of sockaddr_un, without the NUL
constexpr std::string_view kLongestSuffix = ".ttrpc";

/// A basic string of TOML.
std::string toml_string(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      made += '\\';
      made += c;
    } else if (code < 0x20 || code == 0x7f) {
      made += fmt::format("\\u{:04X}", code);
    } else {
      made += c;
    }
  }
  return made + "\"";
}

}  // namespace

Outcome check_places(const DaemonPlaces& places) {
  const std::size_t longest = places.socket().size() + kLongestSuffix.size();
  if (longest <= kSocketPathMax) return {};
  return invalid("--data-dir",
                 "the path of containerd's socket has {} bytes, expected at most {}; choose a shorter one", longest,
                 kSocketPathMax);
}

std::string daemon_config(const DaemonPlaces& places, const DaemonSettings& settings) {
  constexpr std::string_view kCri = "[plugins.\"io.containerd.grpc.v1.cri\"";
  std::string text = "# Written by spillway up at each start: changes are lost.\nversion = 2\n";
  const auto add = [&text](std::string_view key, const std::string& value) {
    text += fmt::format("{} = {}\n", key, value);
  };
  add("root", toml_string(places.root()));
  add("state", toml_string(places.state()));
  add("temp", toml_string(places.temporary()));
  // The first makes /opt/containerd; the others need file systems and devices that a node here does not use.
  add("disabled_plugins",
      R"(["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", )"
      R"("io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"])");
  text += "\n[debug]\n";
  add("level", toml_string("warn"));
  text += "\n[grpc]\n";
  add("address", toml_string(places.socket()));
  text += "\n[ttrpc]\n";
  add("address", toml_string(places.socket() + std::string(kLongestSuffix)));
  text += fmt::format("\n{}]\n", kCri);
  add("sandbox_image", toml_string(settings.sandbox_image));
  add("stream_server_address", toml_string("127.0.0.1"));
  add("stream_server_port", toml_string("0"));
  add("stats_collect_period", "1");
  add("netns_mounts_under_state_dir", "true");
  add("restrict_oom_score_adj", settings.lowers_oom_scores ? "false" : "true");
  text += fmt::format("\n{}.cni]\n", kCri);
  add("conf_dir", toml_string(settings.cni_configuration));
  add("bin_dir", toml_string(settings.cni_programs));
  text += fmt::format("\n{}.containerd]\n", kCri);
  add("snapshotter", toml_string(settings.snapshotter));
  add("default_runtime_name", toml_string("runc"));
  text += fmt::format("\n{}.containerd.runtimes.runc]\n", kCri);
  add("runtime_type", toml_string("io.containerd.runc.v2"));
  text += fmt::format("\n{}.containerd.runtimes.runc.options]\n", kCri);
  add("BinaryName", toml_string(settings.low_level));
  add("Root", toml_string(places.state() + "/runc"));
  add("SystemdCgroup", "false");
  return text;
}

std::string fallback_network(std::string_view leases) {
  using api::Json;
  const Json addresses =
      Json::object({{"type", "host-local"},
                    {"dataDir", std::string(leases)},
                    {"ranges", Json::array({Json::array({Json::object({{"subnet", "10.244.0.0/24"}})})})},
                    {"routes", Json::array({Json::object({{"dst", "0.0.0.0/0"}})})}});
  const Json network = Json::object({{"cniVersion", "0.4.0"},
                                     {"name", "spillway"},
                                     {"plugins", Json::array({Json::object({{"type", "ptp"}, {"ipam", addresses}})})}});
  return api::to_text(network) + "\n";
}

}  // namespace spillway::host
