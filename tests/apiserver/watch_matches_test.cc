// The number of comparisons of watches with an event, and the terms that their selectors may have: comparisons, not
// time.
#include "apiserver/kinds/kind_rows.h"
#include "apiserver/read/core.h"
#include "apiserver/read/long_reads.h"
#include "apiserver/read/selection.h"
#include "apiserver/read/watch_hub.h"
#include "apiserver/request/read_request.h"
#include "apiserver/request/request_options.h"
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

/// Terms that match objects without these labels; each has to be compared.
std::string absent_labels(std::string_view prefix, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += fmt::format("{}!{}{}", i == 0 ? "" : ",", prefix, i);
  return out;
}

class WatchMatches : public ::testing::Test, private WatchCache::Listener {
 protected:
  struct Opened {
    ExchangePtr exchange;
    std::shared_ptr<TestSink> sink;

    int code() const { return sink->response ? sink->response->status : 200; }
  };

  Opened open(const std::string& selector, const std::string& user = "u") {
    api::Request request;
    request.target = fmt::format("/api/v1/namespaces/default/configmaps?watch=1&resourceVersion={}&labelSelector={}",
                                 revision, selector);
    auto read = std::make_shared<const ReadRequest>(read_request(registry.table(), request));
    auto sink = std::make_shared<TestSink>();
    auto exchange = std::make_shared<Exchange>(++last_id, std::move(request),
                                               std::make_shared<const api::UserInfo>(api::UserInfo{user, {}, {}}),
                                               std::move(read), sink, "id", [](Exchange&, int) {});
    exchange->route = *exchange->read().route;
    auto selection = parse_selection(exchange->route, exchange->target);
    auto rendering = Rendering::of(*exchange->route.resource, exchange->form, exchange->target);
    const auto options = parse_list_options(exchange->target, true);
    EXPECT_TRUE(selection && rendering && options);
    hub.open(exchange, *std::move(rendering), *std::move(selection), *options);
    return {std::move(exchange), std::move(sink)};
  }

  void deliver(std::string_view name, std::string_view label, std::string_view data) {
    store::Change change;
    change.key = fmt::format("/registry/configmaps/default/{}", name);
    change.revision = change.create_revision = store::Revision(++revision);
    change.value = std::make_shared<const std::string>(fmt::format(
        R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","namespace":"default","uid":"u",)"
        R"("labels":{{"a":"{}"}}}},"data":{{"v":"{}"}}}})",
        name, label, data));
    cache.origins().front()->on_changes({change});
  }

  // WatchCache::Listener
  void on_cache_event(ResourceCache& of, const EventPtr& event) override { hub.on_event(of, event); }

  void on_cache_progress() override {}

  void on_cache_lost(Origin& /*origin*/, const Error& error) override { ADD_FAILURE() << error.text(); }

  std::uint64_t revision = 1;
  std::uint64_t last_id = 0;
  ResourceRegistry registry{kinds::kind_rows()};
  store::MemoryStore store{[](const auto&) {}};
  WatchCache cache{registry, *this, store};
  TimerQueue timers;
  Core core{registry, store, cache, timers, telemetry::Log(), Rng(1)};
  SliceQueue slices{timers, core.now};
  LongReads long_reads{timers, core.now};
  WatchHub hub{core, slices, long_reads};
};

