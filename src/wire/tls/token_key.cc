#include "wire/tls/token_key.h"

#include "api/text/base64.h"
#include "wire/tls/private_file.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace spillway::wire {

namespace {

constexpr int kNumberBytes = 32;  // length of each of the two numbers of a P-256 signature
constexpr std::size_t kSignatureBytes = 64;
constexpr std::string_view kEcdsa = "ES256";
constexpr std::string_view kRsa = "RS256";

struct DigestFree {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

struct SignatureFree {
  void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
};

struct NumberFree {
  void operator()(BIGNUM* number) const { BN_free(number); }
};

using DigestPtr = std::unique_ptr<EVP_MD_CTX, DigestFree>;
using SignaturePtr = std::unique_ptr<ECDSA_SIG, SignatureFree>;

Error refused(std::string_view why) {
  return make_error(ErrorCode::kUnauthorized, "service account token: {}", why);
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Result<std::string> make_key_pem() {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!key || !bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return openssl_error("making a key for tokens");
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

/// OpenSSL speaks DER; a token carries the two numbers side by side.
Result<std::string> raw_signature(const std::vector<unsigned char>& der) {
  const unsigned char* at = der.data();
  const SignaturePtr parsed(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
  std::array<unsigned char, kSignatureBytes> raw{};
  if (!parsed || BN_bn2binpad(ECDSA_SIG_get0_r(parsed.get()), raw.data(), kNumberBytes) != kNumberBytes ||
      BN_bn2binpad(ECDSA_SIG_get0_s(parsed.get()), raw.data() + kNumberBytes, kNumberBytes) != kNumberBytes) {
    return openssl_error("signing a token");
  }
  return std::string(reinterpret_cast<const char*>(raw.data()), raw.size());
}

std::optional<std::vector<unsigned char>> der_signature(std::string_view raw) {
  if (raw.size() != kSignatureBytes) return std::nullopt;
  const SignaturePtr signature(ECDSA_SIG_new());
  BIGNUM* r = BN_bin2bn(bytes_of(raw), kNumberBytes, nullptr);
  BIGNUM* s = BN_bin2bn(bytes_of(raw) + kNumberBytes, kNumberBytes, nullptr);
  if (!signature || r == nullptr || s == nullptr || ECDSA_SIG_set0(signature.get(), r, s) != 1) {
    BN_free(r);
    BN_free(s);
    return std::nullopt;
  }
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size <= 0) return std::nullopt;
  std::vector<unsigned char> out(der, der + size);
  OPENSSL_free(der);
  return out;
}

Result<TokenKey::Key> known_key(KeyPtr key, const std::string& path) {
  const bool ecdsa = EVP_PKEY_is_a(key.get(), "EC") == 1 && EVP_PKEY_get_bits(key.get()) == 8 * kNumberBytes;
  const bool rsa = EVP_PKEY_is_a(key.get(), "RSA") == 1 && EVP_PKEY_get_bits(key.get()) >= TokenKey::kRsaBitsMin;
  if (!ecdsa && !rsa) {
    return invalid(path, "expected an ECDSA P-256 key, or an RSA key of {} bits or more", TokenKey::kRsaBitsMin);
  }
  SPILLWAY_TRY(id, key_id(key.get()));
  return TokenKey::Key{std::move(key), std::move(id), ecdsa ? kEcdsa : kRsa};
}

KeyPtr key_in(std::string_view label, const unsigned char* data, long size) {
  if (label == PEM_STRING_PUBLIC) return KeyPtr(d2i_PUBKEY(nullptr, &data, size));
  if (label == PEM_STRING_X509) {
    const CertificatePtr certificate(d2i_X509(nullptr, &data, size));
    return KeyPtr(certificate ? X509_get_pubkey(certificate.get()) : nullptr);
  }
  return KeyPtr(d2i_AutoPrivateKey(nullptr, &data, size));
}

struct OpensslBytesFree {
  void operator()(void* bytes) const { OPENSSL_free(bytes); }
};

/// Adds all keys of a file: public or private ones, and those of certificates.
Outcome add_keys(std::vector<TokenKey::Key>& keys, const std::string& path) {
  SPILLWAY_TRY(pem, read_file(path));
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const std::size_t before = keys.size();
  while (bio) {
    char* label = nullptr;
    char* header = nullptr;
    unsigned char* data = nullptr;
    long size = 0;
    const bool found = PEM_read_bio(bio.get(), &label, &header, &data, &size) == 1;
    const std::unique_ptr<void, OpensslBytesFree> owned[] = {std::unique_ptr<void, OpensslBytesFree>(label),
                                                             std::unique_ptr<void, OpensslBytesFree>(header),
                                                             std::unique_ptr<void, OpensslBytesFree>(data)};
    if (!found) break;
    if (std::string_view(label) == PEM_STRING_ECPARAMETERS) continue;  // openssl writes the parameters before the key
    KeyPtr key = key_in(label, data, size);
    if (!key) {
      take_openssl_problem();
      return invalid(path, "the {} in it cannot be read", label);
    }
    if (keys.size() == TokenKey::kKeysMax) return invalid(path, "more than {} keys for tokens", TokenKey::kKeysMax);
    SPILLWAY_TRY(known, known_key(std::move(key), path));
    keys.push_back(std::move(known));
  }
  take_openssl_problem();
  if (keys.size() == before) return invalid(path, "expected a public key, a private key or a certificate in PEM");
  return {};
}

Result<std::string> sign_with(EVP_PKEY* key, std::string_view text) {
  const DigestPtr digest(EVP_MD_CTX_new());
  std::vector<unsigned char> signature(static_cast<std::size_t>(EVP_PKEY_get_size(key)));
  std::size_t size = signature.size();
  if (!digest || EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key) != 1 ||
      EVP_DigestSign(digest.get(), signature.data(), &size, bytes_of(text), text.size()) != 1) {
    return openssl_error("signing a token");
  }
  signature.resize(size);
  if (EVP_PKEY_is_a(key, "EC") == 1) return raw_signature(signature);
  return std::string(reinterpret_cast<const char*>(signature.data()), signature.size());
}

bool is_signed_with(const TokenKey::Key& key, std::string_view text, std::string_view raw) {
  const auto der =
      key.algorithm == kEcdsa ? der_signature(raw) : std::optional(std::vector<unsigned char>(raw.begin(), raw.end()));
  const DigestPtr digest(EVP_MD_CTX_new());
  const bool genuine = der && digest &&
                       EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.key.get()) == 1 &&
                       EVP_DigestVerify(digest.get(), der->data(), der->size(), bytes_of(text), text.size()) == 1;
  if (!genuine) take_openssl_problem();
  return genuine;
}

/// A number of the key in base64url, padded to at least this number of bytes.
Result<std::string> key_number(const EVP_PKEY* key, const char* name, int bytes_min) {
  BIGNUM* read = nullptr;
  const int found = EVP_PKEY_get_bn_param(key, name, &read);
  const std::unique_ptr<BIGNUM, NumberFree> number(read);
  if (found != 1) return openssl_error("reading a public key");
  std::string bytes(static_cast<std::size_t>(std::max(BN_num_bytes(number.get()), bytes_min)), '\0');
  const int size = static_cast<int>(bytes.size());
  if (BN_bn2binpad(number.get(), reinterpret_cast<unsigned char*>(bytes.data()), size) != size) {
    return openssl_error("reading a public key");
  }
  return api::encode_base64_url(bytes);
}

/// Splits header.payload.signature; nullopt unless there are three parts.
std::optional<std::array<std::string_view, 3>> split_token(std::string_view token) {
  const std::size_t first = token.find('.');
  const std::size_t last = token.rfind('.');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const std::string_view payload = token.substr(first + 1, last - first - 1);
  if (payload.find('.') != std::string_view::npos) return std::nullopt;
  return std::array{token.substr(0, first), payload, token.substr(last + 1)};
}

}  // namespace

namespace {

/// The key in the folder, made if there is none.
Result<TokenKey::Key> own_key(const std::string& folder) {
  SPILLWAY_TRY_VOID(make_private_folder(folder));
  const std::string path = folder + "/sa.key";
  Result<std::string> pem = read_private_file(path);
  if (!pem && pem.error().code == ErrorCode::kNotFound) {
    pem = make_key_pem();
    if (!pem) return pem.error();
    SPILLWAY_TRY_VOID(replace_file(path, *pem));
  }
  if (!pem) return pem.error();
  SPILLWAY_TRY(key, parse_key(*pem, path));
  return known_key(std::move(key), path);
}

Result<TokenKey::Key> given_key(const std::string& path) {
  SPILLWAY_TRY(pem, read_private_file(path));
  SPILLWAY_TRY(key, parse_key(pem, path));
  return known_key(std::move(key), path);
}

}  // namespace

Result<std::shared_ptr<const TokenKey>> TokenKey::open(const std::string& folder) {
  return open(folder, {});
}

Result<std::shared_ptr<const TokenKey>> TokenKey::open(const std::string& folder, const Files& files) {
  std::vector<Key> keys;
  SPILLWAY_TRY(signing, files.signing.empty() ? own_key(folder) : given_key(files.signing));
  keys.push_back(std::move(signing));
  for (const std::string& path : files.accepted) SPILLWAY_TRY_VOID(add_keys(keys, path));
  return std::make_shared<const TokenKey>(std::move(keys));
}

Outcome TokenKey::check(const Files& files) {
  std::vector<Key> keys;
  if (!files.signing.empty()) SPILLWAY_TRY_VOID(given_key(files.signing));
  for (const std::string& path : files.accepted) SPILLWAY_TRY_VOID(add_keys(keys, path));
  return {};
}

Result<std::string> TokenKey::sign(const api::Json& claims) const {
  const Key& key = keys_.front();
  const api::Json header = api::Json::object({{"alg", key.algorithm}, {"kid", key.id}, {"typ", "JWT"}});
  std::string text = api::encode_base64_url(api::to_text(header)) + "." + api::encode_base64_url(api::to_text(claims));
  SPILLWAY_TRY(signature, sign_with(key.key.get(), text));
  text += "." + api::encode_base64_url(signature);
  return text;
}

Result<api::Json> TokenKey::key_set() const {
  api::Json set = api::Json::array();
  for (const Key& key : keys_) {
    api::Json shown = api::Json::object({{"use", "sig"}, {"kid", key.id}, {"alg", key.algorithm}});
    if (key.algorithm == kEcdsa) {
      SPILLWAY_TRY(x, key_number(key.key.get(), OSSL_PKEY_PARAM_EC_PUB_X, kNumberBytes));
      SPILLWAY_TRY(y, key_number(key.key.get(), OSSL_PKEY_PARAM_EC_PUB_Y, kNumberBytes));
      shown["kty"] = "EC";
      shown["crv"] = "P-256";
      shown["x"] = x;
      shown["y"] = y;
    } else {
      SPILLWAY_TRY(modulus, key_number(key.key.get(), OSSL_PKEY_PARAM_RSA_N, 0));
      SPILLWAY_TRY(exponent, key_number(key.key.get(), OSSL_PKEY_PARAM_RSA_E, 0));
      shown["kty"] = "RSA";
      shown["n"] = modulus;
      shown["e"] = exponent;
    }
    set.if_array()->push_back(std::move(shown));
  }
  return api::Json::object({{"keys", std::move(set)}});
}

api::Json TokenKey::discovery(std::string_view keys_url) const {
  std::set<std::string_view> algorithms;
  for (const Key& key : keys_) algorithms.insert(key.algorithm);
  return api::Json::object(
      {{"issuer", issuer()},
       {"jwks_uri", keys_url},
       {"response_types_supported", api::Json::array({api::Json("id_token")})},
       {"subject_types_supported", api::Json::array({api::Json("public")})},
       {"id_token_signing_alg_values_supported", api::Json::Array(algorithms.begin(), algorithms.end())}});
}

bool TokenKey::has_token_form(std::string_view text) {
  const auto parts = split_token(text);
  if (!parts || text.size() > kTokenBytesMax) return false;
  const auto header = api::decode_base64_url(parts->front());
  return header && api::parse_json(*header);
}

Result<api::Json> TokenKey::verify(std::string_view token) const {
  if (token.size() > kTokenBytesMax) return refused("too long");
  const auto parts = split_token(token);
  if (!parts) return refused("not of three parts");
  const auto header_text = api::decode_base64_url((*parts)[0]);
  const auto payload = api::decode_base64_url((*parts)[1]);
  const auto raw = api::decode_base64_url((*parts)[2]);
  if (!header_text || !payload || !raw) return refused("not in base64");
  const auto header = api::parse_json(*header_text);
  const std::string_view algorithm = header ? header->string_at({"alg"}) : std::string_view();
  if (algorithm != kEcdsa && algorithm != kRsa) return refused("not signed with ES256 or RS256");
  const std::string_view id = header->string_at({"kid"});
  const bool known = std::ranges::find(keys_, id, &Key::id) != keys_.end();
  const std::string_view text = token.substr(0, (*parts)[0].size() + 1 + (*parts)[1].size());
  const bool genuine = std::ranges::any_of(keys_, [&](const Key& key) {
    return key.algorithm == algorithm && (!known || key.id == id) && is_signed_with(key, text, *raw);
  });
  if (!genuine) return refused("not signed by this cluster");
  auto claims = api::parse_json(*payload);
  if (!claims || claims->if_object() == nullptr) return refused("its claims are no JSON object");
  return *std::move(claims);
}

}  // namespace spillway::wire
