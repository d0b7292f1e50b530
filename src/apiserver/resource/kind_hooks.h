// The rules of one kind, beside the generic engine: defaults, admission, validation, table cells. Functions over
// documents, no state, no clock, no I/O. Every hook may be null: the neutral behaviour is then the generic one, stated
// beside it.
//
// The engine itself does for every kind: typed decoding (unknown fields, wrong types), metadata owned by the server,
// metadata and name validation, namespace checks, generation, isolation of status and spec between the main and the
// status endpoint, optimistic concurrency, managedFields, no-op detection.
//
// Order on create: decode, set_defaults, prepare_create, admit_create, metadata rules + validate_create,
// checks of the server (AdmissionCheck::confirm), confirm_create, name_create. Order on update: decode, set_defaults,
// isolation, prepare_update, admit_update, metadata rules + validate_update, checks of the server, confirm_update.
// Thread: any (pure functions). Source: spec "API server contract", 4.8, 7, 12, 15.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "api/json/json.h"
#include "base/time.h"
#include "policy/podsecurity/configuration.h"
#include "policy/quota/limited.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// The present state of the cluster, for admission. Documents are complete (kind, apiVersion, resourceVersion).
class Cluster {
 public:
  virtual ~Cluster() = default;
  /// `plural` names the resource, with its group where it has one: "serviceaccounts",
  /// "priorityclasses.scheduling.k8s.io". `ns` is empty for cluster-scoped resources. nullopt: there is no such object.
  virtual std::optional<api::Json> find(std::string_view plural, std::string_view ns, std::string_view name) const = 0;
  /// The value of a label of such an object; empty: it has no such label. Reads no document.
  virtual std::optional<std::string> label(std::string_view plural, std::string_view ns, std::string_view name,
                                           std::string_view key) const = 0;
  /// Every object of a resource, in key order, all namespaces when `ns` is empty; until `visit` returns false.
  virtual void visit(std::string_view plural, std::string_view ns,
                     const std::function<bool(const api::Json&)>& visit) const = 0;
  /// True if a unique value (KindHooks::reserves) has been chosen for an object that is not stored yet, here or at
  /// another server.
  virtual bool is_held(std::string_view plural, std::string_view name) const = 0;
  /// An object of the resource has it; the one with the key `but_for` ("ns/name"; empty: none) does not count. Found
  /// by name: reads no document.
  virtual bool is_reserved(std::string_view plural, std::string_view name, std::string_view but_for) const = 0;
};

/// The parts of admission that can be switched off.
struct AdmissionRules {
  /// Pods that are not BestEffort tolerate memory pressure (plug-in PodTolerationRestriction).
  bool memory_pressure_toleration = true;
  /// Pods get the volume with the token of their account (plug-in ServiceAccount), from a server that issues tokens and
  /// publishes by what it is verified.
  bool token_volumes = true;
  /// Pods and claims are held against the LimitRanges of their namespace (plug-in LimitRanger).
  bool limit_ranger = true;
  /// New and grown objects are charged to the ResourceQuotas of their namespace (plug-in ResourceQuota).
  bool resource_quota = true;
  /// Resources that may be used only if a quota covers them; checked by the plug-in ResourceQuota.
  std::vector<quota::LimitedResource> limited_resources = {};
  /// Webhooks of either phase are called (plug-ins MutatingAdmissionWebhook, ValidatingAdmissionWebhook).
  bool mutating_webhooks = true;
  bool validating_webhooks = true;
  /// Requests are held against the admission policies (plug-in ValidatingAdmissionPolicy).
  bool admission_policies = true;
  /// Pods and what makes them are held against the Pod Security Standards (plug-in PodSecurity); nullopt: they are not.
  std::optional<podsecurity::Configuration> pod_security = podsecurity::Configuration{};
};

/// The inputs of admission besides the object.
struct AdmissionContext {
  const Cluster& cluster;
  const api::UserInfo& user;
  WallTime now;
  /// Texts for Warning headers.
  std::vector<std::string>& warnings;
  const AdmissionRules& rules;
  bool dry_run = false;
};

/// The endpoint of an update.
enum class Endpoint { kMain, kStatus, kApproval, kEphemeralContainers, kResize, kFinalize };

/// True for the endpoints through which a client changes the spec of an object.
constexpr bool changes_spec(Endpoint endpoint) {
  return endpoint == Endpoint::kMain || endpoint == Endpoint::kEphemeralContainers || endpoint == Endpoint::kResize;
}

struct TableColumn {
  std::string_view name;
  std::string_view type = "string";  // string, integer, boolean, date
  std::string_view format;           // "name" for the column that holds the object's name
  std::int32_t priority = 0;         // 0: always shown; 1: with -o wide
  std::string_view description;
};

/// The cells of one object's row, as many as there are columns.
struct TableRow {
  std::vector<api::Json> cells;
  api::Json conditions;  // null: none; else the list of metav1.TableRowCondition
};

struct KindHooks {
  /// Fills in what the client left out. Idempotent. Null: no defaults.
  void (*set_defaults)(api::Json& object) = nullptr;

  /// After defaulting a new object: drops fields that clients may not set, sets those that every new object has. The
  /// engine has removed `status` before unless keeps_status_on_create. Null: nothing.
  void (*prepare_create)(api::Json& object) = nullptr;
  /// May change or reject a new object. Null: admitted.
  api::StatusResult<void> (*admit_create)(api::Json& object, const AdmissionContext& context) = nullptr;
  /// Collects everything wrong with a new object beyond its metadata.
  void (*validate_create)(const api::Json& object, api::FieldErrors& errors) = nullptr;
  /// Validation compiles the expressions of the object, which clients can make long: it runs in slices.
  bool compiles_expressions = false;
  /// Checks a valid new object against the cluster's other objects. Null: no check.
  api::StatusResult<void> (*confirm_create)(const api::Json& object, const AdmissionContext& context) = nullptr;

  /// The names of which no two objects of the kind may have the same: "ip/10.96.0.7". admit_create and admit_update
  /// choose names for which neither Cluster::is_reserved() nor Cluster::is_held() is true. Null: none.
  std::vector<std::string> (*reserves)(const api::Json& object) = nullptr;

  /// Sets members that depend on the final name of a new object that is otherwise fine; called again for another name.
  /// Null: none.
  void (*name_create)(api::Json& object) = nullptr;

  /// Keeps or resets fields of an updated object. Isolation has been done. Null: nothing.
  void (*prepare_update)(api::Json& object, const api::Json& old, Endpoint endpoint) = nullptr;
  api::StatusResult<void> (*admit_update)(api::Json& object, const api::Json& old, Endpoint endpoint,
                                          const AdmissionContext& context) = nullptr;
  /// Validates the change. Null: for kMain validate_create is called, for others nothing.
  void (*validate_update)(const api::Json& object, const api::Json& old, Endpoint endpoint,
                          api::FieldErrors& errors) = nullptr;
  /// Checks a valid update against the cluster's other objects. Null: no check.
  api::StatusResult<void> (*confirm_update)(const api::Json& object, const api::Json& old, Endpoint endpoint,
                                            const AdmissionContext& context) = nullptr;

  /// Null columns: Name and Age.
  std::span<const TableColumn> columns;
  TableRow (*table_row)(const api::Json& object, WallTime now) = nullptr;
};

/// The hooks of a kind without rules of its own.
inline constexpr KindHooks kNeutralHooks{};

}  // namespace spillway::apiserver