TEST_F(WatchMatches, EqualSelectorsAreComparedOnce) {
  std::vector<Opened> watches;
  for (int i = 0; i < 200; ++i) watches.push_back(open(absent_labels("k", 5'000), fmt::format("u{}", i % 3)));
  const Opened other = open("a=2");
  deliver("m", "1", "x");
  EXPECT_EQ(hub.matches(), 2U) << "one comparison for 200 watches, and one for the other";
  deliver("m", "1", "y");
  EXPECT_EQ(hub.matches(), 4U) << "labels that stay as they are select as they did";
  deliver("m", "2", "y");
  EXPECT_EQ(hub.matches(), 8U) << "what was and what is";
  for (const Opened& each : watches) {
    ASSERT_EQ(each.code(), 200);
    ASSERT_EQ(each.sink->names(), (std::vector<std::string>{"ADDED:m", "MODIFIED:m", "MODIFIED:m"}));
  }
  EXPECT_EQ(other.sink->names(), (std::vector<std::string>{"ADDED:m"}));
  deliver("m", "3", "y");
  EXPECT_EQ(other.sink->names(), (std::vector<std::string>{"ADDED:m", "DELETED:m"}));
}

TEST_F(WatchMatches, TermsOfAUserAndOfAllAreBounded) {
  constexpr std::size_t kHalf = WatchHub::kStepsOfUser / 2;
  const Opened first = open(absent_labels("first", kHalf));
  const Opened second = open(absent_labels("second", kHalf));
  EXPECT_EQ(first.code(), 200);
  EXPECT_EQ(second.code(), 200);
  const Opened third = open(absent_labels("third", WatchHub::kFreeSteps + 1));
  EXPECT_EQ(third.code(), 429);
  EXPECT_NE(third.sink->response->body.find("have too many terms"), std::string::npos);
  EXPECT_EQ(open(absent_labels("second", kHalf)).code(), 200) << "an equal one costs nothing more";
  EXPECT_EQ(open(absent_labels("third", WatchHub::kFreeSteps)).code(), 200) << "short ones cost nothing";
  EXPECT_EQ(hub.open_count(), 4U);

  EXPECT_EQ(open(absent_labels("a", kHalf), "system:serviceaccount:ns:a").code(), 200);
  EXPECT_EQ(open(absent_labels("b", kHalf), "system:serviceaccount:ns:b").code(), 200);
  EXPECT_EQ(open(absent_labels("c", kHalf), "system:serviceaccount:ns:c").code(), 429) << "they count as one";
  EXPECT_EQ(open(absent_labels("d", kHalf), "v").code(), 200);
  EXPECT_EQ(open(absent_labels("e", kHalf), "v").code(), 429) << "the bound of all";
  EXPECT_EQ(open(absent_labels("second", kHalf), "v").code(), 200) << "which an equal one does not touch";

  first.exchange->abandon();
  EXPECT_EQ(open(absent_labels("third", kHalf)).code(), 200) << "what ends is given back";
}

TEST_F(WatchMatches, WatchesOfAUserAreBounded) {
  std::vector<Opened> watches;
  for (std::size_t i = 0; i < WatchHub::kWatchesOfUser; ++i) watches.push_back(open("a=1", "u"));
  EXPECT_EQ(watches.back().code(), 200);
  const Opened refused = open("a=1", "u");
  EXPECT_EQ(refused.code(), 429);
  EXPECT_NE(refused.sink->response->body.find("too many watches"), std::string::npos);
  EXPECT_EQ(open("a=1", "v").code(), 200);
  watches.back().exchange->abandon();
  EXPECT_EQ(open("a=1", "u").code(), 200) << "what ends is given back";
}

/// A comparison without slices stops.
TEST(LongSelectors, OfACollectionThatIsDeletedAreRefusedWhereObjectsAreMany) {
  constexpr std::size_t kTerms = 5'000;
  TestServer server;
  const auto make = [&](std::size_t i) {
    ASSERT_EQ(server.post(kMaps, fmt::format(R"({{"metadata":{{"name":"m{}"}}}})", i)).code, 201);
  };
  const std::string selector = kMaps + "?labelSelector=" + absent_labels("k", kTerms);
  for (std::size_t i = 0; i < kSelectStepsMax / kTerms; ++i) make(i);
  make(kSelectStepsMax / kTerms);
  const Answer refused = server.remove(selector);
  EXPECT_EQ(refused.code, 413);
  EXPECT_EQ(refused.string_at({"message"}),
            "the selector has too many terms for this number of objects: use a shorter one");
  EXPECT_EQ(server.remove(kMaps + "/m0").code, 200);
  EXPECT_EQ(server.remove(selector).code, 200) << "one object fewer";
  EXPECT_TRUE(server.get(kMaps).body.find("items")->if_array()->empty());
}

}  // namespace

}  // namespace spillway::apiserver
