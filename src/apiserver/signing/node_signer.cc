#include "apiserver/signing/node_signer.h"

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

constexpr std::string_view kCertificatesGroup = "certificates.k8s.io";
constexpr std::string_view kResource = "certificatesigningrequests.certificates.k8s.io";
constexpr Duration kLifeDefault = hours(24 * 365);
constexpr Duration kRetryAfter = seconds(5);

bool has_condition(const Json& request, std::string_view type) {
  const Json* conditions = request.at({"status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr) return false;
  return std::ranges::any_of(*conditions->if_array(), [&](const Json& one) { return one.string_at({"type"}) == type; });
}

bool is_request_done(const Json& request) {
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

NodeSigner::NodeSigner(Core& core, Writer& writer, const Authorizer& authorizer, const CertificateReader* reader,
                       Authorities authorities)
    : core_(core),
      writer_(writer),
      authorizer_(authorizer),
      reader_(reader),
      authorities_(authorities),
      requests_(core.cache.of(core.registry.get(kResource))) {}

void NodeSigner::load() {
  dirty_.clear();
  for (const auto& [key, object] : requests_.objects()) mark(*object);
}

void NodeSigner::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (&cache == &requests_ && event->object) mark(*event->object);
}

void NodeSigner::mark(const StoredObject& object) {
  if (reader_ == nullptr) return;
  const Json request = object.document();
  if (authority_of(request.string_at({"spec", "signerName"})) == nullptr || is_request_done(request)) return;
  dirty_.insert(object.name);
}

void NodeSigner::act() {
  for (auto name = dirty_.begin(); name != dirty_.end() && busy_.size() < kCollectorWritesMax;) {
    if (busy_.contains(*name)) {
      ++name;
    } else {
      write(*name);
      name = dirty_.erase(name);
    }
  }
}

const RequestAuthority* NodeSigner::authority_of(std::string_view signer) const {
  if (signer == signing::kKubeletServingSigner) return authorities_.serving;
  if (signer == signing::kKubeletClientSigner || signer == signing::kClientSigner) return authorities_.client;
  return nullptr;
}

/// Returns the approval's reason if the requestor itself has the right to approve requests of this signer.
std::optional<std::string_view> NodeSigner::serving_approval(const api::UserInfo& requestor, bool own) const {
  if (own) return "The requestor is the node that the certificate names.";
  const RequestAttributes approving{.is_resource = true,
                                    .verb = "approve",
                                    .group = std::string(kCertificatesGroup),
                                    .version = "v1",
                                    .resource = "signers",
                                    .name = std::string(signing::kKubeletServingSigner)};
  if (!authorizer_.authorize(requestor, approving).allowed) return std::nullopt;
  return "The requestor may approve requests with this signerName.";
}

std::optional<std::string_view> NodeSigner::client_approval(const api::UserInfo& requestor, bool own) const {
  const auto may = [&](std::string_view subresource) {
    const RequestAttributes creating{.is_resource = true,
                                     .verb = "create",
                                     .group = std::string(kCertificatesGroup),
                                     .version = "v1",
                                     .resource = "certificatesigningrequests",
                                     .subresource = std::string(subresource)};
    return authorizer_.authorize(requestor, creating).allowed;
  };
  if (own && may("selfnodeclient")) {
    return "Auto approving self kubelet client certificate after SubjectAccessReview.";
  }
  if (may("nodeclient")) return "Auto approving kubelet client certificate after SubjectAccessReview.";
  return std::nullopt;
}

std::optional<std::string_view> NodeSigner::approval_of(const Json& request,
                                                        const signing::RequestedCertificate& wanted) const {
  const std::string_view signer = request.string_at({"spec", "signerName"});
  if (signer == signing::kClientSigner) return std::nullopt;  // approved by hand only: any user may request it
  const api::UserInfo requestor{std::string(request.string_at({"spec", "username"})),
                                std::string(request.string_at({"spec", "uid"})),
                                api::strings_at(request, {"spec", "groups"})};
  const bool own = !signing::own_node_refusal(wanted, requestor.name, requestor.groups);
  return signer == signing::kKubeletClientSigner ? client_approval(requestor, own) : serving_approval(requestor, own);
}

std::optional<Json> NodeSigner::decided(const Json& request) const {
  if (is_request_done(request)) return std::nullopt;
  const Result<std::string> pem = api::decode_base64(request.string_at({"spec", "request"}));
  const auto wanted = pem ? reader_->read_request(*pem) : Result<signing::RequestedCertificate>(pem.error());
  if (!wanted) return std::nullopt;
  const std::vector<std::string> usages = api::strings_at(request, {"spec", "usages"});
  const std::string_view signer = request.string_at({"spec", "signerName"});
  Json updated = request;
  const bool approved = has_condition(request, "Approved");
  if (const auto refusal = signing::signature_refusal(signer, *wanted, usages)) {
    if (!approved) return std::nullopt;
    add_condition(updated, "Failed", "SignerValidationFailure", *refusal, core_.now.wall);
    return updated;
  }
  if (!approved) {
    const auto approval = approval_of(request, *wanted);
    if (!approval) return std::nullopt;
    add_condition(updated, "Approved", "AutoApproved", *approval, core_.now.wall);
  }
  const Json* seconds_asked = request.at({"spec", "expirationSeconds"});
  const std::optional<std::int64_t> asked = seconds_asked != nullptr ? seconds_asked->if_int64() : std::nullopt;
  const Duration life = asked ? std::min(kLifeDefault, Duration(seconds(*asked))) : kLifeDefault;
  const Result<std::string> certificate = authority_of(signer)->sign(*wanted, *pem, life, core_.now.wall);
  if (certificate) {
    updated.make({"status", "certificate"}) = api::encode_base64(*certificate);
  } else {
    add_condition(updated, "Failed", "SigningFailed", certificate.error().text(), core_.now.wall);
  }
  return updated;
}

void NodeSigner::write(const std::string& name) {
  busy_.insert(name);
  writer_.update({.resource = &requests_.resource(),
                  .name = name,
                  .part = SubresourceId::kStatus,
                  .change = [this](const Json& current) -> api::StatusResult<Json> {
                    auto updated = decided(current);
                    return updated ? *std::move(updated) : current;
                  },
                  .trusted = true,
                  .context = {{"system:serviceaccount:kube-system:node-certificate-signer", {}, {}}, {}, false}},
                 [this, name](const api::StatusResult<Written>& written) { on_written(name, written); });
}

void NodeSigner::on_written(const std::string& name, const api::StatusResult<Written>& written) {
  busy_.erase(name);
  if (written || written.error().code == 404) return;
  core_.log.warning("certificate request not signed", {{"name", name}, {"error", written.error().message}});
  core_.timers.at(core_.now.mono + kRetryAfter, [this, name] {
    dirty_.insert(name);
    run();
  });
}

}  // namespace spillway::apiserver
