#include "agent/containers/container_env.h"
#include "agent/containers/pod_resources.h"
#include "agent/contract/kill_grace.h"
#include "agent/pod_state/pod_worker.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace spillway::agent {
namespace {

TEST(Expand, FollowsTheRulesOfReferences) {
  const Environment variables{{"A", "1"}, {"B", "2"}, {"EMPTY", ""}};

  struct Row {
    std::string_view text;
    std::string_view want;
  };

  for (const Row& row : {Row{"$(A)", "1"}, Row{"x$(A)y$(B)z", "x1y2z"}, Row{"$$(A)", "$(A)"}, Row{"$$$(A)", "$1"},
                         Row{"$(C)", "$(C)"}, Row{"$(A", "$(A"}, Row{"$A", "$A"}, Row{"$", "$"}, Row{"$$", "$"},
                         Row{"", ""}, Row{"$(EMPTY)", ""}, Row{"$()", "$()"}, Row{"$(A)$(B", "1$(B"},
                         Row{")$(A", ")$(A"}, Row{"$($(A)", "$($(A)"}, Row{"$x$", "$x$"}, Row{"$$$$", "$$"}}) {
    EXPECT_EQ(expand(row.text, variables).value(), row.want) << row.text;
  }
}

/// Processor time of `work` on this thread, the least of three runs.
double cost_of(const std::function<void()>& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    timespec before = {};
    timespec after = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    work();
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    least = std::min(least, static_cast<double>(after.tv_sec - before.tv_sec) +
                                static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e9);
  }
  return least;
}

constexpr double kNearlyLinear = 24;

/// Factor by which 8 times as much is more work: 8 where it is linear, 64 where it is quadratic. A result above
/// kNearlyLinear is measured again, since other programs disturb a measurement.
double growth(const std::function<void(std::size_t)>& work, std::size_t size) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5 && least >= kNearlyLinear; ++i) {
    const double small = cost_of([&] { work(size); });
    least = std::min(least, cost_of([&] { work(8 * size); }) / small);
  }
  return least;
}

void add_variable(api::Container& container, std::string name, std::string value) {
  api::EnvVar& made = container.env.emplace_back();
  made.name = std::move(name);
  made.value = std::move(value);
}

/// PREFIX0=x, PREFIX1=$(PREFIX0) as often as `fan` says, and so on: each value is `fan` times as long.
void nest(api::Container& container, const std::string& prefix, int depth, std::size_t fan) {
  add_variable(container, prefix + "0", "x");
  for (int i = 1; i <= depth; ++i) {
    std::string value;
    for (std::size_t j = 0; j < fan; ++j) value += fmt::format("$({}{})", prefix, i - 1);
    add_variable(container, fmt::format("{}{}", prefix, i), value);
  }
}

TEST(Expand, NeverMakesMoreThanItMay) {
  const Environment variables{{"A", std::string(1000, 'a')}, {"E", ""}};
  for (std::size_t bytes_max = 0; bytes_max < 4100; ++bytes_max) {
    const auto made = expand("$(A)-$(A)$$$(E)$(A)$(N)$(A", variables, bytes_max);
    EXPECT_EQ(made.has_value(), bytes_max >= 3009) << bytes_max;
    if (made) {
      EXPECT_EQ(made->size(), 3009u);
    } else {
      EXPECT_EQ(made.error().code, ErrorCode::kRequestEntityTooLarge);
    }
  }
}

