// Two servers over two simulated etcds, of which one has the leases: whatever breaks at one of them, the objects of the
// other are served meanwhile, and every watch gets each change once.
#include "apiserver/server.h"
#include "sim/etcd/sim_etcd.h"
#include "store/etcd/etcd_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::sim {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

const std::string kOfLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const std::string kOfMaps = "/api/v1/namespaces/default/configmaps";
constexpr Duration kTick = milliseconds(20);

class KeptAnswer final : public api::ResponseSink {
 public:
  void on_response(api::Response response) override { answer = std::move(response); }

  void on_stream(api::Response) override {}

  bool write(std::shared_ptr<const std::string> chunk) override {
    text += *chunk;
    return true;
  }

  void on_end() override { ended = true; }

  std::optional<api::Response> answer;
  std::string text;
  bool ended = false;
};

/// A client that watches and resumes by resourceVersion; lists anew where history is gone.
struct Follower {
  std::string path;
  std::string version = "0";
  std::shared_ptr<KeptAnswer> stream = nullptr;
  std::size_t read = 0;
  std::map<std::string, int> added;
  int lists = 0;
};

class SeparateEtcds : public ::testing::Test {
 protected:
  struct Server {
    Server(SeparateEtcds& all, const std::string& name, std::uint64_t seed)
        : main(all.connect(all.main, name, {})), apart(all.connect(all.apart, name, "leases.coordination.k8s.io")) {
      apiserver::ApiServer::Options options{.seed = seed};
      options.separate.push_back({apart.get(), "leases.coordination.k8s.io", {"/registry/leases/"}});
      engine = std::make_unique<apiserver::ApiServer>(*main, metrics, telemetry::Log(), std::move(options));
    }

    std::unique_ptr<store::Store> main;
    std::unique_ptr<store::Store> apart;
    telemetry::Registry metrics;
    std::unique_ptr<apiserver::ApiServer> engine;
  };

  SeparateEtcds() {
    for (const std::uint64_t seed : {1U, 2U}) {
      servers.push_back(std::make_unique<Server>(*this, fmt::format("server {}", seed), seed));
      bool ready = false;
      servers.back()->engine->start(time.now(), [&](const Outcome& outcome) {
        EXPECT_TRUE(outcome) << outcome.error().text();
        ready = true;
      });
      run(seconds(5));
      EXPECT_TRUE(ready);
      for (const std::string& path : {kOfLeases, kOfMaps}) {
        followers.push_back({.path = path, .version = "1"});
        follow(followers.size() - 1);
      }
    }
    servers.front()->engine->act(true, time.now());
  }

  std::unique_ptr<store::Store> connect(SimEtcd& etcd, const std::string& client, const std::string& name) {
    store::EtcdOptions options;
    options.name = name;
    options.seed = 5;
    return std::make_unique<store::EtcdStore>(
        etcd.connect(client), [this](std::move_only_function<void()> task) { time.after(Duration(), std::move(task)); },
        std::move(options));
  }

  std::shared_ptr<KeptAnswer> ask(Server& server, api::Method method, const std::string& target,
                                  std::string body = {}) {
    const auto sink = std::make_shared<KeptAnswer>();
    server.engine->handle({method, target, {}, std::move(body)},
                          {"admin", {}, {"system:masters", "system:authenticated"}}, sink, time.now());
    return sink;
  }

  void run(Duration duration) {
    for (const Instant end = time.now().mono + duration; time.now().mono < end;) {
      time.run_until(time.now().mono + kTick);
      for (const auto& server : servers) {
        while (server->engine->next_wakeup() && *server->engine->next_wakeup() <= time.now().mono)
          server->engine->on_wakeup(time.now());
      }
    }
  }

  void follow(std::size_t number) {
    Follower& one = followers[number];
    one.stream = ask(*servers[number / 2], api::Method::kGet,
                     fmt::format("{}?watch=1&allowWatchBookmarks=true&resourceVersion={}", one.path, one.version));
    one.read = 0;
  }

  /// Reads the events that have come on the streams; streams that have ended are opened again.
  void listen() {
    for (std::size_t number = 0; number < followers.size(); ++number) {
      Follower& one = followers[number];
      for (std::size_t end = 0; (end = one.stream->text.find('\n', one.read)) != std::string::npos;) {
        const Result<api::Json> event = api::parse_json(one.stream->text.substr(one.read, end - one.read));
        one.read = end + 1;
        ASSERT_TRUE(event);
        if (event->string_at({"type"}) == "ERROR") {
          ++one.lists;
          continue;
        }
        one.version = event->string_at({"object", "metadata", "resourceVersion"});
        if (event->string_at({"type"}) == "ADDED")
          ++one.added[std::string(event->string_at({"object", "metadata", "name"}))];
      }
      if (one.stream->ended || one.stream->answer) follow(number);
    }
  }

