// The reach of watches and lists into the past: from the oldest kept event nothing is missing, from before it the
// client has to list anew.
#include "apiserver/kinds/kind_rows.h"
#include "apiserver/read/pinned_objects.h"
#include "apiserver/read/watch_cache.h"
#include "apiserver/resource/resource_registry.h"
#include "apiserver/server_fixture.h"
#include "base/check.h"
#include "base/rng.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace spillway::apiserver {

namespace {

class Events final : public WatchCache::Listener {
 public:
  void on_cache_event(ResourceCache&, const EventPtr&) override {}

  void on_cache_progress() override {}

  void on_cache_lost(Origin&, const Error& error) override { ADD_FAILURE() << error.text(); }
};

class WatchHistory : public ::testing::Test {
 protected:
  WatchHistory() : cache(registry, events, store), maps(cache.of(registry.get("configmaps"))) {}

  void write(std::uint64_t revision, std::size_t bytes, const std::string& name = "a") {
    store::Change change;
    change.key = "/registry/configmaps/default/" + name;
    change.revision = change.create_revision = store::Revision(revision);
    change.value = std::make_shared<const std::string>(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" +
                                                       name + R"(","namespace":"default","uid":"u"},"data":{"v":")" +
                                                       std::string(bytes, 'x') + "\"}}");
    cache.origins().front()->on_changes({change});
  }

  /// The oldest revision from which a watch can continue, found by trying each.
  std::uint64_t horizon(std::uint64_t head) const {
    for (std::uint64_t revision = 0; revision <= head; ++revision) {
      if (maps.covers(store::Revision(revision))) return revision;
    }
    return head + 1;
  }

  /// Checks that no event is missing from there on.
  void expect_whole(std::uint64_t head) const {
    const std::uint64_t first = horizon(head);
    for (const std::uint64_t after : {first, first + 1, head - 1, head}) {
      const std::vector<EventPtr> found = maps.events_after(store::Revision(after));
      ASSERT_EQ(found.size(), head - after) << "after " << after;
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i]->revision.number(), after + 1 + i);
    }
  }

  ResourceRegistry registry{kinds::kind_rows()};
  Events events;
  store::MemoryStore store{[](const auto&) {}};
  WatchCache cache;
  ResourceCache& maps;
};

TEST_F(WatchHistory, SmallEventsAreKeptHoweverMany) {
  constexpr std::uint64_t kHead = 40'000;
  for (std::uint64_t revision = 1; revision <= kHead; ++revision) write(revision, 1);
  EXPECT_EQ(horizon(kHead), 0U);
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
    cache.origins().front()->on_changes({change});
  };
  put(1, "n1");
  ASSERT_NE(pods.on_node("n1"), nullptr);
  put(2, "n2");
  EXPECT_EQ(pods.on_node("n1"), nullptr) << "moved";
  ASSERT_NE(pods.on_node("n2"), nullptr);
  store::Change gone;
  gone.key = "/registry/pods/default/p";
  gone.revision = gone.create_revision = store::Revision(3);
  cache.origins().front()->on_changes({gone});
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
  server.run_until_idle();
  server.restart();
  create("next");
  int too_old = 0;
  for (std::uint64_t revision = 1; revision <= head; ++revision) {
    const auto sink = server.watch(std::string(kMaps) + "?watch=1&resourceVersion=" + std::to_string(revision));
    ASSERT_FALSE(sink->events().empty()) << revision;
    const api::Json first = sink->events().front();
    if (first.string_at({"type"}) == "ERROR") {
      EXPECT_EQ(first.at({"object", "code"})->if_int64(), 410) << revision;
      EXPECT_LT(revision, head) << "the state that was loaded can be watched from";
      EXPECT_TRUE(sink->ended);
      ++too_old;
      continue;
    }
    std::vector<std::string> wanted;
    for (const auto& [at, name] : created) {
      if (at > revision) wanted.push_back(name);
    }
    EXPECT_EQ(sink->names(), wanted) << "whatever is answered with events has all of them: " << revision;
  }
  EXPECT_GE(too_old, static_cast<int>(head) - 1 - static_cast<int>(created.size())) << "what is compacted is not there";
}

const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

std::uint64_t version_of(const api::Json& event) {
  return std::stoull(std::string(event.string_at({"object", "metadata", "resourceVersion"})));
}

/// Leases that are created, deleted and renewed at random, and a watch that has seen all of it.
class ResumedByState : public ::testing::Test {
 protected:
  using Leases = std::map<std::string, std::uint64_t>;  // the revision of each

  void SetUp() override { everything_ = server_.watch(kLeases + "?watch=1&timeoutSeconds=100000"); }

