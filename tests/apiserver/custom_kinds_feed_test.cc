// The way of a custom kind's objects into the cache, and the generations that are held meanwhile: the engine without a
// server.
#include "apiserver/crontabs.h"
#include "apiserver/custom/custom_kinds.h"
#include "apiserver/kinds/kind_rows.h"
#include "apiserver/read/core.h"
#include "apiserver/read/long_reads.h"
#include "apiserver/read/watch_cache.h"
#include "apiserver/read/watch_hub.h"
#include "apiserver/request/read_request.h"
#include "apiserver/resource/custom_kind.h"
#include "apiserver/server_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;

class NoListener final : public WatchCache::Listener {
 public:
  void on_cache_event(ResourceCache& /*cache*/, const EventPtr& event) override { seen.push_back(event); }

  void on_cache_progress() override {}

  void on_cache_lost(Origin& /*origin*/, const Error& error) override { ADD_FAILURE() << error.text(); }

  std::vector<EventPtr> seen;
};

/// The objects of a new kind arrive in two ways: read from the store at some revision, and by its watch, earlier and
/// later than that.
class FilledKind : public ::testing::Test {
 protected:
  static store::Value object(std::string_view name, int number) {
    return std::make_shared<const std::string>(fmt::format(
        R"({{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{{"name":"{}","namespace":"default",
             "uid":"u"}},"spec":{{"cron":"{}"}}}})",
        name, number));
  }

  static std::string key(std::string_view name) {
    return fmt::format("/registry/stable.example.com/crontabs/default/{}", name);
  }

  void deliver(std::string_view name, std::uint64_t revision, const store::Value& value) {
    cache.origins().front()->on_changes(
        {{key(name), store::Revision(revision), store::Revision(revision), value, nullptr}});
  }

  std::string cron_of(std::string_view name) const {
    const ObjectPtr found = crontabs.find(fmt::format("default/{}", name));
    return found ? std::string(found->document().string_at({"spec", "cron"})) : "none";
  }

  CustomKindPtr kind() {
    Json document = *api::parse_json(definition());
    document["status"]["acceptedNames"] = *document.at({"spec", "names"});
    return *CustomKind::make(document);
  }

  ResourceRegistry registry{kinds::kind_rows()};
  NoListener events;
  store::MemoryStore store{[](const auto&) {}};
  WatchCache cache{registry, events, store};
  ResourceCache& crontabs = cache.attach(kind());
};

TEST_F(FilledKind, ReadObjectsAndEventsMakeOneState) {
  deliver("told", 5, object("told", 5));
  deliver("both", 6, object("both", 6));
  deliver("later", 9, object("later", 9));
  deliver("gone", 10, nullptr);
  EXPECT_TRUE(crontabs.objects().empty()) << "nothing shows before all of it does";
  store::RangeResult state;
  state.revision = store::Revision(8);
  for (const auto& [name, revision] : {std::pair{"both", 7}, {"gone", 3}, {"read", 2}, {"told", 5}}) {
    const store::Revision at(static_cast<std::uint64_t>(revision));
    state.entries.push_back({key(name), object(name, revision), at, at, 1});
  }
  cache.fill(crontabs, state);
  EXPECT_EQ(cron_of("told"), "5");
  EXPECT_EQ(cron_of("both"), "7");
  EXPECT_EQ(cron_of("later"), "9");
  EXPECT_EQ(cron_of("read"), "2");
  EXPECT_EQ(cron_of("gone"), "none");
  deliver("both", 7, object("both", 7));
  deliver("both", 8, object("both", 8));
  EXPECT_EQ(cron_of("both"), "7") << "what the watch tells of the past is in the state already";
  deliver("both", 11, object("both", 11));
  EXPECT_EQ(cron_of("both"), "11");
  EXPECT_FALSE(crontabs.covers(store::Revision(7)));
  EXPECT_TRUE(crontabs.covers(store::Revision(8)));
}

TEST_F(FilledKind, APlaceIsKeptForAKindThatIsServedAgain) {
  cache.fill(crontabs, {.entries = {}, .revision = store::Revision(1), .remaining = 0});
  deliver("a", 2, object("a", 2));
  EXPECT_TRUE(crontabs.covers(store::Revision(1)));
  cache.detach(crontabs);
  EXPECT_TRUE(crontabs.is_detached());
  EXPECT_FALSE(crontabs.covers(store::Revision(1))) << "what happened until it went is forgotten";
  deliver("b", 3, object("b", 3));
  EXPECT_TRUE(crontabs.objects().empty());
  EXPECT_EQ(&cache.attach(kind()), &crontabs);
  EXPECT_TRUE(crontabs.is_filling());
}

/// The part that follows definitions, alone: what it asks of the store is answered one by one.
class FollowedDefinitions : public ::testing::Test, public WatchCache::Listener {
 public:
  void on_cache_event(ResourceCache& of, const EventPtr& event) override { kinds.see(of, event); }

  void on_cache_progress() override { kinds.run(); }

  void on_cache_lost(Origin& /*origin*/, const Error& error) override { ADD_FAILURE() << error.text(); }

