#include "apiserver/kinds/certificates/certificate_table.h"

#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"

#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array kCertificateColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"Age", "string", "", 0, "Time since creation"},
    TableColumn{"SignerName", "string", "", 0, "Signer that is to sign"},
    TableColumn{"Requestor", "string", "", 0, "User who created the request"},
    TableColumn{"RequestedDuration", "string", "", 0, "How long the certificate is to be valid"},
    TableColumn{"Condition", "string", "", 0, "What was decided, and whether a certificate was issued"}};

std::string condition_text(const api::Json& object) {
  const api::Json& status = value_of(object, "status");
  bool approved = false;
  bool denied = false;
  bool failed = false;
  for (const api::Json& condition : elements(status, "conditions")) {
    const std::string_view type = text(condition, "type");
    approved = approved || type == "Approved";
    denied = denied || type == "Denied";
    failed = failed || type == "Failed";
  }
  std::string shown = denied ? "Denied" : approved ? "Approved" : "Pending";
  if (failed) shown += ",Failed";
  if (!text(status, "certificate").empty()) shown += ",Issued";
  return shown;
}

TableRow request_row(const api::Json& object, WallTime now) {
  const api::Json& spec = value_of(object, "spec");
  const std::optional<std::int64_t> expiration = integer(spec, "expirationSeconds");
  return {{object.string_at({"metadata", "name"}), age_of(object, now), or_else(text(spec, "signerName"), kNone),
           text(spec, "username"), expiration ? api::human_duration(seconds(*expiration)) : std::string(kNone),
           condition_text(object)},
          nullptr};
}

}  // namespace

TableDefinition certificate_signing_request_table() {
  return {kCertificateColumns, request_row};
}

}  // namespace spillway::apiserver::kinds
