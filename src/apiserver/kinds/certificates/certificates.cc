// CertificateSigningRequests: the requestor is the user who created the request; spec never changes; approval and
// status have their own endpoints. What needs a reader of certificates or the rights of the writer is in
// apiserver/signing/signing_check.h.
#include "api/object/meta.h"
#include "api/text/names.h"
#include "api/text/time_text.h"
#include "apiserver/kinds/certificates/certificate_table.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"
#include "base/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::size_t kUsagesMax = 64;  // usages in one request: twice as many as Kubernetes defines
constexpr std::size_t kSignerDomainBytesMax = 253;
constexpr std::size_t kSignerBytesMax = 571;  // domain, slash, path
constexpr std::int64_t kExpirationSecondsMin = 600;

constexpr std::string_view kApproved = "Approved";
constexpr std::string_view kDenied = "Denied";
constexpr std::string_view kFailed = "Failed";

constexpr std::array<std::string_view, 23> kUsages{"any",
                                                   "cert sign",
                                                   "client auth",
                                                   "code signing",
                                                   "content commitment",
                                                   "crl sign",
                                                   "data encipherment",
                                                   "decipher only",
                                                   "digital signature",
                                                   "email protection",
                                                   "encipher only",
                                                   "ipsec end system",
                                                   "ipsec tunnel",
                                                   "ipsec user",
                                                   "key agreement",
                                                   "key encipherment",
                                                   "microsoft sgc",
                                                   "netscape sgc",
                                                   "ocsp signing",
                                                   "s/mime",
                                                   "server auth",
                                                   "signing",
                                                   "timestamping"};
constexpr std::array<std::string_view, 3> kStatuses{"False", "True", "Unknown"};
constexpr std::array<std::string_view, 1> kTrueOnly{"True"};

const Json::Array& conditions_of(const Json& object) {
  return elements(value_of(object, "status"), "conditions");
}

/// The conditions of that type, in their order.
std::vector<const Json*> conditions_of_type(const Json& object, std::string_view type) {
  std::vector<const Json*> found;
  for (const Json& condition : conditions_of(object)) {
    if (text(condition, "type") == type) found.push_back(&condition);
  }
  return found;
}

// Creation.

/// Records the authenticated sender as the requestor, whatever the body has.
api::StatusResult<void> record_requestor(Json& object, const AdmissionContext& context) {
  Json& spec = object["spec"];
  for (const std::string_view member : {"username", "uid", "groups", "extra"}) spec.erase({member});
  const api::UserInfo& user = context.user;
  if (!user.name.empty()) spec["username"] = user.name;
  if (!user.uid.empty()) spec["uid"] = user.uid;
  if (!user.groups.empty()) spec["groups"] = Json(Json::Array(user.groups.begin(), user.groups.end()));
  for (const auto& [key, values] : user.extra) {
    spec.make({"extra", key}) = Json(Json::Array(values.begin(), values.end()));
  }
  return {};
}

/// "example.com/name": a domain of at least two labels, then one path segment.
void validate_signer(std::string_view signer, FieldErrors& errors) {
  constexpr std::string_view kPath = "spec.signerName";
  if (signer.empty()) return errors.required(kPath);
  if (signer == "kubernetes.io/legacy-unknown") {
    return errors.invalid(kPath, signer, "the legacy signerName is not allowed via this API version");
  }
  if (signer.size() > kSignerBytesMax) return errors.too_long(kPath, kSignerBytesMax);
  const std::vector<std::string_view> segments = split_at(signer, '/');
  if (segments.size() != 2) {
    return errors.invalid(kPath, signer,
                          "must be a fully qualified domain and path of the form 'example.com/signer-name'");
  }
  if (segments[0].size() > kSignerDomainBytesMax) errors.too_long(kPath, kSignerDomainBytesMax);
  const std::vector<std::string_view> labels = split_at(segments[0], '.');
  for (const std::string_view label : labels) {
    for (const std::string& problem : api::dns1123_label_errors(label)) {
      errors.invalid(kPath, segments[0], fmt::format("validating label \"{}\": {}", label, problem));
    }
  }
  if (labels.size() < 2) {
    errors.invalid(kPath, segments[0], "should be a domain with at least two segments separated by dots");
  }
  for (const std::string_view label : split_at(segments[1], '.')) {
    for (const std::string& problem : api::dns1123_subdomain_errors(label)) {
      errors.invalid(kPath, segments[1], fmt::format("validating label \"{}\": {}", label, problem));
    }
  }
}

void validate_usages(const Json::Array& usages, FieldErrors& errors) {
  if (usages.empty()) errors.required("spec.usages");
  if (usages.size() > kUsagesMax) return errors.too_many("spec.usages", usages.size(), kUsagesMax);
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < usages.size(); ++i) {
    const std::string_view usage = usages[i].string_at({});
    const std::string path = api::index_path("spec.usages", i);
    if (!std::ranges::binary_search(kUsages, usage)) errors.not_supported(path, usages[i], kUsages);
    if (!seen.insert(usage).second) errors.duplicate(path, usages[i]);
  }
}

void validate_request(const Json& object, FieldErrors& errors) {
  const Json& spec = value_of(object, "spec");
  validate_usages(elements(spec, "usages"), errors);
  validate_signer(text(spec, "signerName"), errors);
  const std::optional<std::int64_t> expiration = integer(spec, "expirationSeconds");
  if (expiration && *expiration < kExpirationSecondsMin) {
    errors.invalid("spec.expirationSeconds", *expiration,
                   "may not specify a duration less than 600 seconds (10 minutes)");
  }
}

// Updates.

