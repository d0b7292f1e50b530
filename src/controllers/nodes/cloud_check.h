// Nodes whose machine does not exist any more: queries a cloud about every node that is not Ready, deletes those that
// do not exist there, taints those that are shut down, and removes that taint from nodes that are Ready.
//
// The caller takes the query from take_question() and passes the answer to put_answer(): the call to the cloud, and its
// duration, are the caller's. At most one query is in flight. If a cloud answers that all of several nodes do not
// exist, the answer is more likely wrong: no node is deleted.
// Thread: loop. Bound: nodes_max nodes per query. Source: Kubernetes docs, "Cloud Controller Manager", node controller;
// spec "Node lifecycle", S12, S18 T16.
#pragma once

#include "base/rng.h"
#include "controllers/nodes/instance_answer.h"
#include "controllers/nodes/node_taint_writer.h"
#include "controllers/shared/act_gate.h"
#include "controllers/shared/shared.h"
#include "policy/lifecycle/profile.h"

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {

class CloudCheck {
 public:
  struct Options {
    bool enabled = false;
    Duration period = seconds(5);  // from an answer to the next question
    std::size_t nodes_max = 500;   // per question; further nodes follow in the next one
    lifecycle::LineFacts facts;
  };

  CloudCheck(Shared shared, ActGate& gate, Rng rng, Options options);
  CloudCheck(const CloudCheck&) = delete;
  CloudCheck& operator=(const CloudCheck&) = delete;

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);
  /// Runs after every step: processes an answer that has arrived.
  void run(Now now);

  /// The query to send now; nullopt: none. put_answer() must follow.
  std::optional<std::vector<InstanceQuestion>> take_question();

  /// Taken up by the next step.
  void put_answer(Result<std::vector<InstanceAnswer>> answer) { answer_ = std::move(answer); }

 private:
  using NodePtr = std::shared_ptr<const api::Node>;

  void ask(Now now);
  void evaluate(const std::vector<InstanceAnswer>& answers, Now now);
  void remove(const NodePtr& node, Now now);
  void on_removed(const std::string& name, const Result<api::Json>& outcome);
  void set_shut_down(const NodePtr& node, bool shut_down, Now now);

  Shared shared_;
  ActGate& gate_;
  Options options_;
  NodeTaintWriter taints_;
  std::string asked_up_to_;  // name of the last node of the last question, if there were more
  std::optional<std::vector<InstanceQuestion>> question_;
  std::optional<Result<std::vector<InstanceAnswer>>> answer_;
  std::set<std::string, std::less<>> deleting_;
};

}  // namespace spillway::controllers