  void write_at_random(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string name = "l" + std::to_string(rng_.below(12));
      const std::string label = rng_.below(2) == 0 ? "x" : "y";
      const bool deletes = rng_.below(6) == 0 && server_.get(kLeases + "/" + name).code == 200;
      server_.put_at_rest("/registry/leases/default/" + name,
                          deletes ? std::string()
                                  : R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":")" +
                                        name + R"(","namespace":"default","uid":"u","labels":{"a":")" + label +
                                        R"("}},"spec":{"leaseDurationSeconds":40}})");
      server_.advance(milliseconds(20));
    }
    history_ = everything_->events();
  }

  /// The leases at that revision.
  Leases at(std::uint64_t revision) const {
    Leases leases;
    for (const api::Json& event : history_) {
      if (version_of(event) <= revision) apply(event, leases);
    }
    return leases;
  }

  static void apply(const api::Json& event, Leases& leases) {
    const std::string name(event.string_at({"object", "metadata", "name"}));
    if (event.string_at({"type"}) == "DELETED") {
      EXPECT_EQ(leases.erase(name), 1U) << name << " was not there";
      return;
    }
    EXPECT_EQ(leases.contains(name), event.string_at({"type"}) == "MODIFIED") << name;
    leases[name] = version_of(event);
  }

  /// A watch from there ends where the one that saw everything is; in order, and no state twice.
  void expect_same_end(std::uint64_t after, const std::string& name = {}) {
    SCOPED_TRACE("after " + std::to_string(after) + " " + name);
    const std::string selector = name.empty() ? "" : "&fieldSelector=metadata.name%3D" + name;
    const auto sink = server_.watch(kLeases + "?watch=1&resourceVersion=" + std::to_string(after) + selector);
    Leases leases = at(after);
    Leases wanted = at(static_cast<std::uint64_t>(-1));
    const auto others = [&](const auto& lease) { return !name.empty() && lease.first != name; };
    std::erase_if(leases, others);
    std::erase_if(wanted, others);
    std::uint64_t last = after;
    for (const api::Json& event : sink->events()) {
      ASSERT_NE(event.string_at({"type"}), "ERROR");
      EXPECT_GT(version_of(event), last);
      last = version_of(event);
      apply(event, leases);
    }
    EXPECT_EQ(leases, wanted);
    sink->text.clear();
  }

  std::uint64_t head() { return server_.store().revision().number(); }

  TestServer server_;
  Rng rng_{11};
  std::shared_ptr<TestSink> everything_;
  std::vector<api::Json> history_;
};

TEST_F(ResumedByState, FromAnyRevisionToTheSameEnd) {
  write_at_random(2'500);
  ASSERT_GT(history_.size(), 2'000U);
  const std::uint64_t first = version_of(history_.front());
  for (std::uint64_t after = first - 1; after <= head(); after += 1 + rng_.below(60)) expect_same_end(after);
  for (int i = 0; i < 40; ++i) {
    expect_same_end(first + rng_.below(head() - first), "l" + std::to_string(rng_.below(12)));
  }
}

TEST_F(ResumedByState, OneThatResumesSeesLaterChanges) {
  write_at_random(2'500);
  const auto sink = server_.watch(kLeases + "?watch=1&resourceVersion=" + std::to_string(version_of(history_.front())));
  const std::size_t before = sink->events().size();
  write_at_random(20);
  const std::vector<api::Json> received = sink->events();
  ASSERT_EQ(received.size(), before + 20);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(received[before + i], history_[history_.size() - 20 + i]);
}

TEST_F(ResumedByState, AfterARestartAsWell) {
  write_at_random(1'300);
  server_.restart();
  const std::uint64_t first = version_of(history_.front());
  for (std::uint64_t after = first - 1; after <= head(); after += 1 + rng_.below(60)) expect_same_end(after);
}

TEST_F(ResumedByState, LabelsNeedTheEventsThemselves) {
  write_at_random(2'500);
  const auto by_label = server_.watch(
      kLeases + "?watch=1&labelSelector=a%3Dx&resourceVersion=" + std::to_string(version_of(history_.front())));
  ASSERT_EQ(by_label->events().size(), 1U);
  EXPECT_EQ(by_label->events().front().at({"object", "code"})->if_int64(), 410);
  const auto lately =
      server_.watch(kLeases + "?watch=1&labelSelector=a%3Dx&resourceVersion=" + std::to_string(head() - 500));
  EXPECT_GT(lately->events().size(), 100U);
  EXPECT_NE(lately->events().front().string_at({"type"}), "ERROR");
}

TEST_F(ResumedByState, DeletionsAreSentForTenMinutes) {
  write_at_random(1'200);
  const std::uint64_t then = head();
  server_.put_at_rest("/registry/leases/default/one", R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",)"
                                                      R"("metadata":{"name":"one","namespace":"default","uid":"u"}})");
  server_.put_at_rest("/registry/leases/default/one", "");
  server_.advance(minutes(9));
  write_at_random(1'200);
  expect_same_end(then);
  server_.advance(minutes(2));
  write_at_random(60);
  const auto late = server_.watch(kLeases + "?watch=1&resourceVersion=" + std::to_string(then));
  ASSERT_EQ(late->events().size(), 1U);
  EXPECT_EQ(late->events().front().at({"object", "code"})->if_int64(), 410) << "what has gone may be unknown";
}

}  // namespace

}  // namespace spillway::apiserver
