// One create or update, from the typed document that a client wants to the object in the store. The order of its steps
// stands in two lists at the top of object_write.cc; ObjectWrite::run() says which function each of them is.
//
// Some steps wait: for webhooks, a reservation, a quota, the store. Each passes a callback that keeps the write alive;
// the answer arrives at an on_ function, which chooses the next step. A write that loses a race goes back to an earlier
// step. Once `done` has been called, the write takes no further step.
// Thread: loop. Bounds: kUpdateAttempts and its like in object_write.cc. Source: spec "API server contract", 4.8, 7, 8,
// 11.4.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/read/core.h"
#include "apiserver/read/object_converter.h"
#include "apiserver/write/committer.h"
#include "apiserver/write/write_job.h"
#include "apiserver/write/write_tools.h"
#include "base/step_list.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apiserver {

class ObjectWrite final : public std::enable_shared_from_this<ObjectWrite> {
 public:
  enum class Step : std::uint8_t {
    kNamespace,         // check that the namespace of a new object exists, and is not being deleted
    kLoad,              // take the object from the cache
    kTarget,            // check that there is an object to update; else create it, or end the update
    kCurrentForm,       // let a webhook convert the object to the version of the request
    kIdentity,          // set name, namespace, uid and version
    kDefaults,          // fill in members that the client left out
    kManagedFields,     // record which fields the client set; end an update that changes nothing
    kGeneratedName,     // name a new object that has a generateName alone
    kIsolation,         // put back members that the endpoint may not write
    kAdmission,         // built-in admission; choose addresses and ports
    kMutatingWebhooks,  // let webhooks change the object; a changed one goes back to kIdentity
    kSchema,      // validate an object against the schema of its custom kind, or compile its expressions, in slices
    kValidation,  // validate the object in all other respects, then run the checks of valid objects
    kValidatingWebhooks,  // let webhooks and admission policies reject the object
    kStoredForm,          // let a webhook convert the new object to the version that is stored
    kFinalName,           // set members that depend on the name of a new object
    kFreeName,            // check that no object has the name of the new one
    kReservation,         // take the chosen addresses and ports from other servers
    kQuota,               // charge the quotas of the namespace
    kCommit,              // put the object into the store, if it still holds the version that the write began with
  };

  /// `tools` must outlive the write.
  ObjectWrite(WriteTools& tools, CreateJob job, WriteDone done);
  /// `store_key`: the key under which the update has entered the turns.
  ObjectWrite(WriteTools& tools, UpdateJob job, std::string store_key, WriteDone done);

  /// Runs steps until one waits or the write ends. Called by the one that starts it, then by the write itself.
  void advance();

 private:
  // The steps, and what follows from their answers.
  Next run(Step step);
  api::StatusResult<void> check_namespace();
  Next load();
  Next check_target();
  Next convert_current();
  Next convert_to_stored();
  Next on_converted(Step step, api::StatusResult<api::Json> converted);
  api::StatusResult<void> identify_new();
  api::StatusResult<void> identify_update();
  Next set_defaults();
  Next record_managers_of_new();
  Next record_managers_of_update();
  Next generate_name();
  Next isolate_new();
  Next isolate_update();
  api::StatusResult<void> admit_new();
  api::StatusResult<void> admit_update();
  Next ask_mutating_webhooks();
  Next on_mutated(api::StatusResult<std::optional<api::Json>> mutated);
  Next check_in_slices();
  api::StatusResult<void> validate_new();
  api::StatusResult<void> validate_update();
  Next ask_validating_webhooks();
  Next finish_name();
  Next check_name_is_free();
  Next reserve();
  Next on_reserved(const api::StatusResult<bool>& ours);
  Next charge_quotas();
  Next on_charged(api::StatusResult<QuotaLedger::PledgePtr> pledge);
  Next commit();
  Next on_committed(const api::StatusResult<Commit>& result);
  Next retry_create(const ObjectPtr& there);
  Next retry_update(const ObjectPtr& there);

  // Moves between steps, and the end.
  void begin_create(api::Json object);
  void resume(Next next);
  Next proceed_if(const api::StatusResult<void>& result);
  Next end(api::StatusResult<Written> result);
  void release_turn();

  /// The row in whose form the object is stored. Looked up each time: the row of a custom kind may be replaced while
  /// the write waits.
  const Resource& stored() const { return tools_.core.cache.of(row_).resource(); }

  AdmissionContext admission_context();

  WriteTools& tools_;
  const Resource& row_;  // the resource in whose form the write was sent
  UpdateJob job_;        // a create leaves those members empty that concern updates alone
  WriteDone done_;
  std::string store_key_;  // empty for a create
  bool has_turn_ = false;  // other updates of the object are queued behind this one
  bool creates_ = false;
  StepList<Step> steps_;

  std::vector<std::string> warnings_;
  int attempts_ = 0;               // races lost
  int lost_choices_ = 0;           // times that another server held the chosen value
  QuotaLedger::PledgePtr pledge_;  // the charge; null: nothing was charged. Held until the write has ended

  // State of the present attempt.
  api::Json object_;                  // the object to be stored, as far as the steps have completed it
  ObjectPtr current_;                 // the object that an update replaces
  api::DocumentPtr old_;              // the document of the stored object
  bool deletes_ = false;              // the update took the last finalizer of a deleted object
  AdmissionPtr admission_;            // null: no webhook and no policy matches
  api::Json shown_;                   // the object as mutating webhooks were shown it
  std::optional<api::Json> mutated_;  // an update as webhooks made it, in the form of its endpoint
  api::FieldErrors slice_errors_;     // found by kSchema
  Reservations::HoldPtr hold_;        // addresses and ports that were chosen for it
  std::optional<StoreStep> store_step_;

  // State that creates alone have.
  std::optional<api::Json> sent_;  // to choose once more; where other servers choose as well
  std::string name_prefix_;        // generateName, if the server generates the name
  bool has_managers_ = false;
  bool is_charged_ = false;
};

}  // namespace spillway::apiserver
