// Several API servers over one store in memory, on one clock, or over two, of which one holds some of the resources.
// Each sees a store through a view that can be late with what others write, can keep its own writes back, and can be
// cut off from the store. Thread: the test's.
#pragma once

#include "apiserver/server_fixture.h"
#include "store/memory_store.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {

/// The state that one server sees. Answers arrive after the changes that they are about, as the port demands.
class LateView final : public store::Store {
 public:
  explicit LateView(store::Store& store) : store_(store) {}

  void write(store::Write write, store::Completion<store::WriteResult> done) override {
    if (away) return done(make_error(ErrorCode::kServiceUnavailable, "{} is away", name));
    if (keeps_writes(write)) {
      kept_.emplace_back(std::move(write), std::move(done));
      return;
    }
    store_.write(std::move(write), after_changes(std::move(done)));
  }

  void range(store::Range range, store::Completion<store::RangeResult> done) override {
    ++ranges;
    if (away) return done(make_error(ErrorCode::kTimeout, "{} is away", name));
    if (keeps_ranges(range)) {
      kept_ranges_.emplace_back(std::move(range), std::move(done));
      return;
    }
    store_.range(std::move(range), after_changes(std::move(done)));
  }

  store::WatchId watch(std::string prefix, store::Revision after, store::Watcher& watcher) override {
    watcher_.view = this;
    watcher_.to = &watcher;
    return store_.watch(std::move(prefix), after, watcher_);
  }

  void unwatch(store::WatchId id) override { store_.unwatch(id); }

  void compact(store::Revision revision, store::Completion<store::Revision> done) override {
    store_.compact(revision, std::move(done));
  }

  bool is_shared() const override { return true; }

  std::optional<std::string> refusing() const override {
    return away && is_known_to_be_away ? std::optional(name + " does not answer") : std::nullopt;
  }

  store::Revision revision() const override { return store_.revision(); }

  store::Revision compacted() const override { return store_.compacted(); }

  void release_writes() {
    keeps_writes = [](const store::Write&) { return false; };
    for (auto& [write, done] : std::exchange(kept_, {})) this->write(std::move(write), std::move(done));
  }

  std::size_t kept() const { return kept_.size(); }

  const std::string& kept_key(std::size_t index) const { return kept_.at(index).first.key; }

  void release_ranges() {
    keeps_ranges = [](const store::Range&) { return false; };
    for (auto& [range, done] : std::exchange(kept_ranges_, {})) this->range(std::move(range), std::move(done));
  }

  std::size_t ranges_kept() const { return kept_ranges_.size(); }

  /// Delivers all delayed changes, and others as they come.
  void deliver_all() {
    late = false;
    deliver();
  }

  /// Delivers the first delayed change alone.
  void deliver_one() {
    const store::Change first = changes_.front();
    changes_.erase(changes_.begin());
    watcher_.to->on_changes({first});
  }

  void end_watch(const Error& error) {
    changes_.clear();
    watcher_.to->on_watch_end(error);
  }

  bool late = false;  // delays the changes of other writers
  bool away = false;
  bool is_known_to_be_away = true;  // the server knows that the store is down, if it is
  std::string name = "the store";
  int ranges = 0;  // range requests, barriers among them
  std::function<bool(const store::Write&)> keeps_writes = [](const store::Write&) { return false; };
  std::function<bool(const store::Range&)> keeps_ranges = [](const store::Range&) { return false; };

 private:
  struct Watcher final : store::Watcher {
    void on_changes(const std::vector<store::Change>& changes) override {
      view->changes_.insert(view->changes_.end(), changes.begin(), changes.end());
      if (!view->late) view->deliver();
    }

    void on_watch_end(const Error& error) override { to->on_watch_end(error); }

    LateView* view = nullptr;
    store::Watcher* to = nullptr;
  };

  void deliver() {
    if (!changes_.empty()) watcher_.to->on_changes(std::exchange(changes_, {}));
  }

  template <typename T>
  store::Completion<T> after_changes(store::Completion<T> done) {
    return [this, done = std::move(done)](Result<T> result) mutable {
      deliver();
      done(std::move(result));
    };
  }

