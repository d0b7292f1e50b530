// `spillway demo`: an eviction and a node failure on this machine, with real processes, in about half a minute.
// Everything that is claimed is checked through the API and in the cgroups. Thread: main.
#pragma once

#include "apps/demo/child_process.h"
#include "apps/demo/screen.h"
#include "apps/view/cluster_view.h"
#include "base/error.h"
#include "host/cgroup/cgroup.h"
#include "runtime/loop.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apps {

class Demo {
 public:
  enum class Keep { kNo, kYes };

  explicit Demo(Keep keep) : keep_(keep) {}

  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  /// An exit code: 0 only if everything happened; 130 after Ctrl-C.
  int run();

 private:
  Outcome run_chapters();
  Outcome start_cluster();
  Outcome start_pods();
  Outcome show_pressure();
  Outcome watch_hog(const api::Json& hog);
  void explain_eviction();
  void check_survivors();
  Outcome show_silence();
  Outcome show_recovery();
  void stop_cluster();
  void check_nothing_left();

  /// Checks every 50 ms until `condition` holds; prints the time it took. An error after `patience`, or on Ctrl-C.
  Outcome wait_for(std::string_view what, Duration patience, const std::function<bool()>& condition);
  Outcome create(const std::string& path, const api::Json& object);
  api::Json node(const std::string& name);
  /// True if an event with this reason is about the object.
  bool has_event(const std::string& object, const std::string& reason);
  api::Json::Array pods();
  /// Pods of the ReplicaSet that run on that node and are not ending.
  std::size_t web_pods_on(std::string_view node);
  Result<host::CgroupDir> slice_of(const std::string& node, const std::string& data_dir) const;

  Keep keep_;
  Screen screen_;
  runtime::Loop loop_;
  std::string folder_;
  std::optional<ChildProcess> up_;
  std::optional<ChildProcess> second_agent_;
  std::unique_ptr<ClusterView> cluster_;
  std::vector<std::string> cgroup_paths_;  // cgroups of the demo; it checks at its end that they are gone
};

}  // namespace spillway::apps
