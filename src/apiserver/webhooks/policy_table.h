// The admission policies of the cluster and their bindings, compiled: kept as they are written. A long policy takes
// effect some turns of the loop after its commit, when it is compiled, and its write is answered then; until then its
// former version is in effect. Those that are stored at the start take effect together, when all are compiled; the
// server serves no request before (serving/server_start.h). Thread: loop.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "policy/admission_policies/admission_policy.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace spillway::apiserver {

class PolicyTable final : public Collector {
 public:
  explicit PolicyTable(Core& core);

  /// No policy is bound.
  bool empty() const { return list_->empty(); }

  /// Changes with every change of the policies.
  std::uint64_t version() const { return version_; }

  /// The policies that have a binding, as they are now; a later change makes another list.
  std::shared_ptr<const admission_policies::PolicyList> list() const { return list_; }

  /// True if a policy has a rule for such requests, whatever the names and contents of their objects.
  bool asks(const webhooks::Subject& subject) const;

  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;

  void act() override {}

 private:
  /// Compiles the stored policy, which then takes effect.
  void compile(const StoredObject& policy);
  void join();

  const Core& core_;
  const ResourceCache& stored_policies_;
  const ResourceCache& stored_bindings_;
  std::map<std::string, admission_policies::PolicyPtr> policies_;
  std::map<std::string, std::shared_ptr<const admission_policies::PolicyBinding>> bindings_;
  std::shared_ptr<const admission_policies::PolicyList> list_ =
      std::make_shared<const admission_policies::PolicyList>();
  std::uint64_t version_ = 0;
  bool is_loading_ = false;  // objects that were stored at the start are being compiled
};

}  // namespace spillway::apiserver
