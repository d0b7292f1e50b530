#include "agent/serving/node_certificate.h"

#include "api/json/json.h"
#include "api/text/base64.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {

namespace {

using api::Json;

constexpr std::string_view kCertificatesVersion = "certificates.k8s.io/v1";
constexpr std::string_view kCertificatesPlural = "certificatesigningrequests";
constexpr Duration kSayAfter = minutes(1);

struct Purpose {
  std::string_view engine;
  std::string_view text;
  std::string_view signer;
  std::string_view usage;
};

constexpr Purpose kServing{"serving-certificate", "serving certificate", "kubernetes.io/kubelet-serving",
                           "server auth"};
constexpr Purpose kClient{"client-certificate", "client certificate", "kubernetes.io/kube-apiserver-client-kubelet",
                          "client auth"};

const Purpose& facts_of(CertificatePurpose purpose) {
  return purpose == CertificatePurpose::kServing ? kServing : kClient;
}

Json request_document(const Purpose& purpose, std::string_view pem) {
  return Json::object({{"apiVersion", kCertificatesVersion},
                       {"kind", "CertificateSigningRequest"},
                       {"metadata", Json::object({{"generateName", "csr-"}})},
                       {"spec", Json::object({{"signerName", purpose.signer},
                                              {"request", api::encode_base64(pem)},
                                              {"usages", Json::array({"digital signature", purpose.usage})}})}});
}

std::optional<std::string> refusal_of(const Json& request) {
  const Json* conditions = request.at({"status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr) return std::nullopt;
  for (const Json& condition : *conditions->if_array()) {
    const std::string_view type = condition.string_at({"type"});
    if (type == "Denied" || type == "Failed") return std::string(condition.string_at({"message"}));
  }
  return std::nullopt;
}

}  // namespace

NodeCertificate::NodeCertificate(CertificatePurpose purpose, CertificateKeys& keys, telemetry::Log log, Rng rng,
                                 std::optional<WallTime> end)
    : purpose_(purpose), keys_(keys), log_(std::move(log)), api_("spillway-agent", rng), end_(end) {}

std::string_view NodeCertificate::name() const {
  return facts_of(purpose_).engine;
}

void NodeCertificate::start(Now now) {
  api_.start(now);
  if (end_) {
    renew_before(*end_, now);
  } else {
    request(now);
  }
}

void NodeCertificate::request(Now now) {
  const Result<std::string> pem = keys_.make_request();
  if (!pem) return retry(pem.error().text(), now);
  asked_ = now.mono;
  polls_.reset();
  api_.create(client::object_path(kCertificatesVersion, kCertificatesPlural, {}),
              request_document(facts_of(purpose_), *pem),
              [this](const Result<Json>& outcome, Now answered) { on_requested(outcome, answered); });
}

void NodeCertificate::on_requested(const Result<Json>& outcome, Now now) {
  if (!outcome) return retry(outcome.error().text(), now);
  name_ = outcome->string_at({"metadata", "name"});
  on_request(*outcome, now);
}

void NodeCertificate::poll(Now now) {
  if (now.mono - asked_ > kPatience) return request(now);
  api_.get(client::object_path(kCertificatesVersion, kCertificatesPlural, {}, name_),
           [this](const Result<Json>& outcome, Now answered) { on_polled(outcome, answered); });
}

void NodeCertificate::on_polled(const Result<Json>& outcome, Now now) {
  if (outcome) return on_request(*outcome, now);
  if (outcome.error().code == ErrorCode::kNotFound) return retry("the request was deleted", now);
  api_.at(now.mono + kPollMax, [this](Now later) { poll(later); });
}

void NodeCertificate::on_request(const Json& request, Now now) {
  if (const auto refused = refusal_of(request)) return retry(*refused, now);
  if (const std::string_view encoded = request.string_at({"status", "certificate"}); !encoded.empty()) {
    const Result<std::string> pem = api::decode_base64(encoded);
    if (!pem) return retry(pem.error().text(), now);
    return install(*pem, now);
  }
  if (now.mono - asked_ > kSayAfter && say_once()) {
    log_.info("certificate not signed yet", {{"purpose", facts_of(purpose_).text}, {"request", name_}});
  }
  api_.at(now.mono + polls_.next(), [this](Now later) { poll(later); });
}

void NodeCertificate::install(const std::string& certificate, Now now) {
  const Result<WallTime> end = keys_.install(certificate);
  if (!end) return retry(end.error().text(), now);
  log_.info(fmt::format("{} installed", facts_of(purpose_).text), {{"request", name_}});
  installed_ = true;
  said_ = false;
  retries_.reset();
  renew_before(*end, now);
}

void NodeCertificate::renew_before(WallTime end, Now now) {
  const Duration left = std::max<Duration>(end - now.wall, Duration::zero());
  api_.at(now.mono + std::max<Duration>(left / 5 * 4, kRetryMax), [this](Now later) { request(later); });
}

void NodeCertificate::retry(std::string_view why, Now now) {
  if (say_once()) log_.warning(fmt::format("no signed {}", facts_of(purpose_).text), {{"error", std::string(why)}});
  api_.at(now.mono + retries_.next(), [this](Now later) { request(later); });
}

}  // namespace spillway::agent
