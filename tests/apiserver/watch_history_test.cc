// How far back watches and lists reach: from the oldest event that is kept nothing is missing, from before it the
// client is told to list anew.
#include "apiserver/kinds/kind_table.h"
#include "apiserver/read/pinned_objects.h"
#include "apiserver/read/watch_cache.h"
#include "apiserver/resource/resource_registry.h"
#include "apiserver/server_fixture.h"
#include "base/check.h"

#include <gtest/gtest.h>

namespace spillway::apiserver {

namespace {

class Events final : public WatchCache::Listener {
 public:
  void on_cache_event(ResourceCache&, const EventPtr&) override {}

  void on_cache_progress() override {}

  void on_cache_lost(const Error& error) override { ADD_FAILURE() << error.text(); }
};

class WatchHistory : public ::testing::Test {
 protected:
  WatchHistory() : cache(registry, events), maps(cache.of(registry.get("configmaps"))) {}

  void write(std::uint64_t revision, std::size_t bytes, const std::string& name = "a") {
    store::Change change;
    change.key = "/registry/configmaps/default/" + name;
    change.revision = change.create_revision = store::Revision(revision);
    change.value = std::make_shared<const std::string>(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" +
                                                       name + R"(","namespace":"default","uid":"u"},"data":{"v":")" +
                                                       std::string(bytes, 'x') + "\"}}");
    cache.on_changes({change});
  }

  /// The oldest revision from which a watch can go on, found by asking for each.
  std::uint64_t horizon(std::uint64_t head) const {
    for (std::uint64_t revision = 0; revision <= head; ++revision) {
      if (maps.covers(store::Revision(revision))) return revision;
    }
    return head + 1;
  }

  /// From there on, nothing is missing.
  void expect_whole(std::uint64_t head) const {
    const std::uint64_t first = horizon(head);
    for (const std::uint64_t after : {first, first + 1, head - 1, head}) {
      const std::vector<EventPtr> found = maps.events_after(store::Revision(after));
      ASSERT_EQ(found.size(), head - after) << "after " << after;
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i]->revision.number(), after + 1 + i);
    }
  }

  ResourceRegistry registry{kinds::kind_hooks};
  Events events;
  WatchCache cache;
  ResourceCache& maps;
};

TEST_F(WatchHistory, IsBoundedByTheNumberOfEvents) {
  constexpr std::uint64_t kHead = 16'384 + 10;
  for (std::uint64_t revision = 1; revision <= kHead; ++revision) write(revision, 1);
  EXPECT_EQ(horizon(kHead), 10U);
  expect_whole(kHead);
}

TEST_F(WatchHistory, IsBoundedByItsBytes) {
  for (std::uint64_t revision = 1; revision <= 40; ++revision) write(revision, std::size_t{1} << 20U);
  const std::uint64_t kept = 40 - horizon(40);
  EXPECT_EQ(kept, 31U) << "32 MiB, and each event is a little more than one";
  expect_whole(40);
}

TEST_F(WatchHistory, AnEventLargerThanAllOfItIsKept) {
  write(1, 1);
  write(2, std::size_t{33} << 20U);
  EXPECT_EQ(horizon(2), 1U);
  expect_whole(2);
  write(3, 1);
  EXPECT_EQ(horizon(3), 2U);
}