void keep_request(Json& object, const Json& old, Endpoint) {
  object["spec"] = value_of(old, "spec");
}

/// Decisions as they were, where there are as many as before: only approval may reword them.
void keep_decisions(Json::Array& conditions, const Json& old) {
  for (const std::string_view type : {kApproved, kDenied}) {
    const std::vector<const Json*> before = conditions_of_type(old, type);
    std::vector<Json*> now;
    for (Json& condition : conditions) {
      if (text(condition, "type") == type) now.push_back(&condition);
    }
    if (before.size() != now.size()) continue;
    for (std::size_t i = 0; i < now.size(); ++i) *now[i] = *before[i];
  }
}

/// Sets the times of conditions: lastUpdateTime at each write, lastTransitionTime when the status changes.
void set_times(Json::Array& conditions, const Json& old, WallTime now) {
  for (Json& condition : conditions) {
    if (!has(condition, "lastUpdateTime")) condition["lastUpdateTime"] = api::format_time(now);
    if (has(condition, "lastTransitionTime")) continue;
    condition["lastTransitionTime"] = api::format_time(now);
    for (const Json& before : conditions_of(old)) {
      if (text(before, "type") == text(condition, "type") && text(before, "status") == text(condition, "status") &&
          has(before, "lastTransitionTime")) {
        condition["lastTransitionTime"] = value_of(before, "lastTransitionTime");
        break;
      }
    }
  }
}

api::StatusResult<void> complete_status(Json& object, const Json& old, Endpoint endpoint,
                                        const AdmissionContext& context) {
  if (endpoint != Endpoint::kStatus && endpoint != Endpoint::kApproval) return {};
  Json& status = object["status"];
  if (!status.is_object()) status = Json::object();
  if (Json::Array* conditions = elements(status, "conditions"); conditions != nullptr && !conditions->empty()) {
    if (endpoint == Endpoint::kStatus) keep_decisions(*conditions, old);
    set_times(*conditions, old, context.now);
  } else {
    status.erase({"conditions"});
  }
  if (endpoint == Endpoint::kApproval) {
    const Json& certificate = value_of(value_of(old, "status"), "certificate");
    if (!certificate.is_null()) {
      status["certificate"] = certificate;
    } else {
      status.erase({"certificate"});
    }
  } else if (text(status, "certificate").empty()) {
    status.erase({"certificate"});
  }
  return {};
}

void validate_conditions(const Json::Array& conditions, FieldErrors& errors) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const std::string path = api::index_path("status.conditions", i);
    const std::string_view type = text(conditions[i], "type");
    if (type.empty()) errors.required(path + ".type");
    const bool decides = type == kApproved || type == kDenied;
    const std::span<const std::string_view> statuses = decides || type == kFailed
                                                           ? std::span<const std::string_view>(kTrueOnly)
                                                           : std::span<const std::string_view>(kStatuses);
    const std::string_view status = text(conditions[i], "status");
    if (status.empty()) {
      errors.required(path + ".status");
    } else if (std::ranges::find(statuses, status) == statuses.end()) {
      errors.not_supported(path + ".status", status, statuses);
    }
    if (decides && seen.contains(type == kApproved ? kDenied : kApproved)) {
      errors.invalid("status.conditions", type, "Approved and Denied conditions are mutually exclusive");
    }
    if (!seen.insert(type).second) errors.duplicate(path + ".type", type);
  }
}

void validate_decisions(const Json& object, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  for (const std::string_view type : {kApproved, kDenied, kFailed}) {
    const std::size_t before = conditions_of_type(old, type).size();
    const std::size_t now = conditions_of_type(object, type).size();
    if (now < before) {
      errors.forbidden("status.conditions", fmt::format("updates may not remove a condition of type \"{}\"", type));
    } else if (now > before && type != kFailed && endpoint != Endpoint::kApproval) {
      errors.forbidden("status.conditions", fmt::format("updates may not add a condition of type \"{}\"", type));
    }
  }
}

void validate_update(const Json& object, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  // Conditions that have not changed are not validated again.
  if (conditions_of(object) != conditions_of(old)) validate_conditions(conditions_of(object), errors);
  validate_decisions(object, old, endpoint, errors);
  const std::string_view before = text(value_of(old, "status"), "certificate");
  if (!before.empty() && text(value_of(object, "status"), "certificate") != before) {
    errors.forbidden("status.certificate", "updates may not modify existing certificate content");
  }
}

Resource certificate_signing_request_kind() {
  static constexpr std::array kFields{SelectableField{"spec.signerName"}};
  static constexpr std::array<std::string_view, 1> kShortNames{"csr"};
  static constexpr std::array kSubresources{
      Subresource{SubresourceId::kApproval, "approval", kReadWriteVerbs, {}, {}, {}}, kStatusSubresource};
  const TableDefinition table = certificate_signing_request_table();
  static const KindHooks kHooks{.admit_create = record_requestor,
                                .validate_create = validate_request,
                                .prepare_update = keep_request,
                                .admit_update = complete_status,
                                .validate_update = validate_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.group = "certificates.k8s.io",
          .version = "v1",
          .plural = "certificatesigningrequests",
          .singular = "certificatesigningrequest",
          .kind = "CertificateSigningRequest",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("certificatesigningrequests"),
          .short_names = kShortNames,
          .subresources = kSubresources,
          .fields = kFields,
          .names = NameRule::kPathSegment,
          .status_subresource = true,
          .metadata = {.status_whole = 1},
          .hooks = &kHooks};
}

}  // namespace

std::vector<Resource> certificates_kinds() {
  return {certificate_signing_request_kind()};
}

}  // namespace spillway::apiserver::kinds