TEST(Expand, FindsTheEndOfAReferenceOnce) {
  const auto text = [](std::size_t count) {
    std::string made = ")";
    for (std::size_t i = 0; i < count; ++i) made += "$(";
    return made;
  };
  EXPECT_EQ(expand(text(1000), Environment{}).value(), text(1000));
  EXPECT_LT(growth([&](std::size_t size) { ASSERT_TRUE(expand(text(size), Environment{}, 1 << 20)); }, 20'000),
            kNearlyLinear);
}

TEST(EnvironmentOf, RefusesWhatNoProgramCanBeStartedWith) {
  for (const std::size_t fan : {2u, 3u, 17u, 300u, 3000u}) {
    for (const int depth : {1, 2, 3, 18, 40}) {
      api::Container container;
      nest(container, "V", depth, fan);
      const auto made = environment_of({}, container, {});
      EXPECT_EQ(made.has_value(), std::pow(fan, depth) + (depth > 9 ? 4 : 3) <= kExecStringMax) << fan << "^" << depth;
      if (made) continue;
      EXPECT_EQ(made.error().code, ErrorCode::kRequestEntityTooLarge);
      EXPECT_THAT(made.error().text(), testing::MatchesRegex("environment variable V[0-9]+ exceeds 131071 "
                                                             "bytes: argument list too long"));
    }
  }
}

TEST(EnvironmentOf, TakesAStringOfTheKernelsLengthAndNotOneByteMore) {
  api::Container container;
  add_variable(container, "LONG", std::string(kExecStringMax - 5, 'x'));
  EXPECT_TRUE(environment_of({}, container, {}));
  container.env.front().value += 'x';
  EXPECT_EQ(environment_of({}, container, {}).error().code, ErrorCode::kRequestEntityTooLarge);
}

TEST(EnvironmentOf, TakesAsManyBytesAsTheKernelAndNotOneMore) {
  api::Container container;
  constexpr std::size_t kEach = kExecBytesMax / 32;
  for (int i = 0; i < 32; ++i) {
    const std::string name = fmt::format("V{:02}", i);
    add_variable(container, name, std::string(kEach - name.size() - 1 - 1 - 8, 'x'));
  }
  ASSERT_TRUE(environment_of({}, container, {}));
  const Environment full = environment_of({}, container, {}).value();
  container.args = {""};
  EXPECT_EQ(words_of(container, full).error().text(),
            "arguments and environment exceed 2097152 bytes: argument list too long");
  container.args.clear();
  EXPECT_TRUE(words_of(container, full));
  container.env.back().value += 'x';
  EXPECT_EQ(environment_of({}, container, {}).error().text(),
            "arguments and environment exceed 2097152 bytes: argument list too long");
}

TEST(EnvironmentOf, WritesNoMoreForValuesThatAreReplaced) {
  api::Container container;
  add_variable(container, "A", std::string(1000, 'a'));
  std::string value;
  for (int i = 0; i < 100; ++i) value += "$(A)";
  for (int i = 0; i < 3000; ++i) add_variable(container, "B", value);
  EXPECT_EQ(environment_of({}, container, {}).error().text(),
            "the values of environment variables, replaced ones included, exceed 16777216 bytes: argument list "
            "too long");
  container.env.resize(150);
  EXPECT_EQ(environment_of({}, container, {}).value().written_bytes(), 1001u + 149 * 100'001);
}

/// Many keys, each with some prefixes.
EnvInputs keys(std::size_t count, std::size_t value_bytes = 1) {
  EnvInputs inputs;
  api::StringMap& made = inputs.sources[{DataReference::Kind::kConfigMap, "many"}];
  for (std::size_t i = 0; i < count; ++i) made[fmt::format("K{:06}", i)] = std::string(value_bytes, 'v');
  return inputs;
}

api::Container prefixed(std::size_t prefixes) {
  api::Container container;
  for (std::size_t i = 0; i < prefixes; ++i) {
    api::EnvFromSource& source = container.env_from.emplace_back();
    source.prefix = fmt::format("P{}_", i);
    source.config_map = "many";
  }
  return container;
}

TEST(EnvironmentOf, KeysTimesPrefixesAreLinearWork) {
  const EnvInputs many = keys(9'500);
  const auto made = environment_of({}, prefixed(5), many);
  ASSERT_TRUE(made);
  ASSERT_EQ(made->variables().size(), 47'500u);
  EXPECT_EQ(made->variables().front().first, "P0_K000000");
  EXPECT_EQ(made->variables().back().first, "P4_K009499");
  EXPECT_LT(growth([&](std::size_t size) { ASSERT_TRUE(environment_of({}, prefixed(3), keys(size))); }, 1'500),
            kNearlyLinear);
}

TEST(EnvironmentOf, MorePrefixesThanAProgramTakesAreNotFollowed) {
  const EnvInputs many = keys(9'500);
  EXPECT_EQ(environment_of({}, prefixed(20), many).error().text(),
            "arguments and environment exceed 2097152 bytes: argument list too long");
  EXPECT_EQ(environment_of({}, prefixed(3'000), many).error().text(),
            "the values of environment variables, replaced ones included, exceed 16777216 bytes: argument list "
            "too long");
}

TEST(EnvironmentOf, KeepsTheFirstPlaceOfANameAndItsLastValue) {
  api::Container container = prefixed(2);
  add_variable(container, "P0_K000001", "own");
  add_variable(container, "NEW", "$(P0_K000001)");
  add_variable(container, "P0_K000001", "later");
  const Environment made = environment_of({}, container, keys(2)).value();
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(
      made.variables(),
      (Pairs{{"P0_K000000", "v"}, {"P0_K000001", "later"}, {"P1_K000000", "v"}, {"P1_K000001", "v"}, {"NEW", "own"}}));
}

TEST(WordsOf, AreBoundedWhileTheyAreMade) {
  api::Container container;
  const Environment variables{{"A", std::string(1000, 'a')}};
  std::string hundred;
  for (int i = 0; i < 100; ++i) hundred += "$(A)";
  container.command = {"serve", hundred};
  EXPECT_EQ(words_of(container, variables).value().back().size(), 100'000u);
  container.args = {hundred + hundred};
  EXPECT_EQ(words_of(container, variables).error().text(), "argument 2 exceeds 131071 bytes: argument list too long");
  container.args.assign(5000, hundred);
  EXPECT_EQ(words_of(container, variables).error().text(),
            "arguments and environment exceed 2097152 bytes: argument list too long");
}

TEST(WordsOf, FindAVariableAmongManyForEachReference) {
  api::Container container;
  EXPECT_LT(growth(
                [&](std::size_t size) {
                  Environment variables;
                  std::string word;
                  for (std::size_t i = 0; i < size; ++i) {
                    variables.set(fmt::format("V{}", i), "");
                    word += fmt::format("$(V{})", i);
                  }
                  container.args = {word};
                  ASSERT_TRUE(words_of(container, variables));
                },
                1'500),
            kNearlyLinear);
}

TEST(FieldOf, KnowsTheFieldsOfAPod) {
  api::Pod pod;
  pod.metadata.name = "web";
  pod.metadata.ns = "shop";
  pod.metadata.uid = "u1";
  pod.metadata.labels["app"] = "cart";
  pod.spec.node_name = "n1";
  const PodAddresses addresses{"10.0.0.7", "10.1.0.3"};
  const auto field_at = [&](std::string path) { return field_of(pod, addresses, {{}, std::move(path)}); };
  EXPECT_EQ(field_at("metadata.name").value(), "web");
  EXPECT_EQ(field_at("metadata.namespace").value(), "shop");
  EXPECT_EQ(field_at("metadata.uid").value(), "u1");
  EXPECT_EQ(field_at("metadata.labels['app']").value(), "cart");
  EXPECT_EQ(field_at("metadata.labels['none']").value(), "");
  EXPECT_EQ(field_at("spec.nodeName").value(), "n1");
  EXPECT_EQ(field_at("status.podIP").value(), "10.1.0.3");
  EXPECT_EQ(field_at("status.hostIP").value(), "10.0.0.7");
  EXPECT_FALSE(field_at("spec.secret").has_value());
}

TEST(CommandLine, NeedsAtLeastOneWord) {
  api::Container container;
  container.name = "c";
  EXPECT_EQ(
      command_line_of(container, {}).error().text(),
      "container c needs a command: this node runs programs of the machine and ignores images (docs/runtimes.md)");
  container.args = {"only", "args"};
  EXPECT_EQ(command_line_of(container, {}).value(), container.args);
}

TEST(OomScore, FollowsQosAndRequest) {
  api::Pod pod;
  api::Container& container = pod.spec.containers.emplace_back();
  EXPECT_EQ(oom_score_adj(pod, container, gibibytes(1)), 1000);
  container.resources.requests["memory"] = api::Quantity::of_bytes(mebibytes(256));
  EXPECT_EQ(oom_score_adj(pod, container, gibibytes(1)), 750);
  container.resources.requests["memory"] = api::Quantity::of_bytes(gibibytes(4));
  EXPECT_EQ(oom_score_adj(pod, container, gibibytes(1)), 3);
  for (const char* resource : {"cpu", "memory"}) {
    container.resources.requests[resource] = api::Quantity::of_units(1);
    container.resources.limits[resource] = api::Quantity::of_units(1);
  }
  EXPECT_EQ(oom_score_adj(pod, container, gibibytes(1)), -997);
}

using Seconds = std::optional<std::int64_t>;

std::int64_t grace(std::int64_t previous, Seconds deletion, Seconds override, Seconds spec) {
  return effective_grace(previous, {deletion, override, spec}).seconds;
}

TEST(EffectiveGrace, NeverGrowsAndIsAtLeastOneSecond) {
  EXPECT_EQ(grace(0, {}, {}, 30), 30);
  EXPECT_EQ(grace(0, 5, {}, 30), 5);
  EXPECT_EQ(grace(5, 10, {}, 30), 5);
  EXPECT_EQ(grace(30, {}, 1, 30), 1);
  EXPECT_EQ(grace(0, {}, 0, 30), 1) << "an override of zero counts";
  EXPECT_EQ(grace(0, {}, {}, {}), 1);
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(grace(0, {}, {}, kLargest), kGraceSecondsMax) << "nanoseconds stay in range";
  EXPECT_EQ(grace(0, kLargest, {}, 30), kGraceSecondsMax);
  EXPECT_EQ(grace(0, {}, {}, std::numeric_limits<std::int64_t>::min()), 1);
}

}  // namespace
}  // namespace spillway::agent
