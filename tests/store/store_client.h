// Blocking calls on a store, and a watcher that writes down what it sees: for tests of any store.
// Thread: the test's.
#pragma once

#include "store/store.h"
#include "store/test_loop.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::store {

inline Value value_of(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

inline std::string text_of(const Value& value) {
  return value ? *value : "(none)";
}

/// A change as text: "3 a: 1 -> 2" for an update of a at revision 3; "(none)" stands for absent.
inline std::string describe(const Change& change) {
  return fmt::format("{} {}: {} -> {}", change.revision.number(), change.key, text_of(change.previous),
                     text_of(change.value));
}

/// "a=1 c1 m2 v2": value, create revision, mod revision, version.
inline std::string describe(const Entry& entry) {
  return fmt::format("{}={} c{} m{} v{}", entry.key, text_of(entry.value), entry.create_revision.number(),
                     entry.mod_revision.number(), entry.version);
}

inline std::vector<std::string> describe(const std::vector<Entry>& entries) {
  std::vector<std::string> out;
  for (const Entry& entry : entries) out.push_back(describe(entry));
  return out;
}

class RecordingWatcher final : public Watcher {
 public:
  void on_changes(const std::vector<Change>& changes) override {
    EXPECT_FALSE(changes.empty());
    for (const Change& change : changes) {
      EXPECT_LT(last_, change.revision) << "revisions must grow";
      last_ = change.revision;
      seen.push_back(describe(change));
      created.push_back(change.create_revision);
    }
  }

  void on_watch_end(const Error& error) override {
    EXPECT_FALSE(end) << "a watch ends once";
    end = error;
  }

  std::vector<std::string> seen;
  std::vector<Revision> created;
  std::optional<Error> end;

 private:
  Revision last_;
};

class StoreClient {
 public:
  StoreClient(Store& store, TestLoop& loop) : store_(store), loop_(loop) {}

  Result<WriteResult> write(Write write) {
    return wait<WriteResult>([&](auto done) { store_.write(std::move(write), std::move(done)); });
  }

  Result<WriteResult> put(std::string key, std::string text, std::optional<Revision> expected = std::nullopt) {
    return write(Write{std::move(key), value_of(std::move(text)), expected});
  }

  Result<WriteResult> remove(std::string key, std::optional<Revision> expected = std::nullopt) {
    return write(Write{std::move(key), nullptr, expected});
  }

  Result<RangeResult> range(Range range) {
    return wait<RangeResult>([&](auto done) { store_.range(std::move(range), std::move(done)); });
  }

  Result<Revision> compact(Revision revision) {
    return wait<Revision>([&](auto done) { store_.compact(revision, std::move(done)); });
  }

 private:
  template <typename T, typename Start>
  Result<T> wait(Start start) {
    auto answer = std::make_shared<std::optional<Result<T>>>();
    start(Completion<T>([answer](Result<T> result) { answer->emplace(std::move(result)); }));
    EXPECT_FALSE(answer->has_value()) << "completed inside the call";
    if (!loop_.run_until([&] { return answer->has_value(); })) return make_error(ErrorCode::kTimeout, "no completion");
    return std::move(**answer);
  }

  Store& store_;
  TestLoop& loop_;
};

}  // namespace spillway::store
