// Goal: what no container uses goes, and nothing else, whatever the runtime says of its own image and of those that are
// about to be used.
#include "host/containers/image_collector.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace spillway::host {
namespace {

using api::Json;

Json image(std::string_view id, std::string_view tag, std::string_view more = "{}") {
  Json made = *api::parse_json(more);
  made["id"] = id;
  made["size"] = "1000";
  made.make({"repo_tags"}) = Json::array();
  made["repo_tags"].if_array()->emplace_back(tag);
  return made;
}

/// Answers from its own lists, each time on the loop.
class FakeRuntime final : public RuntimeCalls {
 public:
  explicit FakeRuntime(runtime::Loop& loop) : loop_(loop) {}

  void call(std::string_view method, Json request, Duration /*deadline*/, Answer answer) override {
    Result<Json> result = Json::object();
    if (method == "Status") result = Json::object({{"info", Json::object({{"config", config}})}});
    if (method == "ListImages") result = Json::object({{"images", images}});
    if (method == "ListContainers") result = Json::object({{"containers", containers}});
    if (method == "RemoveImage") {
      const std::string id(request.string_at({"image", "image"}));
      asked.push_back(id);
      if (hangs) result = Error{ErrorCode::kTimeout, "no answer", "DeadlineExceeded"};
      if (stuck.contains(id)) result = Error{ErrorCode::kInternalError, "in use", "Unknown"};
    }
    loop_.post([answer = std::move(answer), result = std::move(result)]() mutable { answer(std::move(result)); });
  }

  std::string config = "{}";  // the runtime's own configuration, as it reports it
  Json images = Json::array();
  Json containers = Json::array();
  std::set<std::string> stuck;
  bool hangs = false;  // in removals
  std::vector<std::string> asked;

 private:
  runtime::Loop& loop_;
};

class ImageCollectorTest : public ::testing::Test {
 protected:
  ImageCollectorTest() { policy_.min_age = Duration{}; }

  void add(Json image) { runtime_.images.if_array()->push_back(std::move(image)); }

  ImageCollector::Reclaimed reclaim() {
    ImageCollector collector(loop_,
                             {.calls = runtime_,
                              .file_system = [] { return agent::ImageFileSystem{}; },
                              .is_wanted = [this](const ListedImage& each) { return wanted_.contains(each.id); },
                              .record_event = [](const agent::GcEvent&) {}},
                             telemetry::Log(), policy_);
    std::optional<ImageCollector::Reclaimed> done;
    collector.reclaim([&](ImageCollector::Reclaimed reclaimed) {
      done = std::move(reclaimed);
      loop_.stop();
    });
    loop_.run({});
    return *done;
  }

  using Ids = std::vector<std::string>;

  runtime::Loop loop_;
  FakeRuntime runtime_{loop_};
  agent::ImageGcPolicy policy_;
  std::set<std::string> wanted_;
};

TEST_F(ImageCollectorTest, RemovesWhatNoContainerUses) {
  add(image("sha256:used", "a:1"));
  add(image("sha256:named", "b:1"));
  add(image("sha256:idle", "c:1"));
  runtime_.containers = *api::parse_json(R"([{"image_ref":"sha256:used"},{"image":{"image":"b:1"},"state":2}])");
  const auto done = reclaim();
  EXPECT_EQ(runtime_.asked, Ids{"sha256:idle"});
  EXPECT_EQ(done.images, 1);
  EXPECT_EQ(done.bytes, 1000);
  EXPECT_EQ(done.problem, "");
}

TEST_F(ImageCollectorTest, KeepsTheImageOfTheSandboxes) {
  add(image("sha256:p", "registry.k8s.io/pause:3.9"));
  EXPECT_EQ(reclaim().images, 0) << "by its name, where the runtime says nothing";
  add(image("sha256:q", "example.com/infra:1"));
  runtime_.config = R"({"sandboxImage":"example.com/infra:1"})";
  EXPECT_EQ(reclaim().images, 1);
  EXPECT_EQ(runtime_.asked, Ids{"sha256:p"}) << "another one is an image like any other";
}

TEST_F(ImageCollectorTest, KeepsWhatIsPinnedAndWhatIsAboutToRun) {
  add(image("sha256:pinned", "a:1", R"({"pinned":true})"));
  add(image("sha256:starts", "b:1"));
  wanted_.insert("sha256:starts");
  EXPECT_EQ(reclaim().images, 0);
  EXPECT_EQ(runtime_.asked, Ids());
}

TEST_F(ImageCollectorTest, GoesOnAfterOneThatStays) {
  add(image("sha256:a", "a:1"));
  add(image("sha256:b", "b:1"));
  runtime_.stuck.insert("sha256:a");
  const auto done = reclaim();
  EXPECT_EQ(runtime_.asked, (Ids{"sha256:a", "sha256:b"}));
  EXPECT_EQ(done.images, 1);
  EXPECT_TRUE(done.problem.contains("in use")) << done.problem;
}

TEST_F(ImageCollectorTest, ARuntimeThatDoesNotAnswerIsAskedOnce) {
  add(image("sha256:a", "a:1"));
  add(image("sha256:b", "b:1"));
  runtime_.hangs = true;
  const auto done = reclaim();
  EXPECT_EQ(runtime_.asked, Ids{"sha256:a"});
  EXPECT_TRUE(done.problem.contains("no answer")) << done.problem;
}

TEST_F(ImageCollectorTest, YoungOnesStay) {
  policy_.min_age = hours(1);
  add(image("sha256:a", "a:1"));
  EXPECT_EQ(reclaim().images, 0);
}

}  // namespace
}  // namespace spillway::host
