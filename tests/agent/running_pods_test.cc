// Goal: /runningpods/ lists what the runtime runs, newest first, with the images that the pods' statuses report.
#include "agent/serving/running_pods.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::agent {
namespace {

WallTime made_at(int second) {
  return WallTime(seconds(second));
}

api::Container imaged_container(const std::string& name, const std::string& image) {
  api::Container made;
  made.name = name;
  made.image = image;
  return made;
}

TEST(RunningPods, HaveNamesAndImagesAlone) {
  api::Pod pod;
  pod.metadata.uid = "u1";
  pod.metadata.labels["app"] = "web";
  pod.spec.containers = {imaged_container("main", "web:2"), imaged_container("late", "late:1")};
  pod.spec.init_containers = {imaged_container("side", "side:1")};
  api::ContainerStatus status;
  status.name = "main";
  status.image = "registry.test/web:1";
  pod.status.container_statuses = {status};
  EXPECT_EQ(
      running_pods_page(
          {{.uid = "u1", .pod = {"default", "web"}, .created = made_at(5), .containers = {"main", "side"}}}, {pod}),
      R"({"apiVersion":"v1","items":[{"metadata":{"name":"web","namespace":"default","uid":"u1"},)"
      R"("spec":{"containers":[{"image":"registry.test/web:1","name":"main","resources":{}},)"
      R"({"image":"side:1","name":"side","resources":{}}]},"status":{}}],"kind":"PodList","metadata":{}})");
}

TEST(RunningPods, OfOthersHaveNoImage) {
  EXPECT_EQ(
      running_pods_page({{.uid = "u9", .pod = {"default", "gone"}, .created = made_at(5), .containers = {"c"}}}, {}),
      R"({"apiVersion":"v1","items":[{"metadata":{"name":"gone","namespace":"default","uid":"u9"},)"
      R"("spec":{"containers":[{"image":"","name":"c","resources":{}}]},"status":{}}],"kind":"PodList","metadata":{}})");
}

TEST(RunningPods, BeginWithTheNewest) {
  const std::string page =
      running_pods_page({{.uid = "u1", .pod = {"a", "old"}, .created = made_at(1), .containers = {}},
                         {.uid = "u2", .pod = {"b", "new"}, .created = made_at(9), .containers = {}},
                         {.uid = "u3", .pod = {"a", "beside"}, .created = made_at(9), .containers = {}}},
                        {});
  EXPECT_LT(page.find("beside"), page.find("new"));
  EXPECT_LT(page.find("new"), page.find("old"));
  EXPECT_EQ(running_pods_page({}, {}), R"({"apiVersion":"v1","items":[],"kind":"PodList","metadata":{}})");
}

}  // namespace
}  // namespace spillway::agent
