// The plug-in ResourceQuota: what a write adds to its namespace is written into the status of the quotas that it raises
// before the object itself is written. That is a compare-and-swap, so of several requests, of several servers too, only
// those succeed for which there is room. The charge of a failed write is removed when the quota is counted anew
// (QuotaCollector). A dry run is checked and charges nothing.
//
// Charges that wait for the same quota are written at once. Thread: loop. Bounds: kChargesMax charges per write of a
// quota; a namespace has at most 64 quotas (kinds/resource_quotas.cc); races as Writer::update. Source: spec "Scheduler
// and workloads", 18.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/read/core.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

class Writer;

class QuotaLedger {
 public:
  /// Proof that a write has been charged. While it is held, the object may not exist yet.
  class Pledge;
  using PledgePtr = std::shared_ptr<const Pledge>;
  /// Null: nothing was charged.
  using Done = std::move_only_function<void(api::StatusResult<PledgePtr>)>;

  struct Write {
    const Resource& resource;
    SubresourceId part = SubresourceId::kNone;
    const api::Json& object;
    const api::Json* old = nullptr;  // null: a new object
    bool dry_run = false;
    /// The charge of an earlier attempt of the same write; null: none.
    PledgePtr pledged = nullptr;
  };

  QuotaLedger(Core& core, Writer& writer) : core_(core), writer_(writer) {}

  /// 403: a quota of the namespace does not allow it. Other errors: a quota could not be written.
  void charge(const Write& write, Done done);

  /// True while writes to that namespace are charged or about to be.
  bool has_pledges(std::string_view ns) const { return pledges_->contains(ns); }

 private:
  struct Charge;
  using ChargePtr = std::shared_ptr<Charge>;
  using Batch = std::vector<ChargePtr>;
  using Counts = std::map<std::string, std::size_t, std::less<>>;

  /// Continues with the next quota that the charge raises.
  void advance(const ChargePtr& charge);
  /// Writes the collected charges of one quota.
  void run(const std::string& key);
  api::StatusResult<api::Json> charged(const api::Json& quota, const Batch& batch) const;

  Core& core_;
  Writer& writer_;
  /// Waiting charges by the quota's key; an entry exists while a write of the quota is under way.
  std::map<std::string, Batch> waiting_;
  std::shared_ptr<Counts> pledges_ = std::make_shared<Counts>();  // by namespace
};

}  // namespace spillway::apiserver
