// Validation of CertificateSigningRequests: the writer may approve or sign for the signer, no request names
// system:masters, the request is well-formed and signed with its own key, and the issued text holds certificates.
// Thread: loop. Source: Kubernetes docs, "Certificates and Certificate Signing Requests", authorization; "Admission
// Control", CertificateApproval, CertificateSigning, CertificateSubjectRestriction.
#pragma once

#include "apiserver/access/authorizer.h"
#include "apiserver/ports/certificate_reader.h"
#include "apiserver/resource/admission_check.h"

#include <string_view>

namespace spillway::apiserver {

class SigningCheck final : public AdmissionCheck {
 public:
  /// Without a reader no certificate is requested or issued.
  SigningCheck(const Authorizer& authorizer, const CertificateReader* reader)
      : authorizer_(authorizer), reader_(reader) {}

  api::StatusResult<void> check_create(const api::UserInfo& user, const Resource& resource,
                                       const api::Json& object) const override;
  api::StatusResult<void> check_update(const api::UserInfo& user, const Resource& resource, SubresourceId part,
                                       const api::Json& object, const api::Json& old) const override;
  void validate_create(const Resource& resource, const api::Json& object, api::FieldErrors& errors) const override;
  void validate_update(const Resource& resource, const api::Json& object, const api::Json& old,
                       api::FieldErrors& errors) const override;

  /// Always true: no resource that is renewed is subject to this check.
  bool passes_renewal(const api::UserInfo& /*user*/, const Resource& /*resource*/, std::string_view /*ns*/,
                      std::string_view /*name*/) const override {
    return true;
  }

 private:
  /// `verb` on the signer, or on all of its domain ("example.com/*").
  bool may(const api::UserInfo& user, std::string_view verb, std::string_view signer) const;

  const Authorizer& authorizer_;
  const CertificateReader* reader_;
};

}  // namespace spillway::apiserver
