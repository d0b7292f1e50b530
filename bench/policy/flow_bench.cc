// The classification of requests by flow schemas: with the built-in ones alone, with up to as many more as a server
// takes, and with as many words in their rules. `others`: schemas about other users, which the table passes over;
// `everyone`: schemas about every client, each of which is compared and does not match. Only ratios within one run mean
// anything.
#include "policy/flow/built_in.h"
#include "policy/flow/flow_table.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace spillway::flow {
namespace {

constexpr std::size_t kVerbs = 4;

/// A rule of `words` words that matches no request of this bench.
ResourceRule idle_rule(std::size_t words) {
  ResourceRule rule{.verbs = {"get", "list", "watch", "update"},
                    .groups = {"*"},
                    .resources = {},
                    .namespaces = {"*"},
                    .cluster_scope = true};
  for (std::size_t i = 0; i + kVerbs + 3 < words; ++i) rule.resources.push_back("gadgets-" + std::to_string(i));
  return rule;
}

/// The built-in schemas and `count` more ahead of them, within the bounds of a server.
FlowTable table_of(std::size_t count, bool about_everyone) {
  Configuration configuration = built_in_configuration();
  std::size_t words = 0;
  for (const Schema& schema : configuration.schemas) words += words_of(schema);
  const std::size_t share = count == 0 ? 0 : std::min(kSchemaWordsMax, (kWordsMax - words) / count);
  for (std::size_t i = 0; i < count; ++i) {
    const Subject subject = about_everyone ? Subject{.kind = Subject::Kind::kGroup, .name = "*"}
                                           : Subject{.kind = Subject::Kind::kUser, .name = "user-" + std::to_string(i)};
    configuration.schemas.push_back({.name = "added-" + std::to_string(i),
                                     .precedence = 1,
                                     .level = "workload-low",
                                     .by = FlowBy::kUser,
                                     .rules = {{.subjects = {subject}, .resources = {idle_rule(share)}}}});
  }
  if (!arrange(configuration)) std::abort();
  return FlowTable(std::move(configuration));
}

struct Client {
  std::string user;
  std::vector<std::string> groups;
};

Asked reads_pods(const Client& client) {
  return {.user = client.user,
          .groups = client.groups,
          .is_resource = true,
          .verb = "list",
          .group = "",
          .resource = "pods",
          .subresource = "",
          .ns = "shop",
          .path = "/api/v1/namespaces/shop/pods"};
}

void classify(benchmark::State& state, bool about_everyone) {
  const FlowTable table = table_of(static_cast<std::size_t>(state.range(0)), about_everyone);
  const std::vector<Client> clients = {
      {"system:serviceaccount:shop:front",
       {"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"}},
      {"alice", {"developers", "system:authenticated"}},
      {"system:node:n1", {"system:nodes", "system:authenticated"}},
      {"system:kube-controller-manager", {"system:authenticated"}},
  };
  std::vector<Asked> requests;
  for (const Client& client : clients) requests.push_back(reads_pods(client));
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(table.classify(requests[i++ % requests.size()]));
}

constexpr auto kMost = static_cast<int>(kSchemasMax) - 20;  // beside the built-in ones

BENCHMARK_CAPTURE(classify, others, false)->Arg(0)->Arg(10)->Arg(100)->Arg(kMost);
BENCHMARK_CAPTURE(classify, everyone, true)->Arg(0)->Arg(10)->Arg(100)->Arg(kMost);

}  // namespace
}  // namespace spillway::flow
