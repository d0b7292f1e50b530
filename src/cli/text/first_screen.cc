#include "cli/text/first_screen.h"

#include "base/bytes_text.h"
#include "base/utf8.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace spillway::cli {
namespace {

constexpr std::size_t kNamesMax = 3;  // names of nodes; the rest is counted

/// A word as a shell takes it.
std::string quoted(const std::string& word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("_./-+:@%,=").contains(c);
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// "1.36" of "v1.36.0".
std::string_view minor_version(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  const std::size_t dot = version.find('.');
  return dot == std::string_view::npos ? version : version.substr(0, version.find('.', dot + 1));
}

std::string count_of(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string nodes_text(const FirstScreen& screen) {
  if (screen.nodes.empty()) return "API server without nodes";
  const std::size_t shown = std::min(screen.nodes.size(), kNamesMax);
  return fmt::format("{} ({}{}, {} of memory{})", count_of(screen.nodes.size(), "node"),
                     fmt::join(screen.nodes.begin(), screen.nodes.begin() + static_cast<std::ptrdiff_t>(shown), " "),
                     shown < screen.nodes.size() ? " ..." : "", bytes_text(static_cast<double>(screen.memory.count())),
                     screen.nodes.size() > 1 ? " each" : "");
}

}  // namespace

std::string first_screen(const FirstScreen& screen, Paint paint) {
  const bool paints = paint == Paint::kTerminal;
  const std::string kubeconfig = quoted(screen.kubeconfig);
  std::string runtime;
  if (!screen.nodes.empty() && screen.container_runtime.empty()) runtime = ", processes as pods (no images)";
  if (!screen.container_runtime.empty()) runtime = ", pods in " + screen.container_runtime;
  std::string text =
      fmt::format("{}Ready{}: {}, Kubernetes {}{}.\n\n", paints ? "\x1b[1;32m" : "", paints ? "\x1b[0m" : "",
                  nodes_text(screen), minor_version(screen.kubernetes), runtime);
  const auto add = [&](std::string_view heading, const std::string& line) {
    text += fmt::format("  {}{:<9}{}  {}\n", paints ? "\x1b[1m" : "", heading, paints ? "\x1b[0m" : "", line);
  };
  if (screen.by_sudo) {
    add("Use", fmt::format("sudo KUBECONFIG={} kubectl get pods -A", kubeconfig));
  } else {
    add("Use", fmt::format("export KUBECONFIG={}", kubeconfig));
    add("", "kubectl get pods -A");
  }
  add("Dashboard",
      fmt::format("{}{} dashboard --kubeconfig {}", screen.by_sudo ? "sudo " : "", quoted(screen.program), kubeconfig));
  if (!screen.advice.empty()) add("Images", screen.advice);
  if (!screen.other_runtime.empty())
    add("", fmt::format("{} runs as well and is left alone (--runtime SOCKET uses it)", screen.other_runtime));
  if (!screen.pod_network.empty()) add("Network", screen.pod_network);
  if (!screen.storage.empty()) add("Storage", screen.storage);
  if (!screen.no_services.empty()) add("Services", screen.no_services);
  add("Stop", screen.pods_run_on ? "Ctrl-C (the pods keep running, and the next start takes them over)"
                                 : "Ctrl-C (ends the pods)");
  add("Log", "start with --log-level info to see it here");
  return text;
}

std::string waiting_line(std::string_view node, const std::optional<std::string>& node_message) {
  std::string why = node_message ? printable(*node_message) : "it has not registered yet";
  std::ranges::replace(why, '\n', ' ');
  return fmt::format("Waiting for node {}: {}\n", node, why.empty() ? "it is not ready yet" : why);
}

std::string stopping_line(std::size_t pods, bool pods_run_on) {
  if (pods == 0) return "Stopping.\n";
  if (!pods_run_on)
    return fmt::format("Stopping: ending {}. Ctrl-C again does not wait for them.\n", count_of(pods, "pod"));
  return fmt::format("Stopping: {} {} on, and the next start takes {} over.\n", count_of(pods, "pod"),
                     pods == 1 ? "runs" : "run", pods == 1 ? "it" : "them");
}

}  // namespace spillway::cli