TEST_F(WatchHistory, OldEventsGoWhenThereAreMany) {
  Now now{Instant(seconds(1000)), WallTime(seconds(1'767'225'600))};
  cache.set_time(now.mono);
  for (std::uint64_t revision = 1; revision <= 1'200; ++revision) write(revision, 1);
  EXPECT_EQ(horizon(1'200), 0U);
  cache.set_time(now.mono + minutes(5) + seconds(1));
  write(1'201, 1);
  EXPECT_EQ(horizon(1'201), 201U) << "a thousand stay, however old";
  expect_whole(1'201);
}

TEST_F(WatchHistory, ADeletedObjectIsInNoIndex) {
  ResourceCache& pods = cache.of(registry.get("pods"));
  const auto put = [&](std::uint64_t revision, const std::string& node) {
    store::Change change;
    change.key = "/registry/pods/default/p";
    change.revision = change.create_revision = store::Revision(revision);
    change.value = std::make_shared<const std::string>(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","uid":"u"},"spec":{"nodeName":")" +
        node + "\"}}");
    cache.on_changes({change});
  };
  put(1, "n1");
  ASSERT_NE(pods.on_node("n1"), nullptr);
  put(2, "n2");
  EXPECT_EQ(pods.on_node("n1"), nullptr) << "moved";
  ASSERT_NE(pods.on_node("n2"), nullptr);
  store::Change gone;
  gone.key = "/registry/pods/default/p";
  gone.revision = gone.create_revision = store::Revision(3);
  cache.on_changes({gone});
  EXPECT_EQ(pods.on_node("n2"), nullptr);
  EXPECT_FALSE(pods.occupies("default"));
}

TEST_F(WatchHistory, PastStatesAreShownFromTheHorizonOn) {
  write(1, 1, "a");
  write(2, 1, "b");
  write(3, 2, "a");
  const auto names_at = [&](std::uint64_t revision) {
    std::vector<std::string> names;
    PinnedObjects::make(maps, store::Revision(revision), "default/", {}, PinnedObjects::Passes::kOne)
        ->visit([&](const ObjectPtr& object) {
          names.push_back(object->name + std::to_string(object->revision.number()));
          return true;
        });
    return names;
  };
  EXPECT_EQ(names_at(0), std::vector<std::string>{});
  EXPECT_EQ(names_at(1), std::vector<std::string>{"a1"});
  EXPECT_EQ(names_at(2), (std::vector<std::string>{"a1", "b2"}));
  EXPECT_EQ(names_at(3), (std::vector<std::string>{"a3", "b2"}));
}

/// The same through the server: after a restart its memory begins at the revision it loaded.
TEST(WatchFromHistory, FromTheHorizonAndFromOneBeforeIt) {
  TestServer server;
  std::vector<std::pair<std::uint64_t, std::string>> created;
  const auto create = [&](const std::string& name) {
    const Answer answer = server.post(kMaps, R"({"metadata":{"name":")" + name + "\"}}");
    ASSERT_EQ(answer.code, 201) << answer.text;
    created.emplace_back(std::stoull(answer.string_at({"metadata", "resourceVersion"})), "ADDED:" + name);
  };
  for (int i = 0; i < 5; ++i) create("m" + std::to_string(i));
  const std::uint64_t head = server.store().revision().number();
  server.store().compact(store::Revision(head - 1), [](const Result<store::Revision>& done) { ASSERT_TRUE(done); });
  server.settle();
  server.restart();
  create("next");
  int told = 0;
  for (std::uint64_t revision = 1; revision <= head; ++revision) {
    const auto sink = server.watch(std::string(kMaps) + "?watch=1&resourceVersion=" + std::to_string(revision));
    ASSERT_FALSE(sink->events().empty()) << revision;
    const api::Json first = sink->events().front();
    if (first.string_at({"type"}) == "ERROR") {
      EXPECT_EQ(first.at({"object", "code"})->if_int64(), 410) << revision;
      EXPECT_LT(revision, head) << "the state that was loaded can be watched from";
      EXPECT_TRUE(sink->ended);
      ++told;
      continue;
    }
    std::vector<std::string> wanted;
    for (const auto& [at, name] : created) {
      if (at > revision) wanted.push_back(name);
    }
    EXPECT_EQ(sink->names(), wanted) << "whatever is answered with events has all of them: " << revision;
  }
  EXPECT_GE(told, static_cast<int>(head) - 1 - static_cast<int>(created.size())) << "what is compacted is not there";
}

}  // namespace

}  // namespace spillway::apiserver
