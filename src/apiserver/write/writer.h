// Creates and updates, whoever asks: HTTP requests, collectors, evictions. From a typed document to a committed write:
// metadata of the server, isolation of endpoints, hooks, validation, no-op detection, optimistic concurrency.
// Thread: loop. Source: spec "API server contract", 4.8, 7, 8, 11.4.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "api/json/json.h"
#include "api/patch/apply.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "apiserver/request/request_options.h"
#include "apiserver/resource/admission_check.h"
#include "apiserver/webhooks/webhook_admission.h"
#include "apiserver/write/committer.h"
#include "apiserver/write/quota_desk.h"
#include "apiserver/write/reservations.h"

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::apiserver {

/// Who writes and how.
struct WriteContext {
  api::UserInfo user;
  std::string manager;  // under which name it is recorded in managedFields; empty: not recorded
  bool dry_run = false;
  ExchangePtr asked = nullptr;  // the request whose webhooks are asked; null: none are
};

struct Written {
  ObjectPtr object;
  bool created = false;
  bool deleted = false;  // the update removed the last finalizer
  std::vector<std::string> warnings;
};

using WriteDone = std::move_only_function<void(api::StatusResult<Written>)>;

/// How an endpoint shows the object that it changes, where it shows something else (scale).
struct EndpointForm {
  std::function<api::Json(const api::Json& object)> show;
  /// The object with what is shown. 400, 422: it cannot be.
  std::function<api::StatusResult<api::Json>(const api::Json& object, const api::Json& shown, std::string_view name)>
      take;
};

struct CreateJob {
  const Resource* resource = nullptr;
  std::string ns;
  api::Json object;      // typed
  bool applied = false;  // its managedFields are final (server-side apply)
  WriteContext context;
  int lost_choices = 0;  // how often another server had what was chosen for it
};

struct UpdateJob {
  const Resource* resource = nullptr;
  std::string ns;
  std::string name;
  SubresourceId part = SubresourceId::kNone;
  /// The object wanted, given the object as it stands (both typed, in the form of `resource`). Called again after a
  /// lost race; an error ends the update.
  std::function<api::StatusResult<api::Json>(const api::Json& current)> change;
  /// The object to create if there is none. Empty: 404.
  std::function<api::StatusResult<api::Json>()> create;
  /// The uid that the object must have, else 409 (PUT). Empty: any; a change that sets another is 422 (patches).
  std::string uid;
  /// The change is the server's own: no isolation, no hooks, no validation; what it says about uid and times is
  /// replaced by what the object has.
  bool trusted = false;
  /// The managedFields that `change` returns are final (server-side apply).
  bool applied = false;
  std::optional<EndpointForm> form = {};  // nullopt: the object itself
  WriteContext context;
};

/// How a write through that endpoint is recorded. `creates`: there was no object before.
api::FieldWriter field_writer(const Resource& resource, SubresourceId part, std::string manager, WallTime now,
                              bool creates);

/// 409: it is another object of that name.
api::Status uid_mismatch(const api::GroupResource& of, std::string_view name, std::string_view wanted,
                         std::string_view actual);

class Writer {
 public:
  Writer(Core& core, Committer& committer)
      : core_(core), committer_(committer), reservations_(core), cluster_(core), quotas_(core, *this) {}

  /// Asked about every write that is not trusted, in this order. `check` must outlive the writer.
  void add_check(const AdmissionCheck& check) { checks_.push_back(&check); }

  /// Asked about every write of a request. `webhooks` must outlive the writer.
  void ask_webhooks(WebhookAdmission& webhooks) { webhooks_ = &webhooks; }

  void create(CreateJob job, WriteDone done);
  void update(UpdateJob job, WriteDone done);

  /// Whoever creates an object of a kind that nobody acts on is told (Resource::unattended).
  void tell_of_unattended() { tells_of_unattended_ = true; }

  const Cluster& cluster() const { return cluster_; }

  const QuotaDesk& quotas() const { return quotas_; }

  /// True if an update of that object by that user that changes nothing but the time of a heartbeat needs no check.
  bool passes_renewal(const api::UserInfo& user, const Resource& resource, const StoredObject& object) const;
  /// True while an update of that object is running.
  bool is_updating(const Resource& resource, const StoredObject& object) const;
  /// Writes the bytes as Committer::renew() does; other updates of the object begin afterwards. Not while
  /// is_updating().
  void renew(Renewal renewal, Committer::Done done);

 private:
  struct Create;
  struct Update;

  using UpdatePtr = std::shared_ptr<Update>;

  using CreatePtr = std::shared_ptr<Create>;

  /// The object as it is to be stored, but for what only the checks of a valid one know. An error: it is refused.
  api::StatusResult<void> prepare_create(Create& state);
  void mutate_create(const CreatePtr& state);
  void validate_create(const CreatePtr& state);
  api::StatusResult<void> check_create(Create& state);
  void finish_create(const CreatePtr& state);
  void try_create(CreatePtr state);
  /// Goes on once no other server can have what was chosen for it; else chooses again.
  void secure_create(const CreatePtr& state);
  /// Goes on once the quotas of its namespace have been charged.
  void charge_create(const CreatePtr& state);
  void begin_update(const UpdatePtr& state);
  void try_update(const UpdatePtr& state, const ObjectPtr& current);
  /// From what is wanted, or what webhooks made of it, to the store.
  void advance_update(const UpdatePtr& state);
  void mutate_update(const UpdatePtr& state, const api::Json& object, const api::DocumentPtr& old);
  void validate_update(const UpdatePtr& state, api::Json object, const api::DocumentPtr& old);
  void commit_update(const UpdatePtr& state, api::Json object, const api::Json& old);
  void charge_update(const UpdatePtr& state, api::Json object, const api::Json& old);
  void secure_update(const UpdatePtr& state, api::Json object);
  void store_update(const UpdatePtr& state, api::Json object);
  /// Lets the next update of the same object begin.
  void leave_queue(const UpdatePtr& state);
  void begin_next();
  /// Leaves the queue, then reports.
  void finish_update(const UpdatePtr& state, api::StatusResult<Written> result);
  void pass_turn(const std::string& store_key);
  void set_identity(const Resource& resource, const std::string& ns, api::Json& metadata);
  static api::StatusResult<void> address(const UpdateJob& job, const Resource& resource, const ObjectPtr& current,
                                         api::Json& metadata);
  api::StatusResult<void> admit_update(Update& state, const Resource& resource, api::Json& object,
                                       const api::Json& old);
  api::StatusResult<void> check_update(Update& state, const Resource& resource, const api::Json& object,
                                       const api::Json& old);
  api::StatusResult<api::Json> wanted_object(const Update& state, const api::Json& old) const;
  /// The object as admitted: what is stored if it is valid.
  api::StatusResult<api::Json> prepare_update(Update& state, const api::Json& old);
  /// Records who set which fields.
  api::Json tracked(const Resource& resource, const api::Json* old, api::Json object, const WriteContext& context,
                    SubresourceId part) const;
  api::StatusResult<void> check_namespace(const Resource& resource, const std::string& ns, const std::string& name);

  Core& core_;
  Committer& committer_;
  Reservations reservations_;
  CachedCluster cluster_;
  QuotaDesk quotas_;
  std::vector<const AdmissionCheck*> checks_;
  WebhookAdmission* webhooks_ = nullptr;
  bool tells_of_unattended_ = false;
  /// Updates of one object run one after the other, so that they need not race; by store key, the first is running.
  /// Empty: a renewal is running.
  std::map<std::string, std::list<UpdatePtr>> updates_;
  std::deque<UpdatePtr> next_updates_;  // whose turn has come; begun by a loop, not by recursion
  bool beginning_ = false;
};

}  // namespace spillway::apiserver
