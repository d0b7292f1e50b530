// Messages of the Domain Name System: bytes to values and back. Nothing that a client or a server sends is trusted:
// sections and sizes are checked before names are read. Thread: any (pure).
// Source: RFC 1035, RFC 2308, RFC 6891 (EDNS). Only message.cc uses ldns.
#pragma once

#include "policy/dns/record.h"

#include "dns/foreign_answer.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace spillway::wire {

/// The most that a UDP answer has: it fits into every path without fragments. Source: DNS flag day 2020.
inline constexpr std::size_t kUdpBytesMax = 1232;
/// The most without EDNS.
inline constexpr std::size_t kPlainUdpBytesMax = 512;
inline constexpr std::size_t kDnsMessageMax = 65535;

struct DnsQuery {
  std::uint16_t id = 0;
  std::uint8_t opcode = 0;
  bool recursion_desired = false;
  bool checking_disabled = false;
  std::uint16_t record_class = 1;
  dns::Question question;
  bool has_edns = false;
  std::uint8_t edns_version = 0;
  std::uint16_t edns_bytes = 0;  // accepted by the client over UDP
  bool dnssec_ok = false;

  /// The bytes that an answer by UDP may have.
  std::size_t udp_answer_max() const;
};

/// A message that is no valid query. `reply`: the error answer; empty: no answer is sent, because it is an answer
/// itself, or too short for a header.
struct BadMessage {
  std::string reply;
};

std::variant<DnsQuery, BadMessage> parse_query(std::string_view bytes);

/// The answer to `query` in at most `bytes_max` bytes: what does not fit is left out, additional records first, and
/// then answers, which sets TC. `foreign`: another server's message, whose records follow those of `answer`, less
/// `age_seconds` of their time, and whose rcode counts.
std::string print_answer(const DnsQuery& query, const dns::Answer& answer, const std::string* foreign,
                         std::uint32_t age_seconds, std::size_t bytes_max);

/// A query to another server.
struct OutgoingQuery {
  std::uint16_t id = 0;
  dns::Question question;
  bool dnssec_ok = false;
  bool checking_disabled = false;
};

/// Empty: the name cannot be queried.
std::string print_query(const OutgoingQuery& query);

/// nullopt: it is no answer to `query`, or none that can be understood. The id, and the question with its type and
/// class, must be those of the query.
std::optional<dns::ForeignAnswer> parse_answer(std::string_view bytes, const OutgoingQuery& query);

}  // namespace spillway::wire
