// Questions and records of the Domain Name System as values, as far as a cluster's names need them.
// Thread: any (values). Source: RFC 1035, RFC 2782, RFC 3596.
#pragma once

#include "api/text/ip_address.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace spillway::dns {

/// The numbers of RFC 1035 and its successors. Other numbers are legal values: a query may name any type.
enum class RecordType : std::uint16_t {
  kA = 1,
  kNs = 2,
  kCname = 5,
  kSoa = 6,
  kPtr = 12,
  kMx = 15,
  kTxt = 16,
  kAaaa = 28,
  kSrv = 33,
  kIxfr = 251,
  kAxfr = 252,
};

enum class Rcode : std::uint8_t {
  kNoError = 0,
  kFormatError = 1,
  kServerFailure = 2,
  kNameError = 3,  // NXDOMAIN
  kNotImplemented = 4,
  kRefused = 5,
};

struct Question {
  std::string name;  // absolute, with the point at the end, in the client's spelling
  RecordType type = RecordType::kA;

  friend bool operator==(const Question&, const Question&) = default;
};

/// The data of CNAME, NS and PTR.
struct NameData {
  std::string name;  // absolute

  friend bool operator==(const NameData&, const NameData&) = default;
};

struct TextData {
  std::string text;

  friend bool operator==(const TextData&, const TextData&) = default;
};

struct ServiceData {
  std::uint16_t priority = 0;
  std::uint16_t weight = 0;
  std::uint16_t port = 0;
  std::string target;  // absolute

  friend bool operator==(const ServiceData&, const ServiceData&) = default;
};

struct AuthorityData {
  std::string server;   // absolute
  std::string mailbox;  // absolute
  std::uint32_t serial = 0;
  std::uint32_t refresh_seconds = 0;
  std::uint32_t retry_seconds = 0;
  std::uint32_t expire_seconds = 0;
  std::uint32_t minimum_seconds = 0;

  friend bool operator==(const AuthorityData&, const AuthorityData&) = default;
};

using RecordData = std::variant<api::IpAddress, NameData, TextData, ServiceData, AuthorityData>;

struct Record {
  std::string name;  // absolute
  RecordType type = RecordType::kA;
  std::uint32_t ttl_seconds = 0;
  RecordData data;

  friend bool operator==(const Record&, const Record&) = default;
};

struct Answer {
  Rcode rcode = Rcode::kNoError;
  std::vector<Record> answers;
  std::vector<Record> authority;
  std::vector<Record> additional;
  /// The last CNAME leads out of the cluster: the records of this absolute name, of the same type, follow.
  std::optional<std::string> alias;
  /// True if there are more records than the bounds allow.
  bool cut = false;
};

}  // namespace spillway::dns
