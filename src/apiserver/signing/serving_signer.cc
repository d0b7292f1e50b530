#include "apiserver/signing/serving_signer.h"

#include "api/json/json_values.h"
#include "api/object/meta.h"
#include "api/text/base64.h"
#include "api/text/time_text.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

using api::Json;

constexpr std::string_view kResource = "certificatesigningrequests.certificates.k8s.io";
constexpr Duration kLifeDefault = hours(24 * 365);
constexpr Duration kRetryAfter = seconds(5);

bool has_condition(const Json& request, std::string_view type) {
  const Json* conditions = request.at({"status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr) return false;
  return std::ranges::any_of(*conditions->if_array(), [&](const Json& one) { return one.string_at({"type"}) == type; });
}

bool is_settled(const Json& request) {
  return !request.string_at({"status", "certificate"}).empty() || has_condition(request, "Denied") ||
         has_condition(request, "Failed");
}

void add_condition(Json& request, std::string_view type, std::string_view reason, std::string_view message,
                   WallTime now) {
  Json& conditions = request.make({"status", "conditions"});
  if (conditions.if_array() == nullptr) conditions = Json::Array();
  const std::string time = api::format_time(now);
  conditions.if_array()->push_back(Json::object({{"type", type},
                                                 {"status", "True"},
                                                 {"reason", reason},
                                                 {"message", message},
                                                 {"lastUpdateTime", time},
                                                 {"lastTransitionTime", time}}));
}

}  // namespace

ServingSigner::ServingSigner(Core& core, Writer& writer, const Authorizer& authorizer, const CertificateReader* reader,
                             const ServingAuthority* authority)
    : core_(core),
      writer_(writer),
      authorizer_(authorizer),
      reader_(reader),
      authority_(authority),
      requests_(core.cache.of(core.registry.get(kResource))) {}

void ServingSigner::load() {
  for (const auto& [key, object] : requests_.objects()) note(*object);
}

void ServingSigner::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache == &requests_ && event->object) note(*event->object);
}

void ServingSigner::note(const StoredObject& object) {
  if (reader_ == nullptr || authority_ == nullptr) return;
  const Json request = object.document();
  if (request.string_at({"spec", "signerName"}) != signing::kKubeletServingSigner || is_settled(request)) return;
  dirty_.insert(object.name);
}

void ServingSigner::run() {
  for (auto name = dirty_.begin(); name != dirty_.end() && busy_.size() < kCollectorWritesMax;) {
    if (busy_.contains(*name)) {
      ++name;
    } else {
      write(*name);
      name = dirty_.erase(name);
    }
  }
}

bool ServingSigner::may_approve(const Json& request) const {
  const api::UserInfo requestor{std::string(request.string_at({"spec", "username"})),
                                std::string(request.string_at({"spec", "uid"})),
                                api::strings_at(request, {"spec", "groups"})};
  const RequestAttributes approving{.is_resource = true,
                                    .verb = "approve",
                                    .group = "certificates.k8s.io",
                                    .version = "v1",
                                    .resource = "signers",
                                    .name = std::string(signing::kKubeletServingSigner)};
  return authorizer_.authorize(requestor, approving).allowed;
}

std::optional<Json> ServingSigner::decided(const Json& request) const {
  if (is_settled(request)) return std::nullopt;
  const Result<std::string> pem = api::decode_base64(request.string_at({"spec", "request"}));
  const auto wanted = pem ? reader_->read_request(*pem) : Result<signing::RequestedCertificate>(pem.error());
  if (!wanted) return std::nullopt;
  const std::vector<std::string> usages = api::strings_at(request, {"spec", "usages"});
  if (signing::signature_refusal(signing::kKubeletServingSigner, *wanted, usages)) return std::nullopt;
  Json settled = request;
  if (!has_condition(request, "Approved")) {
    const std::vector<std::string> groups = api::strings_at(request, {"spec", "groups"});
    const bool own = !signing::own_node_refusal(*wanted, request.string_at({"spec", "username"}), groups);
    if (!own && !may_approve(request)) return std::nullopt;
    add_condition(settled, "Approved", "AutoApproved",
                  own ? "The requestor is the node that the certificate names."
                      : "The requestor may approve requests with this signerName.",
                  core_.now.wall);
  }
  const Json* seconds_asked = request.at({"spec", "expirationSeconds"});
  const std::optional<std::int64_t> asked = seconds_asked != nullptr ? seconds_asked->if_int64() : std::nullopt;
  const Duration life = asked ? std::min(kLifeDefault, Duration(seconds(*asked))) : kLifeDefault;
  const Result<std::string> certificate = authority_->sign(*wanted, *pem, life, core_.now.wall);
  if (certificate) {
    settled.make({"status", "certificate"}) = api::encode_base64(*certificate);
  } else {
    add_condition(settled, "Failed", "SigningFailed", certificate.error().text(), core_.now.wall);
  }
  return settled;
}

void ServingSigner::write(const std::string& name) {
  busy_.insert(name);
  writer_.update({.resource = &requests_.resource(),
                  .name = name,
                  .part = SubresourceId::kStatus,
                  .change = [this](const Json& current) -> api::StatusResult<Json> {
                    auto settled = decided(current);
                    return settled ? *std::move(settled) : current;
                  },
                  .trusted = true,
                  .context = {{"system:serviceaccount:kube-system:kubelet-serving-signer", {}, {}}, {}, false}},
                 [this, name](const api::StatusResult<Written>& written) {
                   busy_.erase(name);
                   if (written || written.error().code == 404) return;
                   core_.log.warning("certificate request not signed",
                                     {{"name", name}, {"error", written.error().message}});
                   core_.timers.at(core_.now.mono + kRetryAfter, [this, name] {
                     dirty_.insert(name);
                     run();
                   });
                 });
}

}  // namespace spillway::apiserver