  /// One object of each kind every 200 ms, at the servers by turns; those that were answered 201, and the codes of all.
  void write_for(Duration duration) {
    struct Open {
      std::string path;
      std::string name;
      std::shared_ptr<KeptAnswer> sink;
    };

    std::vector<Open> open;
    for (const Instant end = time.now().mono + duration; time.now().mono < end || !open.empty();) {
      if (time.now().mono < end) {
        for (const std::string& path : {kOfLeases, kOfMaps}) {
          const std::string name = fmt::format("o{}", ++made);
          open.push_back({path, name,
                          ask(*servers[made / 2 % 2], api::Method::kPost, path,
                              fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name))});
        }
      }
      run(milliseconds(200));
      listen();
      std::erase_if(open, [&](const Open& each) {
        if (!each.sink->answer) return false;
        const int code = each.sink->answer->status;
        ++codes[each.path][code];
        if (code == 201) acknowledged[each.path].insert(each.name);
        return true;
      });
    }
  }

  std::set<std::string> there(const SimEtcd& etcd, const std::string& prefix) {
    std::set<std::string> names;
    const auto found =
        etcd.history().read({.key = prefix, .range_end = store::end_of_prefix(prefix)}, etcd.history().revision());
    for (const store::Entry& entry : found->entries) names.insert(entry.key.substr(prefix.size()));
    return names;
  }

  void expect_shown(const std::string& path, const SimEtcd& etcd, const std::string& prefix) {
    const std::set<std::string> stored = there(etcd, prefix);
    EXPECT_THAT(stored, IsSupersetOf(acknowledged[path])) << path;
    for (const Follower& one : followers) {
      if (one.path != path) continue;
      EXPECT_EQ(one.lists, 0);
      std::set<std::string> shown;
      for (const auto& [name, times] : one.added) {
        EXPECT_EQ(times, 1) << name;
        if (name != "kube-root-ca.crt") shown.insert(name);
      }
      EXPECT_THAT(shown, ElementsAreArray(stored)) << path;
    }
  }

  /// Codes of all that was not 201.
  std::map<int, int> refused(const std::string& path) {
    std::map<int, int> rest = codes[path];
    rest.erase(201);
    return rest;
  }

  void break_and_heal(SimEtcd& etcd) {
    EtcdFaults faults;
    faults.lost_ppm = 30'000;
    faults.gap_ppm = faults.repeat_ppm = faults.early_progress_ppm = 50'000;
    faults.fragment_ppm = 300'000;
    etcd.set_faults(faults);
    write_for(seconds(20));
    for (std::size_t member = 0; member < 3; ++member) etcd.replicas().stop(member);
    write_for(seconds(30));
    for (std::size_t member = 0; member < 3; ++member) etcd.replicas().start(member);
    etcd.cut_off("server 1");
    write_for(seconds(20));
    etcd.reach_again("server 1");
    etcd.set_faults({});
    write_for(seconds(90));
  }

  VirtualTime time;
  // A seed with which no watch of a server misses the same revisions twice in a row. Otherwise the server reads the
  // present state, and its clients get 410 and have to list.
  SimEtcd main{time, Rng(15), {.replicas = 3}};
  SimEtcd apart{time, Rng(12), {.replicas = 3}};
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<Follower> followers;
  std::map<std::string, std::map<int, int>> codes;
  std::map<std::string, std::set<std::string>> acknowledged;
  std::size_t made = 0;
};

TEST_F(SeparateEtcds, WhatBreaksAtTheEtcdOfLeasesIsNotNoticedElsewhere) {
  break_and_heal(apart);
  EXPECT_THAT(refused(kOfMaps), IsEmpty());
  EXPECT_FALSE(refused(kOfLeases).empty()) << "nothing broke";
  EXPECT_GT(acknowledged[kOfLeases].size(), 300U);
  expect_shown(kOfLeases, apart, "/registry/leases/default/");
  expect_shown(kOfMaps, main, "/registry/configmaps/default/");
}

TEST_F(SeparateEtcds, LeasesGoOnWithoutTheMainEtcd) {
  break_and_heal(main);
  EXPECT_THAT(refused(kOfLeases), IsEmpty());
  EXPECT_FALSE(refused(kOfMaps).empty()) << "nothing broke";
  expect_shown(kOfLeases, apart, "/registry/leases/default/");
  expect_shown(kOfMaps, main, "/registry/configmaps/default/");
}

}  // namespace
}  // namespace spillway::sim
