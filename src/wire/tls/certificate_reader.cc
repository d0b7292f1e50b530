#include "wire/tls/certificate_reader.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

namespace spillway::wire {

namespace {

constexpr int kRsaBitsMax = 8192;

struct ExtensionsFree {
  void operator()(STACK_OF(X509_EXTENSION) * extensions) const {
    sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  }
};

using ExtensionsPtr = std::unique_ptr<STACK_OF(X509_EXTENSION), ExtensionsFree>;

struct NamesFree {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

using NamesPtr = std::unique_ptr<GENERAL_NAMES, NamesFree>;

Error malformed(std::string_view what) {
  return invalid({}, "{}: {}", what, take_openssl_problem());
}

struct PemBlock {
  std::string kind;     // "CERTIFICATE"
  std::string headers;  // as written
  std::string bytes;
};

/// The next PEM block of the text. nullopt: there is none.
Result<std::optional<PemBlock>> next_block(BIO* text) {
  char* kind = nullptr;
  char* headers = nullptr;
  unsigned char* bytes = nullptr;
  long size = 0;
  if (PEM_read_bio(text, &kind, &headers, &bytes, &size) != 1) {
    const bool none = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (!none) return malformed("malformed PEM block");
    ERR_clear_error();
    return std::optional<PemBlock>();
  }
  PemBlock block{kind, headers, std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size))};
  OPENSSL_free(kind);
  OPENSSL_free(headers);
  OPENSSL_free(bytes);
  return std::optional<PemBlock>(std::move(block));
}

/// Decodes DER that has to end where the text ends.
template <typename Decode>
auto decode_all(const std::string& der, Decode decode) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const unsigned char* end = at + der.size();
  auto decoded = decode(&at, static_cast<long>(der.size()));
  if (at != end) decoded.reset();
  return decoded;
}

Result<std::string> text_of(const ASN1_STRING* value) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, value);
  if (size < 0) return malformed("malformed name");
  std::string text(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  OPENSSL_free(utf8);
  if (text.find('\0') != std::string::npos) return invalid({}, "a name holds a zero byte");
  return text;
}

/// A name of ASCII letters, digits and signs.
Result<std::string> plain_text_of(const ASN1_STRING* value) {
  const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                              static_cast<std::size_t>(ASN1_STRING_length(value)));
  if (text.empty() || !std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; })) {
    return invalid({}, "a subjectAltName is empty or holds other than printable ASCII characters");
  }
  return std::string(text);
}

Result<std::string> address_of(const ASN1_STRING* value) {
  const int size = ASN1_STRING_length(value);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = size == 4 ? AF_INET : AF_INET6;
  if ((size != 4 && size != 16) ||
      inet_ntop(family, ASN1_STRING_get0_data(value), text.data(), text.size()) == nullptr) {
    return invalid({}, "cannot parse IP address of length {}", size);
  }
  return std::string(text.data());
}

Outcome read_subject(X509_REQ* request, signing::RequestedCertificate& wanted) {
  const X509_NAME* subject = X509_REQ_get_subject_name(request);
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    const int kind = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (kind != NID_commonName && kind != NID_organizationName) continue;
    SPILLWAY_TRY(text, text_of(X509_NAME_ENTRY_get_data(entry)));
    if (kind == NID_commonName) {
      wanted.common_name = std::move(text);
    } else {
      wanted.organizations.push_back(std::move(text));
    }
  }
  return {};
}

/// The extensions that the request contains; null: none.
Result<ExtensionsPtr> extensions_of(X509_REQ* request) {
  const int index = X509_REQ_get_attr_by_NID(request, NID_ext_req, -1);
  if (index < 0) return ExtensionsPtr();
  X509_ATTRIBUTE* attribute = X509_REQ_get_attr(request, index);
  if (X509_REQ_get_attr_by_NID(request, NID_ext_req, index) >= 0 || X509_ATTRIBUTE_count(attribute) != 1) {
    return invalid({}, "certificate request contains duplicate requested extensions");
  }
  const ASN1_TYPE* value = X509_ATTRIBUTE_get0_type(attribute, 0);
  if (value == nullptr || value->type != V_ASN1_SEQUENCE) return invalid({}, "malformed requested extensions");
  ExtensionsPtr extensions(
      static_cast<STACK_OF(X509_EXTENSION)*>(ASN1_item_unpack(value->value.sequence, ASN1_ITEM_rptr(X509_EXTENSIONS))));
  if (!extensions) return malformed("malformed requested extensions");
  return extensions;
}

