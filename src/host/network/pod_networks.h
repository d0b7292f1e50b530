// The networks of pods that this node attaches itself: each has a network namespace under a name, the plug-ins of the
// node's configuration give it addresses, and what is needed to end that is kept in a directory, so that pods and their
// addresses outlive the agent, and what a crash left behind is removed at the next start.
// Files: <state>/<uid>.netns, where the namespace is mounted, and <state>/<uid>.json, a CniAttachment.
// Thread: loop. Plug-ins run on threads of their own, four at a time, never two for one pod. Source: CNI specification
// 1.0.0; docs/runtimes.md, "Networks of pods".
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"
#include "api/object/pod.h"
#include "base/alive.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "host/kernel/blocking_threads.h"
#include "host/network/cni_attachment.h"
#include "runtime/loop.h"
#include "telemetry/log.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

struct PodNetworkOptions {
  std::string configuration;  // directory of the network's configuration; read at each attachment
  CniTools tools;
  std::string state;  // directory that only this object uses
};

/// The values of capabilities for the pod: portMappings, bandwidth. Plug-ins that list one get it.
api::Json capabilities_of(const api::Pod& pod);

class PodNetworks {
 public:
  struct Wish {
    std::string uid;
    api::PodKey pod;
    api::Json capabilities;
    UniqueFd network;  // the pod's network namespace
  };

  /// The pod's addresses, or an error.
  using Attached = std::function<void(Result<std::vector<std::string>>)>;
  using Detached = std::function<void()>;

  /// Reads the files that an earlier process left. Errors name the directory.
  static Result<std::unique_ptr<PodNetworks>> create(runtime::Loop& loop, telemetry::Log log,
                                                     PodNetworkOptions options);
  ~PodNetworks();
  PodNetworks(const PodNetworks&) = delete;
  PodNetworks& operator=(const PodNetworks&) = delete;

  /// Takes a pod over that an earlier process attached: its addresses. nullopt: that process did not finish.
  std::optional<std::vector<std::string>> keep(const std::string& uid);
  /// Ends attachments that are left and were not kept.
  void remove_leftovers();

  /// `attached` is called later, once. While there is no configuration it waits, ten seconds at most.
  void attach(Wish wish, Attached attached);
  /// Ends the pod's attachment, also one that is being made; one that waits is not made. `detached` is called later,
  /// when nothing is left; after a failure DEL is repeated until end().
  void detach(const std::string& uid, Detached detached);

  /// Begins the end of the process: after the first failure the files stay for the next start.
  void end() { ending_ = true; }

 private:
  struct Waiting {
    Wish wish;
    Attached attached;
  };

  struct Entry {
    bool busy = false;
    bool detaching = false;
    int failures = 0;
    std::vector<Detached> detached;
    std::optional<Waiting> next;  // the attachment to be made when the former one has ended
  };

  PodNetworks(runtime::Loop& loop, telemetry::Log log, PodNetworkOptions options);

  Outcome read_state();
  void try_attach(std::shared_ptr<Wish> wish, Attached attached, Instant until);
  void finish_attach(const std::string& uid, Result<std::vector<std::string>> ips, const Attached& attached);
  void start_detach(const std::string& uid);
  void finish_detach(const std::string& uid, const Outcome& outcome);

  runtime::Loop& loop_;
  telemetry::Log log_;
  std::shared_ptr<const PodNetworkOptions> options_;
  std::map<std::string, std::optional<std::vector<std::string>>> left_;  // by an earlier process: uids, addresses
  std::map<std::string, Entry> entries_;
  bool ending_ = false;
  Alive alive_;
  BlockingThreads threads_;
};

}  // namespace spillway::host
