// Writes the taints of nodes: edits of one node are collected, applied to its newest known state and written as one
// patch guarded by resourceVersion; a conflict is answered by reading the node and applying the edits again.
// Thread: loop. Bounds: one call per node in flight, five attempts per batch of edits, about 100 ms apart.
#pragma once

#include "api/object/node.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "telemetry/log.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class NodeTaintWriter {
 public:
  /// Changes node.spec.taints; false: the taints are as wanted. May be called several times for one write.
  using Edit = std::function<bool(api::Node& node, Now now)>;

  enum class Outcome {
    kWritten,
    kUnchanged,  // no edit had anything to change
    kGone,       // the node does not exist
    kFailed,     // after all attempts
  };

  using Done = std::function<void(Outcome outcome, Now now)>;

  /// Errors that lead to another attempt.
  enum class Retry { kAll, kConflicts };

  NodeTaintWriter(client::ApiClient& client, client::Informer<api::Node>& nodes, Rng rng, const telemetry::Log& log,
                  Retry which = Retry::kAll);
  NodeTaintWriter(const NodeTaintWriter&) = delete;
  NodeTaintWriter& operator=(const NodeTaintWriter&) = delete;

  /// `done` may be empty. It is called in a later step, or at once if there is nothing to change.
  void apply(const std::string& node, Edit edit, Done done, Now now);

  bool busy(std::string_view node) const { return work_.contains(node); }

 private:
  using NodePtr = std::shared_ptr<const api::Node>;

  struct Request {
    Edit edit;
    Done done;
  };

  struct Work {
    std::vector<Request> waiting;
    std::vector<Request> in_flight;
    int attempts = 0;
  };

  /// Result of our last write; valid while the cache still has the version that the write replaced.
  struct Written {
    std::string based_on;  // resourceVersion
    NodePtr node;
  };

  NodePtr newest(const std::string& name) const;
  void begin(const std::string& name, Now now);
  void attempt(const std::string& name, const NodePtr& base, Now now);
  void on_patched(const std::string& name, const NodePtr& base, const Result<api::Json>& outcome, Now now);
  void retry(const std::string& name, const Error& error, Now now);
  void reread(const std::string& name);
  void on_reread(const std::string& name, const Result<api::Json>& outcome, Now now);
  void finish(const std::string& name, Outcome outcome, Now now);

  client::ApiClient& client_;
  client::Informer<api::Node>& nodes_;
  Rng rng_;
  const telemetry::Log& log_;
  Retry which_;
  std::map<std::string, Work, std::less<>> work_;
  std::map<std::string, Written, std::less<>> written_;
};

}  // namespace spillway::controllers
