// The parts of a Writer that the steps of each write use. Thread: loop.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/resource/admission_check.h"
#include "apiserver/webhooks/webhook_admission.h"
#include "apiserver/write/committer.h"
#include "apiserver/write/quota_ledger.h"
#include "apiserver/write/reservations.h"
#include "apiserver/write/update_turns.h"

#include <vector>

namespace spillway::apiserver {

struct WriteTools {
  Core& core;
  Committer& committer;
  Reservations reservations;
  CachedCluster cluster;
  QuotaLedger quotas;
  UpdateTurns turns = {};
  std::vector<const AdmissionCheck*> checks = {};  // in the order of their calls
  WebhookAdmission* webhooks = nullptr;
  bool warns_of_unattended = false;  // creates of kinds that no controller here acts on (Resource::unattended)
};

}  // namespace spillway::apiserver
