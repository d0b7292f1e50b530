#include "host/netfilter/rule_loader.h"

#include "host/netfilter/connection_table.h"
#include "host/network/plugin_call.h"
#include "policy/network/addresses.h"
#include "policy/network/frame_rules.h"
#include "policy/network/nft_text.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <utility>

namespace spillway::host {
namespace {

/// The usual places of nft.
constexpr std::array kPrograms{"/usr/sbin/nft", "/sbin/nft", "/usr/local/sbin/nft", "/usr/bin/nft"};

/// The path of nft; empty: it is not installed.
std::string find_nft() {
  for (const char* const program : kPrograms) {
    if (::access(program, X_OK) == 0) return program;
  }
  return {};
}

/// The first error of a report of nft.
std::string first_error(std::string_view text) {
  const std::size_t begin = text.find("Error: ");
  if (begin == std::string_view::npos) return "nftables refused the rules";
  const std::size_t end = text.find('\n', begin);
  return std::string(text.substr(begin + 7, end == std::string_view::npos ? end : end - begin - 7));
}

Error explained(const std::string& what) {
  if (what.find("Operation not permitted") != std::string::npos) {
    return make_error(ErrorCode::kForbidden,
                      "nftables: {}: CAP_NET_ADMIN in the network namespace is needed: run as root", what);
  }
  if (what.find("Operation not supported") != std::string::npos ||
      what.find("Protocol not supported") != std::string::npos) {
    return make_error(
        ErrorCode::kInternalError,
        "nftables: {}: the kernel lacks nf_tables, NAT or connection tracking: load the modules nf_tables, "
        "nft_chain_nat and nf_conntrack, or use a kernel from 5.13",
        what);
  }
  return make_error(ErrorCode::kInternalError, "nftables: {}", what);
}

enum class Mode { kLoad, kCheck };

Outcome run_commands(std::string commands, Mode mode = Mode::kLoad) {
  const std::string nft = find_nft();
  if (nft.empty()) {
    return make_error(ErrorCode::kNotFound, "nftables: the program nft is not installed: install the package nftables");
  }
  PluginCall call{.program = nft, .arguments = {"-f", "-"}, .input = std::move(commands)};
  if (mode == Mode::kCheck) call.arguments.insert(call.arguments.begin(), "-c");
  const Result<PluginAnswer> answer = call_plugin(call);
  if (!answer) return make_error(answer.error().code, "nftables: {}", answer.error().text());
  if (answer->code == 0) return {};
  return explained(first_error(answer->errors));
}

std::vector<std::string> interface_addresses() {
  std::vector<std::string> out;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return out;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const int family = each->ifa_addr->sa_family;
    const void* address = nullptr;
    if (family == AF_INET) address = &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
    if (family == AF_INET6) address = &reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;
    if (address != nullptr && inet_ntop(family, address, text.data(), text.size()) != nullptr) {
      out.emplace_back(text.data());
    }
  }
  freeifaddrs(list);
  return out;
}

}  // namespace

void RuleLoader::load(std::vector<network::RuleChange> changes, std::function<void(Outcome)> done) {
  const bool queued = thread_.submit([changes = std::move(changes), done]() -> runtime::Loop::Task {
    std::string commands;
    for (const network::RuleChange& change : changes) commands += network::change_text(change);
    return [done, outcome = run_commands(commands)] { done(outcome); };
  });
  if (!queued) done(make_error(ErrorCode::kServiceUnavailable, "nftables: too many changes are waiting to be loaded"));
}

void RuleLoader::remove(std::function<void(Outcome)> done) {
  const bool queued =
      thread_.submit([done]() -> runtime::Loop::Task { return [done, outcome = remove_rules()] { done(outcome); }; });
  if (!queued) done(make_error(ErrorCode::kServiceUnavailable, "nftables: too many changes are waiting to be loaded"));
}

void RuleLoader::delete_flows(std::shared_ptr<const network::FlowCheck> check,
                              std::function<void(Result<std::size_t>)> done) {
  // If the queue is full, the next change of endpoints submits the check again.
  (void)thread_.submit([check = std::move(check), done = std::move(done)]() -> runtime::Loop::Task {
    return [done, deleted = delete_stale_flows(*check)] { done(deleted); };
  });
}

void RuleLoader::read_addresses(std::function<void(std::vector<std::string>)> done) {
  (void)thread_.submit([done = std::move(done)]() -> runtime::Loop::Task {
    return [done, addresses = interface_addresses()] { done(addresses); };
  });
}

Outcome check_netfilter() {
  network::RuleBook book(network::Family::kIPv4);
  book.put({}, network::frame_rules({}));
  return run_commands(network::change_text(book.take(Instant{})), Mode::kCheck);
}

Outcome remove_rules() {
  return run_commands(network::removal_text(network::Family::kIPv4) + network::removal_text(network::Family::kIPv6));
}

}  // namespace spillway::host
