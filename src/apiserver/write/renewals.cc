#include "apiserver/write/renewals.h"

#include "api/text/time_text.h"

#include <optional>
#include <utility>

namespace spillway::apiserver {
namespace {

constexpr std::size_t kPaths = 7;

/// The form in which the short way reads the request; nullopt: it does not.
std::optional<RenewalForm> form_of(const Exchange& exchange, RenewalForm form) {
  const api::Request& request = exchange.request();
  if (request.body.size() > kRenewalBytesMax) return std::nullopt;
  if (form == RenewalForm::kPatch) return form;  // the type of the patch has been checked
  const auto format = body_format(request.header("content-type"));
  if (format && *format == BodyFormat::kProtobuf) return RenewalForm::kProtobufUpdate;
  return format && *format == BodyFormat::kJson ? std::optional(form) : std::nullopt;
}

/// The lease with the new times as a document, for a sender in this process that reads no bytes; only while no other
/// reader needs the bytes.
std::optional<api::Json> document_of(const Exchange& exchange, const StoredObject& current, std::string_view renewed,
                                     const std::string& managed) {
  if (!exchange.request().document) return std::nullopt;
  api::Json document = current.document();
  document.make({"spec", "renewTime"}) = renewed;
  document.make({"metadata", "managedFields"}).if_array()->front()["time"] = managed;
  return document;
}

}  // namespace

Renewals::Renewals(Core& core, Writer& writer, telemetry::Registry& metrics, Short wanted)
    : core_(core), writer_(writer), wanted_(wanted) {
  for (std::size_t path = 0; path < kPaths; ++path) {
    counts_.at(path) =
        metrics.counter("spillway_lease_updates_total",
                        "Updates of leases, by the way they took: spliced and unchanged the short one, the "
                        "others the general one because of that",
                        {{"path", to_string(static_cast<RenewalPath>(path))}});
  }
}

RenewalMatch Renewals::match(const Exchange& exchange, const ObjectPtr& current, RenewalForm form,
                             const std::string& manager) const {
  const Resource& resource = *exchange.route.resource;
  const std::optional<RenewalForm> read_as = form_of(exchange, form);
  if (!read_as) return {.path = RenewalPath::kRequest};
  if (!current || !current->checked || current->meta.deleting) return {.path = RenewalPath::kObject};
  if (current->media_type != StorageMediaType::kJson || !current->unknown_fields.empty()) {
    return {.path = RenewalPath::kObject};
  }
  if (writer_.is_updating(resource, *current)) return {.path = RenewalPath::kQueued};
  if (!writer_.passes_renewal(exchange.user(), resource, *current)) return {.path = RenewalPath::kAdmission};
  const api::DocumentPtr& sent = exchange.request().document;
  if (read_as == RenewalForm::kUpdate && sent && current->parsed) {
    if (const auto match = match_shared_renewal(*sent, *current->parsed, *current->text, manager)) return *match;
  }
  if (!exchange.request().body.empty() || !sent) {
    return match_renewal(exchange.request().body, *current->text, {*read_as, manager});
  }
  const std::string body = api::to_text(*sent);
  if (body.size() > kRenewalBytesMax) return {.path = RenewalPath::kRequest};
  return match_renewal(body, *current->text, {*read_as, manager});
}

bool Renewals::take(const Exchange& exchange, RenewalForm form, const WriteOptions& options, Ends ends) {
  const Route& route = exchange.route;
  const Resource& resource = *route.resource;
  if (!resource.renewed || route.subresource != nullptr || wanted_ == Short::kNo) return false;
  const ObjectPtr current = core_.cache.of(resource).find(object_key(route.ns, route.name));
  const RenewalMatch match = options.dry_run ? RenewalMatch{.path = RenewalPath::kRequest}
                                             : this->match(exchange, current, form, exchange.manager(options));
  counts_.at(static_cast<std::size_t>(match.path)).add();
  if (match.path == RenewalPath::kUnchanged) {
    ends.done(Written{current});
    return true;
  }
  if (match.path != RenewalPath::kSpliced) return false;
  std::string bytes = stored_bytes(*current);
  const std::string managed = api::format_time(core_.now.wall);
  bytes.replace(offset_in_bytes(*current, match.renewed_at), match.time.size(), match.renewed());
  bytes.replace(offset_in_bytes(*current, match.managed_at), managed.size(), managed);
  auto document = document_of(exchange, *current, match.renewed(), managed);
  writer_.renew({resource, current, std::move(bytes), std::move(document)},
                [ends = std::move(ends)](api::StatusResult<Commit> result) {
                  if (!result) return ends.done(result.error());
                  if (!result->committed) return ends.general();  // another server was first
                  ends.done(Written{std::move(result->object)});
                });
  return true;
}

}  // namespace spillway::apiserver
