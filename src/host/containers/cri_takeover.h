// Finds the pods that earlier processes of this node left: in the runtime, below the node's cgroup, on disk. They are
// listed once, as soon as the runtime answers, and reported as one PodsFound; before that the table of pods is not
// complete. Thread: loop. Bounds: one inventory at a time, a deadline on every call. Source:
// docs/adr/0012-warm-restart.md.
#pragma once

#include "agent/contract/ports.h"
#include "api/json/json.h"
#include "host/containers/cri_container_ends.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pod_cgroups.h"
#include "host/containers/cri_pods.h"
#include "host/containers/cri_status_feed.h"
#include "host/containers/log_folders.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

class CriTakeover {
 public:
  /// Classes of the runtime to which parts of the pods belong afterwards. All outlive this object.
  struct Means {
    const CriPodCgroups& cgroups;
    CriContainerEnds& container_ends;
    CriStatusFeed& status;
    const LogFolders& log_folders;
  };

  /// All outlive this object.
  CriTakeover(const CriHost& host, CriPods& pods, Means means) : host_(host), pods_(pods), means_(means) {}

  CriTakeover(const CriTakeover&) = delete;
  CriTakeover& operator=(const CriTakeover&) = delete;
  ~CriTakeover() = default;

  /// Takes an inventory, unless one is under way or has been taken: asks the runtime about everything that it lists,
  /// then adds what it does not have, then fills the table of pods. If something cannot be read, the next list begins
  /// anew.
  void start(const api::Json& sandboxes, const api::Json& containers);

 private:
  enum class State { kNotTaken, kAsking, kDone };

  /// Pods found so far, while further answers of the runtime are pending.
  struct Inventory;
  using InventoryPtr = std::shared_ptr<Inventory>;

  void ask_name(const InventoryPtr& all);
  void inspect_sandbox(const InventoryPtr& all, const api::Json& sandbox);
  void inspect_container(const InventoryPtr& all, const api::Json& container);
  void on_container(Inventory& all, const std::string& uid, const api::Json& status) const;
  api::ContainerState::Terminated end_of(const agent::FoundContainer& container, const CriPod& pod,
                                         const std::string& uid, const api::Json& status) const;
  void ask(const InventoryPtr& all, std::string_view method, api::Json request,
           std::function<void(const api::Json&)> then);
  void release(const InventoryPtr& all);

  void take_over(Inventory& all);
  void find_cgroups(Inventory& all) const;
  void find_directories(Inventory& all) const;
  static void adopt_volumes(CriPod& pod, const std::vector<std::string>& mounts);
  void adopt_containers(const Inventory& all, const agent::FoundPod& found, CriPod& pod) const;
  void watch_containers();

  const CriHost& host_;
  CriPods& pods_;
  Means means_;
  State state_ = State::kNotTaken;
};

}  // namespace spillway::host
