#include "policy/checkup/runtime_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

namespace spillway::checkup {
namespace {

constexpr std::string_view kPlugins = "containernetworking-plugins";

std::string packages_text(const std::vector<std::string>& packages) {
  return fmt::format("{}", fmt::join(packages, " "));
}

Result<RuntimeChoice> use_socket(const RuntimeFacts& facts) {
  if (!facts.configured.empty())
    return invalid("--runtime", "the configuration of the node names a socket already ({}); give one of the two",
                   facts.configured);
  return RuntimeChoice{.kind = RuntimeKind::kSocket,
                       .reason = RuntimeReason::kWished,
                       .socket = "unix://" + facts.wished_socket,
                       .missing = {},
                       .running_socket = {}};
}

Result<RuntimeChoice> use_own_containerd(const RuntimeFacts& facts, RuntimeReason reason) {
  if (!facts.configured.empty())
    return invalid("--runtime", "the configuration of the node names a socket ({}); leave it out for containerd",
                   facts.configured);
  if (!facts.is_root) return invalid("--runtime", "containerd needs root; start it as root, or with --runtime process");
  RuntimeChoice choice{.kind = RuntimeKind::kOwnContainerd,
                       .reason = reason,
                       .socket = {},
                       .missing = missing_packages(facts),
                       .running_socket = facts.running_socket};
  const bool has_programs = !facts.containerd.empty() && !facts.shim.empty() && !facts.low_level.empty();
  if (!has_programs)
    return invalid("--runtime", "containerd is not complete on this machine; install it: apt install {}",
                   packages_text(choice.missing));
  return choice;
}

RuntimeChoice use_processes(const RuntimeFacts& facts, RuntimeReason reason) {
  return {.kind = RuntimeKind::kProcess,
          .reason = reason,
          .socket = {},
          .missing = missing_packages(facts),
          .running_socket = facts.running_socket};
}

Result<RuntimeChoice> choose_by_itself(const RuntimeFacts& facts) {
  if (!facts.configured.empty())
    return RuntimeChoice{.kind = RuntimeKind::kSocket,
                         .reason = RuntimeReason::kConfigured,
                         .socket = facts.configured,
                         .missing = {},
                         .running_socket = {}};
  if (!missing_packages(facts).empty()) return use_processes(facts, RuntimeReason::kNotInstalled);
  if (!facts.is_root) return use_processes(facts, RuntimeReason::kNotRoot);
  return use_own_containerd(facts, RuntimeReason::kInstalled);
}

}  // namespace

std::vector<std::string> missing_packages(const RuntimeFacts& facts) {
  std::vector<std::string> packages;
  if (facts.containerd.empty() || facts.shim.empty()) packages.emplace_back("containerd");
  if (facts.plugins_directory.empty()) packages.emplace_back(kPlugins);
  if (facts.low_level.empty()) packages.emplace_back("runc");
  return packages;
}

Result<RuntimeChoice> choose_runtime(const RuntimeFacts& facts) {
  switch (facts.wish) {
    case RuntimeWish::kSocket:
      return use_socket(facts);
    case RuntimeWish::kContainerd:
      return use_own_containerd(facts, RuntimeReason::kWished);
    case RuntimeWish::kProcess:
      if (!facts.configured.empty())
        return invalid("--runtime", "the configuration of the node names a socket ({}); leave it out for processes",
                       facts.configured);
      return use_processes(facts, RuntimeReason::kWished);
    case RuntimeWish::kAuto:
      return choose_by_itself(facts);
  }
  std::unreachable();
}

std::string advice_of(const RuntimeChoice& choice) {
  switch (choice.reason) {
    case RuntimeReason::kNotRoot:
      return "start it as root: then pods run images";
    case RuntimeReason::kNotInstalled:
      if (!choice.running_socket.empty())
        return fmt::format("start with --runtime {}, which runs already: then pods run images", choice.running_socket);
      return fmt::format("apt install {}, then start again: pods run images", packages_text(choice.missing));
    case RuntimeReason::kWished:
      if (choice.kind != RuntimeKind::kOwnContainerd || choice.missing.empty()) return {};
      return fmt::format("apt install {}: until then only pods with hostNetwork start", packages_text(choice.missing));
    case RuntimeReason::kConfigured:
    case RuntimeReason::kInstalled:
      return {};
  }
  std::unreachable();
}

std::string sentence_of(const RuntimeChoice& choice) {
  std::string text;
  switch (choice.kind) {
    case RuntimeKind::kProcess:
      text = "pods are processes";
      break;
    case RuntimeKind::kOwnContainerd:
      text = "pods are containers in a containerd of this process";
      break;
    case RuntimeKind::kSocket:
      text = "pods are containers in the runtime at " + choice.socket;
      break;
  }
  switch (choice.reason) {
    case RuntimeReason::kWished:
      return text + ": a flag says so";
    case RuntimeReason::kConfigured:
      return text + ": the configuration of the node names it";
    case RuntimeReason::kInstalled:
      return text + ": it is installed";
    case RuntimeReason::kNotRoot:
      return text + ": containers need root";
    case RuntimeReason::kNotInstalled:
      return fmt::format("{}: {} not installed", text, packages_text(choice.missing));
  }
  std::unreachable();
}

}  // namespace spillway::checkup
