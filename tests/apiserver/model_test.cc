// Random writes against a model of fifty lines: what the server holds, what its watchers saw, what a restart leaves.
#include "apiserver/server_fixture.h"
#include "base/rng.h"

#include <gtest/gtest.h>

#include <map>

namespace spillway::apiserver {

namespace {

/// name → (value, label, version, held by a finalizer, being deleted).
struct Entry {
  std::string value;
  std::string label;
  std::string version;
  bool held = false;
  bool deleting = false;
};

using Model = std::map<std::string, Entry>;

std::string document(const std::string& name, const Entry& entry, const std::string& version) {
  return R"({"metadata":{"name":")" + name + R"(","labels":{"l":")" + entry.label + "\"}" +
         (version.empty() ? "" : R"(,"resourceVersion":")" + version + "\"") +
         (entry.held ? R"(,"finalizers":["x.io/f"])" : "") + R"(},"data":{"v":")" + entry.value + "\"}}";
}

class ModelRun {
 public:
  explicit ModelRun(std::uint64_t seed) : rng_(seed) {}

  void run(int steps) {
    const std::string start = server_.get(kMaps).string_at({"metadata", "resourceVersion"});
    all_ = server_.watch(std::string(kMaps) + "?watch=1&resourceVersion=" + start + "&timeoutSeconds=100000");
    one_ = server_.watch(std::string(kMaps) + "?watch=1&labelSelector=l%3D1&resourceVersion=" + start +
                         "&timeoutSeconds=100000");
    for (int i = 0; i < steps; ++i) {
      step();
      if (::testing::Test::HasFailure()) return;
    }
    compare_with_server();
    compare_with_watch(*all_, [](const Entry&) { return true; });
    compare_with_watch(*one_, [](const Entry& entry) { return entry.label == "1"; });
    const auto replayed = server_.watch(std::string(kMaps) + "?watch=1&resourceVersion=" + start);
    EXPECT_EQ(replayed->text, all_->text) << "history is what was seen live";
    server_.restart();
    compare_with_server();
  }

 private:
  std::string random_name() { return "m" + std::to_string(rng_.below(6)); }

  void step() {
    const std::string name = random_name();
    const std::string path = std::string(kMaps) + "/" + name;
    const auto found = model_.find(name);
    switch (rng_.below(6)) {
      case 0:
        return create(name);
      case 1: {  // PUT, at times with a stale version
        if (found == model_.end()) return expect(server_.put(path, document(name, {}, "")), 404);
        Entry next = random_entry();
        next.held = found->second.held;
        next.deleting = found->second.deleting;
        const bool stale = rng_.below(3) == 0;
        const Answer answer = server_.put(path, document(name, next, stale ? "1" : found->second.version));
        if (stale) return expect(answer, 409);
        expect(answer, 200);
        return keep(name, next, answer);
      }
      case 2: {  // merge patch of the value
        const std::string value = std::to_string(rng_.below(3));
        const Answer answer = server_.merge(path, R"({"data":{"v":")" + value + "\"}}");
        if (found == model_.end()) return expect(answer, 404);
        expect(answer, 200);
        if (found->second.value == value) {
          EXPECT_EQ(version_of(answer), found->second.version);
        }
        Entry next = found->second;
        next.value = value;
        return keep(name, next, answer);
      }
      case 3: {  // release the finalizer
        if (found == model_.end()) return;
        const Answer answer = server_.merge(path, R"({"metadata":{"finalizers":null}})");
        expect(answer, 200);
        if (found->second.deleting) {
          model_.erase(found);
          return;
        }
        Entry next = found->second;
        next.held = false;
        return keep(name, next, answer);
      }
      default: {  // delete
        const Answer answer = server_.remove(path);
        if (found == model_.end()) return expect(answer, 404);
        expect(answer, 200);
        if (!found->second.held) {
          model_.erase(found);
          return;
        }
        Entry next = found->second;
        next.deleting = true;
        return keep(name, next, answer);
      }
    }
  }

  Entry random_entry() {
    return {.value = std::to_string(rng_.below(3)), .label = std::to_string(rng_.below(3)), .held = rng_.below(3) == 0};
  }

  void create(const std::string& name) {
    const Entry entry = random_entry();
    const Answer answer = server_.post(kMaps, document(name, entry, ""));
    if (model_.contains(name)) return expect(answer, 409);
    expect(answer, 201);
    keep(name, entry, answer);
  }

  static std::string version_of(const Answer& answer) { return answer.string_at({"metadata", "resourceVersion"}); }

  static void expect(const Answer& answer, int code) { EXPECT_EQ(answer.code, code) << answer.text; }

  void keep(const std::string& name, Entry entry, const Answer& answer) {
    entry.version = version_of(answer);
    EXPECT_EQ(answer.string_at({"data", "v"}), entry.value);
    EXPECT_EQ(answer.body.at({"metadata", "deletionTimestamp"}) != nullptr, entry.deleting);
    model_[name] = std::move(entry);
  }

  void compare_with_server() {
    const Answer list = server_.get(kMaps);
    Model there;
    for (const api::Json& item : *list.body.find("items")->if_array())
      there[std::string(item.string_at({"metadata", "name"}))] = entry_of(item);
    compare(there, model_);
  }

  static Entry entry_of(const api::Json& item) {
    return {std::string(item.string_at({"data", "v"})), std::string(item.string_at({"metadata", "labels", "l"})),
            std::string(item.string_at({"metadata", "resourceVersion"})),
            item.at({"metadata", "finalizers"}) != nullptr, item.at({"metadata", "deletionTimestamp"}) != nullptr};
  }

  static void compare(const Model& got, const Model& want) {
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, entry] : want) {
      ASSERT_TRUE(got.contains(name)) << name;
      EXPECT_EQ(got.at(name).version, entry.version) << name;
      EXPECT_EQ(got.at(name).value, entry.value) << name;
      EXPECT_EQ(got.at(name).label, entry.label) << name;
    }
  }

  /// Compares the state that a client computes from its watch.
  void compare_with_watch(const TestSink& sink, bool (*selected)(const Entry&)) {
    Model seen;
    std::uint64_t last = 0;
    for (const api::Json& event : sink.events()) {
      const api::Json& object = *event.find("object");
      const std::string name(object.string_at({"metadata", "name"}));
      const std::uint64_t version = std::stoull(std::string(object.string_at({"metadata", "resourceVersion"})));
      EXPECT_GT(version, last);
      last = version;
      const std::string_view type = event.string_at({"type"});
      EXPECT_EQ(type == "ADDED", !seen.contains(name)) << api::to_text(event);
      if (type == "DELETED") {
        seen.erase(name);
      } else {
        seen[name] = entry_of(object);
      }
    }
    Model want;
    for (const auto& [name, entry] : model_) {
      if (selected(entry)) want[name] = entry;
    }
    compare(seen, want);
  }

  Rng rng_;
  TestServer server_;
  Model model_;
  std::shared_ptr<TestSink> all_;
  std::shared_ptr<TestSink> one_;
};

class RandomWork : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomWork, EndsInTheStateOfTheModel) {
  ModelRun(GetParam()).run(400);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWork, ::testing::Range<std::uint64_t>(1, 11));

}  // namespace

}  // namespace spillway::apiserver
