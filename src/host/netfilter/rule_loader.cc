#include "host/netfilter/rule_loader.h"

#include "host/netfilter/connection_table.h"
#include "policy/network/addresses.h"
#include "policy/network/frame_rules.h"
#include "policy/network/nft_text.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <nftables/libnftables.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace spillway::host {
namespace {

using Context = std::unique_ptr<nft_ctx, decltype(&nft_ctx_free)>;

/// The last line of a report of libnftables that says what is wrong: the first that begins with "Error:".
std::string first_error(const char* report) {
  const std::string_view text = report == nullptr ? "" : report;
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

Outcome run_commands(const std::string& commands, bool dry = false) {
  const Context context(nft_ctx_new(NFT_CTX_DEFAULT), &nft_ctx_free);
  if (!context) return make_error(ErrorCode::kInternalError, "nftables: no context: out of memory");
  nft_ctx_buffer_error(context.get());
  nft_ctx_buffer_output(context.get());
  nft_ctx_set_dry_run(context.get(), dry);
  if (nft_run_cmd_from_buffer(context.get(), commands.c_str()) == 0) return {};
  return explained(first_error(nft_ctx_get_error_buffer(context.get())));
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
  if (!queued) done(make_error(ErrorCode::kServiceUnavailable, "nftables: too many changes wait"));
}

void RuleLoader::remove(std::function<void(Outcome)> done) {
  const bool queued =
      thread_.submit([done]() -> runtime::Loop::Task { return [done, outcome = remove_rules()] { done(outcome); }; });
  if (!queued) done(make_error(ErrorCode::kServiceUnavailable, "nftables: too many changes wait"));
}

void RuleLoader::delete_flows(std::shared_ptr<const network::FlowJudge> judge,
                              std::function<void(Result<std::size_t>)> done) {
  // A full queue: the next change of endpoints asks again.
  (void)thread_.submit([judge = std::move(judge), done = std::move(done)]() -> runtime::Loop::Task {
    return [done, deleted = delete_stale_flows(*judge)] { done(deleted); };
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
  return run_commands(network::change_text(book.take(Instant{})), /*dry=*/true);
}

Outcome remove_rules() {
  return run_commands(network::removal_text(network::Family::kIPv4) + network::removal_text(network::Family::kIPv6));
}

}  // namespace spillway::host
