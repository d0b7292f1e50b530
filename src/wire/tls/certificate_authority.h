// The cluster's own certificate authority: made once, kept in a folder, signs the certificates of servers and clients.
// Keys are ECDSA P-256. Thread: any that may block on the disk. Source: spec "API server contract", 19.1; RFC 5280.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "wire/tls/openssl_handles.h"
#include "wire/tls/tls.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::wire {

/// The purpose of a certificate and the names in it.
struct CertificateRequest {
  enum class Use { kServer, kClient };

  Use use = Use::kClient;
  std::string common_name;                 // the user, of a client
  std::vector<std::string> organizations;  // groups of the user
  /// Names and numeric addresses a server is reached by.
  std::vector<std::string> hosts;
};

/// A new key, and a request (PKCS #10) that is signed with it.
struct SigningRequestPair {
  std::string request_pem;
  std::string key_pem;
};

/// kInvalid ("hosts"): an entry is neither a name nor an address.
Outcome check_hosts(const std::vector<std::string>& hosts);

Result<SigningRequestPair> make_signing_request(const CertificateRequest& request);

/// The end of the certificate. kInvalid: not a PEM certificate, or not one for that key.
Result<WallTime> end_of(const KeyPair& pair);
/// The end of a certificate without its key: the first one in the text.
Result<WallTime> end_of_certificate_pem(const std::string& pem);

class CertificateAuthority {
 public:
  static constexpr Duration kAuthorityLife = hours(24 * 3650);
  static constexpr Duration kCertificateLife = hours(24 * 365);
  /// A kept certificate that has less left is issued anew.
  static constexpr Duration kRenewBefore = hours(24 * 30);

  /// The authority in `folder` (ca.crt, ca.key; mode 0600), made if there is none. Its certificate is renewed, for the
  /// same key, before it expires. The folder is made if its parent exists. Errors name the file.
  static Result<CertificateAuthority> open(const std::string& folder, WallTime now);

  const std::string& certificate_pem() const { return certificate_pem_; }

  /// The end of the authority's certificate.
  Result<WallTime> end() const;

  Result<KeyPair> issue(const CertificateRequest& request, WallTime now) const;

  /// A PEM certificate for a public key of another process.
  Result<std::string> certify(const KeyPtr& key, const CertificateRequest& request, Duration life, WallTime now) const;

  /// The pair kept in the folder as NAME.crt and NAME.key; issued anew if there is none, if it is about to expire, was
  /// issued by another authority, or differs from `request`.
  Result<KeyPair> keep(std::string_view name, const CertificateRequest& request, WallTime now) const;

 private:
  CertificateAuthority(std::string folder, CertificatePtr certificate, KeyPtr key, std::string certificate_pem);
  static Result<CertificateAuthority> certify_itself(const std::string& folder, KeyPtr key, WallTime now);
  bool still_good(const KeyPair& pair, const CertificateRequest& request, WallTime now) const;

  std::string folder_;
  CertificatePtr certificate_;
  KeyPtr key_;
  std::string certificate_pem_;
};

}  // namespace spillway::wire
