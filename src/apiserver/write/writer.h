// The writer: creates and updates for requests, collectors and evictions. It starts each as an ObjectWrite, one after
// the other for one object, and holds the parts that all of them use. Thread: loop. Source: spec "API server contract",
// 4.8, 7, 8, 11.4.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/resource/admission_check.h"
#include "apiserver/webhooks/webhook_admission.h"
#include "apiserver/write/committer.h"
#include "apiserver/write/write_job.h"
#include "apiserver/write/write_tools.h"

namespace spillway::apiserver {

class Writer {
 public:
  Writer(Core& core, Committer& committer)
      : tools_{core, committer, Reservations(core), CachedCluster(core), QuotaLedger(core, *this)} {}

  /// Called for every write that is not trusted, in this order. `check` must outlive the writer.
  void add_check(const AdmissionCheck& check) { tools_.checks.push_back(&check); }

  /// Called for every write of a request. `webhooks` must outlive the writer.
  void ask_webhooks(WebhookAdmission& webhooks) { tools_.webhooks = &webhooks; }

  void create(CreateJob job, WriteDone done);
  void update(UpdateJob job, WriteDone done);

  /// Clients that create an object of a kind that no controller here acts on get a warning (Resource::unattended).
  void warn_of_unattended() { tools_.warns_of_unattended = true; }

  const Cluster& cluster() const { return tools_.cluster; }

  const QuotaLedger& quotas() const { return tools_.quotas; }

  /// True if an update of that object by that user that changes nothing but the time of a heartbeat needs no check.
  bool passes_renewal(const api::UserInfo& user, const Resource& resource, const StoredObject& object) const;
  /// True while an update of that object is running.
  bool is_updating(const Resource& resource, const StoredObject& object) const;
  /// Writes the bytes as Committer::renew() does; other updates of the object begin afterwards. Not while
  /// is_updating().
  void renew(Renewal renewal, Committer::Done done);

 private:
  WriteTools tools_;
};

}  // namespace spillway::apiserver
