// Lists the sandboxes and containers of a container runtime every second: the ends of containers that their processes
// did not show, lost sandboxes, and what no known pod has. The first list is the takeover's. Thread: loop. Bounds: one
// list at a time, a deadline on every call. Source: spec "Node agent", 7; Kubernetes docs, "Container Runtime Interface
// (CRI)".
#pragma once

#include "agent/cri/lifecycle_events.h"
#include "api/json/json.h"
#include "base/alive.h"
#include "base/time.h"
#include "host/containers/cri_container_ends.h"
#include "host/containers/cri_options.h"
#include "host/containers/cri_pods.h"
#include "host/containers/cri_sandboxes.h"
#include "host/containers/cri_status_feed.h"
#include "host/containers/cri_takeover.h"

#include <map>
#include <set>
#include <string>

namespace spillway::host {

class CriListing {
 public:
  /// Classes of the runtime that act on a list. All outlive this object. `records`: of lists of containers.
  struct Means {
    agent::LifecycleRecords& records;
    CriTakeover& takeover;
    CriSandboxes& sandboxes;
    CriContainerEnds& container_ends;
    CriStatusFeed& status;
  };

  /// All outlive this object.
  CriListing(const CriHost& host, CriPods& pods, Means means) : host_(host), pods_(pods), means_(means) {}

  CriListing(const CriListing&) = delete;
  CriListing& operator=(const CriListing&) = delete;
  ~CriListing() = default;

  /// Lists now, and every second.
  void start();

 private:
  void on_sandboxes(Instant began, Result<api::Json> sandboxes);
  void on_containers(Instant began, const api::Json& sandboxes, const Result<api::Json>& containers);
  void list_again(Instant began);
  std::map<std::string, agent::ListedPod> listed_pods(const api::Json& sandboxes, const api::Json& containers) const;
  void find_ends(const api::Json& sandboxes, const api::Json& containers);
  void remove_strays(const api::Json& sandboxes, const api::Json& containers);
  void remove_stray(const std::string& id, bool is_sandbox);

  const CriHost& host_;
  CriPods& pods_;
  Means means_;
  std::set<std::string> strays_;  // ids that are being removed
  Alive alive_;
};

}  // namespace spillway::host
