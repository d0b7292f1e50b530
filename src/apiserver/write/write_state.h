// What a Writer knows of a write under way. Only its own files look in here. Thread: loop.
#pragma once

#include "apiserver/write/writer.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::apiserver {

struct Writer::Create {
  CreateJob job;
  WriteDone done;
  std::vector<std::string> warnings;
  std::optional<std::string> dropped;  // KindHooks::warn_of_dropped; kept when webhooks have the rest done again
  api::Json object;                    // ready but for the name
  bool tracked = false;                // who made which field has been noted
  std::string prefix;                  // generateName, when the name is to be generated
  int attempts = 0;
  AdmissionPtr admission;          // null: no webhook is asked
  Reservations::HoldPtr hold;      // what was chosen for it
  std::optional<CreateJob> again;  // to choose once more; where other servers choose as well
  bool charged = false;            // to the quotas of its namespace
  QuotaDesk::PledgePtr pledge;     // until it is written; null: no quota was raised
};

struct Writer::Update {
  UpdateJob job;
  std::string store_key;
  WriteDone done;
  std::vector<std::string> warnings;
  std::optional<std::string> dropped;  // KindHooks::warn_of_dropped, of any attempt
  bool queued = false;                 // others wait for it
  bool deletes = false;
  int attempts = 0;
  QuotaDesk::PledgePtr pledge;  // what has been charged for it; null: nothing

  // Of the present attempt.
  ObjectPtr current;
  AdmissionPtr admission;            // null: no webhook is asked
  std::optional<api::Json> mutated;  // what webhooks made of it, in the form of the endpoint
  Reservations::HoldPtr hold;        // what was chosen for it
};

}  // namespace spillway::apiserver
