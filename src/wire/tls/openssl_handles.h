// Owners of OpenSSL's objects, and its error queue as text. The types stay incomplete here.
// Thread: any; each object one at a time.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <memory>
#include <string>
#include <string_view>

struct bio_st;
struct evp_pkey_st;
struct ssl_ctx_st;
struct ssl_st;
struct x509_st;
struct X509_req_st;

namespace spillway::wire {

struct OpensslFree {
  void operator()(bio_st* bio) const;
  void operator()(evp_pkey_st* key) const;
  void operator()(ssl_st* ssl) const;
  void operator()(x509_st* certificate) const;
  void operator()(X509_req_st* request) const;
};

using BioPtr = std::unique_ptr<bio_st, OpensslFree>;
using KeyPtr = std::unique_ptr<evp_pkey_st, OpensslFree>;
using SslPtr = std::unique_ptr<ssl_st, OpensslFree>;
using CertificatePtr = std::unique_ptr<x509_st, OpensslFree>;
using RequestPtr = std::unique_ptr<X509_req_st, OpensslFree>;

/// The text of the oldest entry of this thread's error queue; empties the queue.
std::string take_openssl_problem();
/// kInternalError: "DOING: " and the oldest entry of the error queue, which it empties.
Error openssl_error(std::string_view doing);
/// A read-only BIO over the text, which must outlive it.
BioPtr read_from(std::string_view text);

/// Parses the first certificate of a PEM text. kInvalid: there is none; `what` names it.
Result<CertificatePtr> parse_certificate(std::string_view pem, std::string_view what);
/// The end of the certificate, to the second.
Result<WallTime> end_of_certificate(const x509_st* certificate);
/// A digest of the public key (SHA-256 of its SubjectPublicKeyInfo, base64url): the same in every process that has that
/// key.
Result<std::string> key_id(evp_pkey_st* key);
/// The id of the key of the first certificate of a PEM text.
Result<std::string> certificate_key_id(std::string_view pem, std::string_view what);
/// A private key without a pass phrase.
Result<KeyPtr> parse_key(std::string_view pem, std::string_view what);

}  // namespace spillway::wire
