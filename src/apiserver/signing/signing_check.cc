#include "apiserver/signing/signing_check.h"

#include "api/text/base64.h"
#include "policy/signing/signers.h"

#include <optional>
#include <string>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

constexpr std::string_view kGroup = "certificates.k8s.io";

bool is_signing_request(const Resource& resource) {
  return resource.is(kGroup, "CertificateSigningRequest");
}

/// The bytes of a member that holds base64; documents are typed, so it is.
std::string bytes_at(const Json& object, std::initializer_list<std::string_view> path) {
  return api::decode_base64(object.string_at(path)).value_or(std::string());
}

bool same_at(const Json& a, const Json& b, std::initializer_list<std::string_view> path) {
  const Json* first = a.at(path);
  const Json* second = b.at(path);
  return (first == nullptr && second == nullptr) || (first != nullptr && second != nullptr && *first == *second);
}

api::Status refusal(const Resource& resource, const Json& object, std::string_view why) {
  return api::forbidden_status(resource.group_resource(), object.string_at({"metadata", "name"}), why);
}

}  // namespace

bool SigningCheck::may(const api::UserInfo& user, std::string_view verb, std::string_view signer) const {
  RequestAttributes asked{.is_resource = true,
                          .verb = std::string(verb),
                          .group = std::string(kGroup),
                          .version = "*",
                          .resource = "signers",
                          .name = std::string(signer)};
  if (authorizer_.authorize(user, asked).allowed) return true;
  asked.name = std::string(signer.substr(0, signer.find('/'))) + "/*";
  return authorizer_.authorize(user, asked).allowed;
}

StatusResult<void> SigningCheck::check_create(const api::UserInfo&, const Resource& resource,
                                              const Json& object) const {
  if (!is_signing_request(resource)) return {};
  if (reader_ == nullptr) {
    return make_error(ErrorCode::kServiceUnavailable, "this server cannot read certificate requests");
  }
  const auto wanted = reader_->read_request(bytes_at(object, {"spec", "request"}));
  if (!wanted) return {};  // validation reports the error
  const auto why = signing::creation_refusal(object.string_at({"spec", "signerName"}), *wanted);
  if (why) return refusal(resource, object, *why);
  return {};
}

/// The signer is that of the stored object.
StatusResult<void> SigningCheck::check_update(const api::UserInfo& user, const Resource& resource, SubresourceId part,
                                              const Json& object, const Json& old) const {
  if (!is_signing_request(resource)) return {};
  const std::string_view signer = old.string_at({"spec", "signerName"});
  if (part == SubresourceId::kApproval && !may(user, "approve", signer)) {
    return refusal(resource, object,
                   fmt::format("user not permitted to approve requests with signerName \"{}\"", signer));
  }
  const bool signs = part == SubresourceId::kStatus && !(same_at(object, old, {"status", "certificate"}) &&
                                                         same_at(object, old, {"status", "conditions"}));
  if (signs && !may(user, "sign", signer)) {
    return refusal(resource, object, fmt::format("user not permitted to sign requests with signerName \"{}\"", signer));
  }
  return {};
}

void SigningCheck::validate_create(const Resource& resource, const Json& object, api::FieldErrors& errors) const {
  if (!is_signing_request(resource) || reader_ == nullptr) return;
  const auto read = reader_->read_request(bytes_at(object, {"spec", "request"}));
  if (!read) errors.invalid("spec.request", "<request data>", read.error().text());
}

void SigningCheck::validate_update(const Resource& resource, const Json& object, const Json& old,
                                   api::FieldErrors& errors) const {
  if (!is_signing_request(resource) || same_at(object, old, {"status", "certificate"})) return;
  const std::string certificate = bytes_at(object, {"status", "certificate"});
  if (certificate.empty()) return;
  const Outcome checked = reader_ != nullptr ? reader_->check_certificates(certificate)
                                             : Outcome(invalid({}, "this server cannot read certificates"));
  if (!checked) errors.invalid("status.certificate", "<certificate data>", checked.error().text());
}

}  // namespace spillway::apiserver