Outcome read_name(const GENERAL_NAME& name, signing::RequestedCertificate& wanted) {
  switch (name.type) {
    case GEN_DNS: {
      SPILLWAY_TRY(text, plain_text_of(name.d.dNSName));
      wanted.dns_names.push_back(std::move(text));
      return {};
    }
    case GEN_EMAIL: {
      SPILLWAY_TRY(text, plain_text_of(name.d.rfc822Name));
      wanted.email_addresses.push_back(std::move(text));
      return {};
    }
    case GEN_URI: {
      SPILLWAY_TRY(text, plain_text_of(name.d.uniformResourceIdentifier));
      wanted.uris.push_back(std::move(text));
      return {};
    }
    case GEN_IPADD: {
      SPILLWAY_TRY(text, address_of(name.d.iPAddress));
      wanted.ip_addresses.push_back(std::move(text));
      return {};
    }
    default:
      return {};
  }
}

Outcome read_alternative_names(X509_REQ* request, signing::RequestedCertificate& wanted) {
  SPILLWAY_TRY(extensions, extensions_of(request));
  if (!extensions) return {};
  const int index = X509v3_get_ext_by_NID(extensions.get(), NID_subject_alt_name, -1);
  if (index < 0) return {};
  if (X509v3_get_ext_by_NID(extensions.get(), NID_subject_alt_name, index) >= 0) {
    return invalid({}, "certificate request contains duplicate requested extensions");
  }
  const NamesPtr names(static_cast<GENERAL_NAMES*>(X509V3_EXT_d2i(X509v3_get_ext(extensions.get(), index))));
  if (!names) return malformed("malformed subjectAltName");
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    SPILLWAY_TRY_VOID(read_name(*sk_GENERAL_NAME_value(names.get(), i), wanted));
  }
  return {};
}

/// Keys whose verification is quick and that a certificate may be for.
bool is_supported(const EVP_PKEY* key) {
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
      return EVP_PKEY_get_bits(key) <= kRsaBitsMax;
    case EVP_PKEY_EC: {
      std::array<char, 64> curve{};
      return EVP_PKEY_get_group_name(key, curve.data(), curve.size(), nullptr) == 1;
    }
    case EVP_PKEY_ED25519:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<SigningRequest> parse_signing_request(std::string_view pem) {
  if (pem.size() > OpensslCertificateReader::kRequestBytesMax) {
    return invalid({}, "larger than {} bytes", OpensslCertificateReader::kRequestBytesMax);
  }
  const BioPtr text = read_from(pem);
  const auto block = next_block(text.get());
  if (!block || !*block || (*block)->kind != "CERTIFICATE REQUEST") {
    return invalid({}, "PEM block type must be CERTIFICATE REQUEST");
  }
  const RequestPtr request = decode_all(
      (*block)->bytes, [](const unsigned char** at, long size) { return RequestPtr(d2i_X509_REQ(nullptr, at, size)); });
  if (!request) return malformed("malformed certificate request");
  SigningRequest read;
  read.key = KeyPtr(X509_REQ_get_pubkey(request.get()));
  if (!read.key || !is_supported(read.key.get())) {
    ERR_clear_error();
    return invalid({}, "the public key is none of RSA up to {} bits, ECDSA on a named curve, Ed25519", kRsaBitsMax);
  }
  if (X509_REQ_verify(request.get(), read.key.get()) != 1) {
    ERR_clear_error();
    return invalid({}, "the request is not signed with the key that it names");
  }
  SPILLWAY_TRY_VOID(read_subject(request.get(), read.wanted));
  SPILLWAY_TRY_VOID(read_alternative_names(request.get(), read.wanted));
  return read;
}

Result<signing::RequestedCertificate> OpensslCertificateReader::read_request(std::string_view pem) const {
  SPILLWAY_TRY(read, parse_signing_request(pem));
  return std::move(read.wanted);
}

Outcome OpensslCertificateReader::check_certificates(std::string_view pem) const {
  if (pem.size() > kCertificatesBytesMax) return invalid({}, "larger than {} bytes", kCertificatesBytesMax);
  const BioPtr text = read_from(pem);
  for (bool first = true;; first = false) {
    SPILLWAY_TRY(block, next_block(text.get()));
    if (!block && first) return invalid({}, "must contain at least one CERTIFICATE PEM block");
    if (!block) return {};
    if (block->kind != "CERTIFICATE") {
      return invalid({}, "only CERTIFICATE PEM blocks are allowed, found \"{}\"", block->kind);
    }
    if (!block->headers.empty()) return invalid({}, "no PEM block headers are permitted");
    const CertificatePtr certificate = decode_all(
        block->bytes, [](const unsigned char** at, long size) { return CertificatePtr(d2i_X509(nullptr, at, size)); });
    if (!certificate) return malformed("malformed certificate");
  }
}

}  // namespace spillway::wire