 protected:
  FollowedDefinitions() {
    cache.load(*cache.origins().front(), {.entries = {}, .revision = store::Revision(1), .remaining = 0});
    static_cast<Collector&>(kinds).begin();
  }

  /// The watch delivers a definition with that category.
  void deliver(std::string_view category, std::string_view filler = {}, std::string_view plural = "crontabs") {
    Json document = *api::parse_json(definition(plural));
    document["metadata"]["uid"] = "u";
    document.make({"metadata", "annotations", "filler"}) = filler;
    Json& accepted = document.make({"status", "acceptedNames"});
    accepted = *std::as_const(document).at({"spec", "names"});
    accepted["categories"] = Json::array({category});
    document["status"]["conditions"] = Json::array({Json::object({{"type", "Established"}, {"status", "True"}})});
    change(std::make_shared<const std::string>(api::to_text(document)), plural);
  }

  void change(const store::Value& value, std::string_view plural = "crontabs") {
    const store::Revision at(++revision);
    const std::string key =
        fmt::format("/registry/apiextensions.k8s.io/customresourcedefinitions/{}.stable.example.com", plural);
    cache.origins().front()->on_changes({{key, at, store::Revision(2), value, nullptr}});
  }

  void answer_next() {
    ASSERT_FALSE(tasks.empty());
    auto task = std::move(tasks.front());
    tasks.pop_front();
    task();
  }

  void advance(Duration by) {
    core.now.mono += by;
    timers.run_due(core.now.mono);
  }

  static constexpr std::string_view kName = "crontabs.stable.example.com";

  std::deque<std::move_only_function<void()>> tasks;
  std::uint64_t revision = 1;
  ResourceRegistry registry{kinds::kind_rows()};
  store::MemoryStore store{[this](std::move_only_function<void()> task) { tasks.push_back(std::move(task)); }};
  WatchCache cache{registry, *this, store};
  TimerQueue timers;
  Core core{registry, store, cache, timers, telemetry::Log(), Rng(1)};
  SliceQueue slices{timers, core.now};
  LongReads long_reads{timers, core.now};
  WatchHub hub{core, slices, long_reads};
  CustomKinds kinds{core, registry, hub};
};

TEST_F(FollowedDefinitions, AKindThatIsReplacedBeforeItWasServedStaysForThoseWhoHaveSeenIt) {
  deliver("first");
  answer_next();  // its objects were read and are visible; the store has not reported its revision yet
  EXPECT_TRUE(kinds.is_reading(kName));
  const ResourceCache& tabs = *cache.all().back();
  EXPECT_FALSE(tabs.is_filling());
  const Resource& seen = tabs.resource();
  deliver("second");
  EXPECT_NE(&tabs.resource(), &seen);
  EXPECT_EQ(kinds.kept(), 1U);
  EXPECT_EQ(seen.categories.front(), "first") << "a write that has begun with it may end";
  change(nullptr);
  EXPECT_EQ(kinds.kept(), 2U);
  advance(CustomKinds::kKept - seconds(1));
  EXPECT_EQ(kinds.kept(), 2U);
  advance(seconds(1));
  EXPECT_EQ(kinds.kept(), 0U);
}

/// A place is a cache: they are given back, and used again for other kinds.
TEST_F(FollowedDefinitions, ThePlaceOfAKindThatHasGoneIsGivenBack) {
  constexpr std::size_t kAtOnce = 100;
  std::size_t places = 0;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const std::string plural = fmt::format("things{}x{}", round, i);
      deliver("all", {}, plural);
      EXPECT_FALSE(cache.all().empty());
      change(nullptr, plural);
    }
    EXPECT_EQ(kinds.names(), kAtOnce);
    advance(CustomKinds::kKept);
    EXPECT_EQ(kinds.kept(), 0U);
    EXPECT_EQ(kinds.names(), 0U);
    if (round == 0) places = cache.all().size();
    EXPECT_EQ(cache.all().size(), places) << "caches are used again";
  }
  deliver("again");
  EXPECT_EQ(kinds.names(), 1U);
  deliver("changed");
  advance(CustomKinds::kKept);
  EXPECT_EQ(kinds.names(), 1U) << "a kind that is served keeps its place";
}

TEST_F(FollowedDefinitions, LargeOnesThatChangeWithoutEndWait) {
  const std::string filler(1'400'000, 'x');
  for (int i = 0; i < 120; ++i) deliver(fmt::format("c{}", i), filler);
  const ResourceCache& tabs = *cache.all().back();
  const std::size_t kept = kinds.kept();
  EXPECT_LT(kept, 100U) << "each has more than a 96th of 128 MiB";
  EXPECT_GT(kept, 90U);
  EXPECT_EQ(tabs.resource().categories.front(), fmt::format("c{}", kept));
  advance(CustomKinds::kKept);
  EXPECT_EQ(tabs.resource().categories.front(), "c119") << "the last one is followed once there is room";
  EXPECT_EQ(kinds.kept(), 1U);
}

}  // namespace

}  // namespace spillway::apiserver
