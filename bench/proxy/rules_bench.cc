// The cost of the packet rules of many Services with ten endpoints each: the first ruleset, and the change of one
// endpoint. "Compute": from objects to the text of the transaction. "Load": the same with nft and the kernel, in a
// network namespace of this process; without the rights for one, it is left out. Times are processor time of this
// process and of nft, without the kernel's own threads; "resident_bytes": what the objects and the rules take here.
#include "host/network/plugin_call.h"
#include "policy/network/frame_rules.h"
#include "policy/network/nft_text.h"

#include "proxy/service_table.h"
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace spillway::proxy {
namespace {

constexpr int kEndpoints = 10;
constexpr std::size_t kServicesInStep = 200;  // as ServiceProxy does
constexpr network::Family kFamilies[] = {network::Family::kIPv4};

std::string service_name(int number) {
  return fmt::format("app-{:05}", number);
}

ServicePtr service(int number) {
  api::ProxiedService made;
  made.metadata.ns = "default";
  made.metadata.name = service_name(number);
  made.type = "ClusterIP";
  made.cluster_ip = fmt::format("10.96.{}.{}", 1 + number / 250, 1 + number % 250);
  made.cluster_ips = {made.cluster_ip};
  made.ip_families = {"IPv4"};
  made.ports = {{.name = "http", .protocol = "TCP", .port = 80}};
  return std::make_shared<const api::ProxiedService>(std::move(made));
}

network::SlicePtr slice(int number, int endpoints) {
  api::EndpointSlice made;
  made.metadata.ns = "default";
  made.metadata.name = service_name(number) + "-1";
  made.metadata.labels = {{std::string(network::kServiceNameLabel), service_name(number)}};
  made.address_type = "IPv4";
  made.ports = {{.name = "http", .protocol = "TCP", .port = 8080, .app_protocol = {}}};
  for (int i = 0; i < endpoints; ++i) {
    const int host = number * kEndpoints + i;
    api::SliceEndpoint endpoint;
    endpoint.addresses = {fmt::format("10.{}.{}.{}", 128 + host / 62'500, host / 250 % 250, 1 + host % 250)};
    endpoint.ready = true;
    endpoint.node_name = fmt::format("n{}", i);
    made.endpoints.push_back(std::move(endpoint));
  }
  return std::make_shared<const api::EndpointSlice>(std::move(made));
}

/// A table that has read `services` of them and worked nothing out.
std::unique_ptr<ServiceTable> table_of(int services) {
  auto table = std::make_unique<ServiceTable>(kFamilies, "n0");
  table->set_settings({{.family = network::Family::kIPv4}});
  for (int i = 0; i < services; ++i) {
    table->on_service(nullptr, service(i));
    table->on_slice(nullptr, slice(i, kEndpoints));
  }
  return table;
}

std::string commands_of(ServiceTable& table) {
  while (!table.update(kServicesInStep)) {
  }
  std::string text;
  for (const network::RuleChange& change : table.take_changes(Instant{})) text += network::change_text(change);
  return text;
}

double seconds_of(int who) {
  rusage used{};
  getrusage(who, &used);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

double processor_seconds() {
  return seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN);
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

bool load(const std::string& commands) {
  const auto answer = host::call_plugin({.program = "/usr/sbin/nft", .arguments = {"-f", "-"}, .input = commands});
  return answer && answer->code == 0;
}

/// Moves this process into a new network namespace, which ends with it.
bool has_own_network() {
  static const bool entered = ::unshare(CLONE_NEWNET) == 0;
  return entered;
}

enum class To : std::uint8_t { kText, kKernel };

bool carried_out(To to, const std::string& commands) {
  return to == To::kText || load(commands);
}

void first_ruleset(benchmark::State& state, To to) {
  if (to == To::kKernel && !has_own_network()) return state.SkipWithError("no right to make a network namespace");
  for (auto each : state) {
    (void)each;
    if (to == To::kKernel) (void)load(network::removal_text(network::Family::kIPv4));
    const double empty = resident_bytes();
    const auto table = table_of(static_cast<int>(state.range(0)));
    const double began = processor_seconds();
    const std::string commands = commands_of(*table);
    if (!carried_out(to, commands)) return state.SkipWithError("nft refused the rules");
    state.SetIterationTime(processor_seconds() - began);
    state.counters["resident_bytes"] = resident_bytes() - empty;
    state.counters["text_bytes"] = static_cast<double>(commands.size());
  }
}

/// Removes one endpoint, and adds it again in the next round.
void one_endpoint(benchmark::State& state, To to) {
  if (to == To::kKernel && !has_own_network()) return state.SkipWithError("no right to make a network namespace");
  const auto services = static_cast<int>(state.range(0));
  const auto table = table_of(services);
  if (to == To::kKernel) (void)load(network::removal_text(network::Family::kIPv4));
  if (!carried_out(to, commands_of(*table))) return state.SkipWithError("nft refused the rules");
  const network::SlicePtr with = slice(services / 2, kEndpoints);
  const network::SlicePtr without = slice(services / 2, kEndpoints - 1);
  bool has = true;
  for (auto each : state) {
    (void)each;
    const double began = processor_seconds();
    table->on_slice(has ? with : without, has ? without : with);
    has = !has;
    if (!carried_out(to, commands_of(*table))) return state.SkipWithError("nft refused the rules");
    state.SetIterationTime(processor_seconds() - began);
  }
}

BENCHMARK_CAPTURE(first_ruleset, Compute, To::kText)
    ->Arg(500)
    ->Arg(5'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(first_ruleset, Load, To::kKernel)
    ->Arg(500)
    ->Arg(5'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(one_endpoint, Compute, To::kText)
    ->Arg(500)
    ->Arg(5'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(one_endpoint, Load, To::kKernel)
    ->Arg(500)
    ->Arg(5'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spillway::proxy
