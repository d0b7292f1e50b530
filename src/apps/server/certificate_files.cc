#include "apps/server/certificate_files.h"

#include "api/text/time_text.h"
#include "base/file.h"
#include "wire/tls/certificate_authority.h"
#include "wire/tls/private_file.h"

namespace spillway::apps {

Outcome CertificateFiles::read_serving(Read& into, WallTime now) const {
  SPILLWAY_TRY(certificate, read_file(paths_.certificate));
  SPILLWAY_TRY(key, wire::read_private_file(paths_.key));
  wire::KeyPair pair{std::move(certificate), std::move(key)};
  const Result<WallTime> end = wire::end_of(pair);
  if (!end) {
    const bool of_key = end.error().at == "private key";
    return invalid(of_key ? paths_.key : paths_.certificate, "{}", end.error().message);
  }
  if (*end <= now) return invalid(paths_.certificate, "the certificate ended at {}", api::format_time(*end));
  into.serving = std::move(pair);
  into.serving_end = *end;
  return {};
}

Result<bool> CertificateFiles::refresh(WallTime now) {
  Read read;
  if (!paths_.client_authority.empty()) {
    SPILLWAY_TRY(pem, read_file(paths_.client_authority));
    if (const auto usable = wire::TlsContext::make_client({.authority_pem = pem, .identity = {}});
        pem.empty() || !usable) {
      return invalid(paths_.client_authority, "{}", usable ? "is empty" : usable.error().message);
    }
    read.client_authority_pem = std::move(pem);
  }
  if (!paths_.certificate.empty()) SPILLWAY_TRY_VOID(read_serving(read, now));
  const auto text_of = [](const Read& one) {
    return one.client_authority_pem +
           (one.serving ? one.serving->certificate_pem + one.serving->key_pem : std::string());
  };
  const bool is_new = text_of(read) != text_of(read_);
  read_ = std::move(read);
  return is_new;
}

}  // namespace spillway::apps