  store::Store& store_;
  Watcher watcher_;
  std::vector<store::Change> changes_;
  std::vector<std::pair<store::Write, store::Completion<store::WriteResult>>> kept_;
  std::vector<std::pair<store::Range, store::Completion<store::RangeResult>>> kept_ranges_;
};

class SharedServers {
 public:
  struct Server {
    Server(SharedServers& all, std::uint64_t seed, AdmissionRules admission);

    LateView view;
    LateView apart;
    telemetry::Registry metrics;
    std::unique_ptr<ApiServer> api;
    std::size_t wakeups = 0;  // slices of something long among them
  };

  /// `separate`: Resource::storage of the resources in `apart`.
  explicit SharedServers(std::vector<std::string> separate = {})
      : store([this](std::move_only_function<void()> task) { tasks_.push_back(std::move(task)); }),
        apart([this](std::move_only_function<void()> task) { tasks_.push_back(std::move(task)); }),
        separate(std::move(separate)),
        now{Instant(seconds(1000)), WallTime(seconds(1'800'000'000))} {}

  Server& add(AdmissionRules admission = {}) {
    servers_.push_back(std::make_unique<Server>(*this, servers_.size() + 1, std::move(admission)));
    return *servers_.back();
  }

  std::shared_ptr<TestSink> begin(Server& server, api::Method method, std::string target, std::string body = {}) {
    auto sink = std::make_shared<TestSink>();
    server.api->handle({method, std::move(target), {}, std::move(body)}, kAdmin, sink, now);
    return sink;
  }

  Answer call(Server& server, api::Method method, std::string target, std::string body = {}) {
    const auto sink = begin(server, method, std::move(target), std::move(body));
    run_until_idle();
    return answer_of(*sink);
  }

  static Answer answer_of(const TestSink& sink) {
    EXPECT_TRUE(sink.answered());
    if (!sink.answered()) return {};
    Answer answer{sink.response->status, sink.response->headers, sink.response->body, {}};
    if (Result<api::Json> parsed = api::parse_json(answer.text)) answer.body = *std::move(parsed);
    return answer;
  }

  void run_until_idle() {
    for (;;) {
      bool woken = false;
      for (const auto& server : servers_) {
        if (!server->api->next_wakeup() || *server->api->next_wakeup() > now.mono) continue;
        server->api->on_wakeup(now);
        ++server->wakeups;
        woken = true;
      }
      if (tasks_.empty() && !woken) return;
      if (tasks_.empty()) continue;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }

  void advance(Duration by) {
    for (const Instant end = now.mono + by; now.mono < end;) {
      const Duration step = std::min<Duration>(end - now.mono, seconds(1));
      now.mono += step;
      now.wall += std::chrono::duration_cast<microseconds>(step);
      run_until_idle();
    }
  }

  /// Keys of the store below a prefix, without it.
  std::vector<std::string> keys(const std::string& prefix) { return keys(store, prefix); }

  std::vector<std::string> keys(store::Store& of, const std::string& prefix) {
    std::vector<std::string> found;
    of.range({prefix, {}, 0, {}}, [&](const Result<store::RangeResult>& result) {
      for (const store::Entry& entry : result->entries) found.push_back(entry.key.substr(prefix.size()));
    });
    run_until_idle();
    return found;
  }

 private:
  std::deque<std::move_only_function<void()>> tasks_;

 public:
  store::MemoryStore store;
  store::MemoryStore apart;
  std::vector<std::string> separate;
  Now now;

 private:
  std::vector<std::unique_ptr<Server>> servers_;
};

inline SharedServers::Server::Server(SharedServers& all, std::uint64_t seed, AdmissionRules admission)
    : view(all.store), apart(all.apart) {
  ApiServer::Options options{.seed = seed};
  options.admission = std::move(admission);
  if (!all.separate.empty()) options.separate.push_back({&apart, "separate", all.separate});
  apart.name = "the separate store";
  api = std::make_unique<ApiServer>(view, metrics, telemetry::Log(), std::move(options));
  bool ready = false;
  api->start(all.now, [&](const Outcome& outcome) {
    EXPECT_TRUE(outcome);
    ready = true;
  });
  all.run_until_idle();
  EXPECT_TRUE(ready);
}

}  // namespace spillway::apiserver
