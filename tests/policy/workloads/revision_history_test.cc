// The current revision, revision numbers, and the old revisions to delete.
#include "policy/workloads/revision_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spillway::workloads {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

api::PodTemplate with_image(std::string_view image) {
  api::PodTemplate made;
  made.labels = {{"app", "agent"}};
  made.metadata = api::Json::object({{"labels", api::Json::object({{"app", "agent"}})}});
  made.spec = api::Json::object({{"containers", api::Json::array({api::Json::object({{"image", image}})})}});
  return made;
}

class RevisionHistory : public ::testing::Test {
 protected:
  RevisionHistory() {
    set.metadata.name = "agent";
    set.metadata.ns = "default";
    set.pod_template = with_image("present");
    set.revision_history_limit = 1;
  }

  void add(std::string_view image, std::int64_t number) {
    api::ControllerRevision revision;
    revision.metadata.name = image;
    revision.metadata.labels[std::string(kRevisionHash)] = image;
    revision.data = template_data(with_image(image));
    revision.revision = number;
    owned.push_back(std::make_shared<const api::ControllerRevision>(std::move(revision)));
  }

  RevisionPlan plan() const { return plan_revisions(set, owned, used); }

  static std::vector<std::string> names(const std::vector<RevisionPtr>& revisions) {
    std::vector<std::string> names;
    for (const RevisionPtr& each : revisions) names.push_back(each->metadata.name);
    return names;
  }

  api::DaemonSet set;
  std::vector<RevisionPtr> owned;
  std::set<std::string> used;
};

TEST_F(RevisionHistory, ANewTemplateGetsTheNextNumber) {
  add("first", 1);
  add("second", 4);
  const RevisionPlan made = plan();
  EXPECT_EQ(made.current, nullptr);
  ASSERT_TRUE(made.create.has_value());
  EXPECT_EQ(made.create->revision, 5);
  EXPECT_EQ(made.create->metadata.name, "agent-" + revision_hash(made.create->metadata));
  EXPECT_EQ(made.create->metadata.labels.at("app"), "agent");
  EXPECT_EQ(made.create->data.string_at({"spec", "template", "$patch"}), "replace");
}

TEST_F(RevisionHistory, ACollisionLeadsToAnotherName) {
  const std::string before = plan().create->metadata.name;
  set.status.collision_count = 1;
  EXPECT_NE(plan().create->metadata.name, before);
}

TEST_F(RevisionHistory, AnOldTemplateThatIsUsedAgainIsTheLatest) {
  add("present", 1);
  add("second", 2);
  const RevisionPlan made = plan();
  EXPECT_FALSE(made.create.has_value());
  EXPECT_EQ(made.current->metadata.name, "present");
  EXPECT_EQ(made.renumber, 3);
  EXPECT_THAT(made.remove, IsEmpty());
}

TEST_F(RevisionHistory, TheOldestBeyondTheLimitGoUnlessPodsAreOfThem) {
  add("present", 5);
  for (const auto& [image, number] : {std::pair("d", 4), std::pair("a", 1), std::pair("c", 3), std::pair("b", 2)}) {
    add(image, number);
  }
  EXPECT_EQ(plan().renumber, std::nullopt);
  EXPECT_THAT(names(plan().remove), ElementsAre("a", "b", "c"));
  used = {"a"};
  EXPECT_THAT(names(plan().remove), ElementsAre("b", "c", "d"));
}

}  // namespace
}  // namespace spillway::workloads
