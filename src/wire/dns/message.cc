#include "wire/dns/message.h"

#include "base/ascii.h"

#include <ldns/ldns.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

namespace spillway::wire {
namespace {

constexpr std::size_t kHeaderBytes = 12;
constexpr std::uint16_t kInternet = 1;
constexpr std::uint8_t kBadVersion = 16;  // RFC 6891: EDNS of a version that is not 0
// A query has an OPT record, and may be signed.
constexpr unsigned kQueryAdditionalMax = 2;

struct FreePacket {
  void operator()(ldns_pkt* packet) const { ldns_pkt_free(packet); }
};

struct FreeRecord {
  void operator()(ldns_rr* record) const { ldns_rr_free(record); }
};

struct FreeDataField {
  void operator()(ldns_rdf* field) const { ldns_rdf_deep_free(field); }
};

struct FreeText {
  void operator()(char* text) const { std::free(text); }  // NOLINT(cppcoreguidelines-no-malloc): ldns allocates it
};

using Packet = std::unique_ptr<ldns_pkt, FreePacket>;
using RecordPtr = std::unique_ptr<ldns_rr, FreeRecord>;
using DataField = std::unique_ptr<ldns_rdf, FreeDataField>;
using Text = std::unique_ptr<char, FreeText>;

const std::uint8_t* octets(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

unsigned number_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned>(octets(bytes)[at]) << 8U | octets(bytes)[at + 1];
}

bool is_answer(std::string_view bytes) {
  return (octets(bytes)[2] & 0x80U) != 0;
}

Packet parse_packet(std::string_view bytes) {
  ldns_pkt* packet = nullptr;
  if (ldns_wire2pkt(&packet, octets(bytes), bytes.size()) != LDNS_STATUS_OK) return nullptr;
  return Packet(packet);
}

std::string name_text(const ldns_rdf* name) {
  const Text text(ldns_rdf2str(name));
  return text ? text.get() : "";
}

DataField name_field(const std::string& name) {
  return DataField(ldns_dname_new_frm_str(name.c_str()));
}

DataField number_field(std::uint16_t number) {
  return DataField(ldns_native2rdf_int16(LDNS_RDF_TYPE_INT16, number));
}

DataField wide_field(ldns_rdf_type type, std::uint32_t number) {
  return DataField(ldns_native2rdf_int32(type, number));
}

/// Adds the fields of a record's data. False: one of them is no legal value.
class DataFields {
 public:
  explicit DataFields(ldns_rr* record) : record_(record) {}

  bool operator()(const api::IpAddress& address) const {
    const std::size_t begin = address.v4 ? 12 : 0;
    return add(DataField(ldns_rdf_new_frm_data(address.v4 ? LDNS_RDF_TYPE_A : LDNS_RDF_TYPE_AAAA,
                                               address.octets.size() - begin, address.octets.data() + begin)));
  }

  bool operator()(const dns::NameData& data) const { return add(name_field(data.name)); }

  bool operator()(const dns::TextData& data) const {
    return add(DataField(ldns_rdf_new_frm_str(LDNS_RDF_TYPE_STR, data.text.c_str())));
  }

  bool operator()(const dns::ServiceData& data) const {
    return add(number_field(data.priority)) && add(number_field(data.weight)) && add(number_field(data.port)) &&
           add(name_field(data.target));
  }

  bool operator()(const dns::AuthorityData& data) const {
    return add(name_field(data.server)) && add(name_field(data.mailbox)) &&
           add(wide_field(LDNS_RDF_TYPE_INT32, data.serial)) &&
           add(wide_field(LDNS_RDF_TYPE_PERIOD, data.refresh_seconds)) &&
           add(wide_field(LDNS_RDF_TYPE_PERIOD, data.retry_seconds)) &&
           add(wide_field(LDNS_RDF_TYPE_PERIOD, data.expire_seconds)) &&
           add(wide_field(LDNS_RDF_TYPE_PERIOD, data.minimum_seconds));
  }

 private:
  bool add(DataField field) const {
    if (!field) return false;
    ldns_rr_push_rdf(record_, field.release());
    return true;
  }

  ldns_rr* record_;
};

/// Null: the record has no form in a message, as one of a name that is too long.
RecordPtr make_record(const dns::Record& from) {
  RecordPtr record(ldns_rr_new());
  DataField owner = name_field(from.name);
  if (!record || !owner) return nullptr;
  ldns_rr_set_owner(record.get(), owner.release());
  ldns_rr_set_type(record.get(), static_cast<ldns_rr_type>(from.type));
  ldns_rr_set_class(record.get(), LDNS_RR_CLASS_IN);
  ldns_rr_set_ttl(record.get(), from.ttl_seconds);
  return std::visit(DataFields(record.get()), from.data) ? std::move(record) : nullptr;
}

RecordPtr make_question(const dns::Question& question, std::uint16_t record_class) {
  RecordPtr record(ldns_rr_new());
  DataField owner = name_field(question.name);
  if (!record || !owner) return nullptr;
  ldns_rr_set_question(record.get(), true);
  ldns_rr_set_owner(record.get(), owner.release());
  ldns_rr_set_type(record.get(), static_cast<ldns_rr_type>(question.type));
  ldns_rr_set_class(record.get(), static_cast<ldns_rr_class>(record_class));
  return record;
}

void push(ldns_pkt* packet, ldns_pkt_section section, RecordPtr record) {
  if (record) ldns_pkt_push_rr(packet, section, record.release());
}

std::string packet_bytes(const ldns_pkt* packet) {
  std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
  if (ldns_pkt2wire(&bytes, packet, &size) != LDNS_STATUS_OK) return {};
  const Text owner(reinterpret_cast<char*>(bytes));
  return {owner.get(), size};
}

/// The records of a message that is being made, in the order in which they are left out: the last ones first.
struct Sections {
  std::vector<RecordPtr> answers;
  std::vector<RecordPtr> authority;
  std::vector<RecordPtr> additional;
};

void take_records(const std::vector<dns::Record>& from, std::vector<RecordPtr>& to) {
  for (const dns::Record& each : from)
    if (RecordPtr record = make_record(each)) to.push_back(std::move(record));
}

void take_foreign(const ldns_rr_list* from, std::uint32_t age_seconds, std::vector<RecordPtr>& to) {
  for (std::size_t i = 0; i < ldns_rr_list_rr_count(from); ++i) {
    RecordPtr record(ldns_rr_clone(ldns_rr_list_rr(from, i)));
    if (!record || ldns_rr_get_type(record.get()) == LDNS_RR_TYPE_OPT) continue;
    const std::uint32_t ttl = ldns_rr_ttl(record.get());
    ldns_rr_set_ttl(record.get(), ttl - std::min(ttl, age_seconds));
    to.push_back(std::move(record));
  }
}

Packet make_header(const DnsQuery& query, bool authoritative, std::uint8_t rcode) {
  Packet packet(ldns_pkt_new());
  ldns_pkt_set_id(packet.get(), query.id);
  ldns_pkt_set_qr(packet.get(), true);
  ldns_pkt_set_opcode(packet.get(), static_cast<ldns_pkt_opcode>(query.opcode));
  ldns_pkt_set_aa(packet.get(), authoritative);
  ldns_pkt_set_rd(packet.get(), query.recursion_desired);
  ldns_pkt_set_ra(packet.get(), true);
  ldns_pkt_set_cd(packet.get(), query.checking_disabled);
  ldns_pkt_set_rcode(packet.get(), rcode & 0x0fU);
  if (query.has_edns) {
    ldns_pkt_set_edns_udp_size(packet.get(), kUdpBytesMax);
    ldns_pkt_set_edns_do(packet.get(), query.dnssec_ok);
    ldns_pkt_set_edns_extended_rcode(packet.get(), static_cast<std::uint8_t>(rcode >> 4U));
  }
  push(packet.get(), LDNS_SECTION_QUESTION, make_question(query.question, query.record_class));
  return packet;
}

struct Counts {
  std::size_t answers = 0;
  std::size_t authority = 0;
  std::size_t additional = 0;
};

class AnswerPrinter {
 public:
  AnswerPrinter(const DnsQuery& query, bool authoritative, std::uint8_t rcode, Sections sections)
      : query_(query), authoritative_(authoritative), rcode_(rcode), sections_(std::move(sections)) {}

  /// `cut`: more answers exist, whatever fits.
  std::string print(std::size_t bytes_max, bool cut) const {
    Counts counts{sections_.answers.size(), sections_.authority.size(), sections_.additional.size()};
    std::string bytes = print(counts, cut);
    if (fits(bytes, bytes_max)) return bytes;
    counts.additional = 0;
    bytes = print(counts, cut);
    if (fits(bytes, bytes_max)) return bytes;
    counts.authority = 0;
    // The largest number of answers that fits; the header and the question always do.
    std::size_t fitting = 0;
    std::size_t too_many = counts.answers + 1;
    while (too_many - fitting > 1) {
      const std::size_t middle = (fitting + too_many) / 2;
      (fits(print({middle, 0, 0}, true), bytes_max) ? fitting : too_many) = middle;
    }
    return print({fitting, 0, 0}, true);
  }

 private:
  static bool fits(const std::string& bytes, std::size_t bytes_max) {
    return !bytes.empty() && bytes.size() <= bytes_max;
  }

  static void push_first(ldns_pkt* packet, ldns_pkt_section section, const std::vector<RecordPtr>& records,
                         std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) push(packet, section, RecordPtr(ldns_rr_clone(records[i].get())));
  }

  std::string print(const Counts& counts, bool truncated) const {
    const Packet packet = make_header(query_, authoritative_, rcode_);
    ldns_pkt_set_tc(packet.get(), truncated);
    push_first(packet.get(), LDNS_SECTION_ANSWER, sections_.answers, counts.answers);
    push_first(packet.get(), LDNS_SECTION_AUTHORITY, sections_.authority, counts.authority);
    push_first(packet.get(), LDNS_SECTION_ADDITIONAL, sections_.additional, counts.additional);
    return packet_bytes(packet.get());
  }

  const DnsQuery& query_;
  bool authoritative_;
  std::uint8_t rcode_;
  Sections sections_;
};

/// An answer without records: header, and the question if it could be parsed.
std::string print_rcode(const DnsQuery& query, std::uint8_t rcode) {
  return packet_bytes(make_header(query, false, rcode).get());
}

/// FORMERR to a message whose header alone is understood.
std::string format_error(std::string_view bytes) {
  std::string reply(bytes.substr(0, kHeaderBytes));
  const auto second = static_cast<unsigned char>(reply[2]);
  reply[2] = static_cast<char>(0x80U | (second & 0x79U));  // an answer; opcode and RD as received
  reply[3] = static_cast<char>(dns::Rcode::kFormatError);
  std::fill(reply.begin() + 4, reply.end(), '\0');
  return reply;
}

std::uint32_t least_ttl(const ldns_rr_list* records) {
  std::uint32_t least = ldns_rr_ttl(ldns_rr_list_rr(records, 0));
  for (std::size_t i = 1; i < ldns_rr_list_rr_count(records); ++i)
    least = std::min(least, ldns_rr_ttl(ldns_rr_list_rr(records, i)));
  return least;
}

/// RFC 2308: the time of the SOA record, or its minimum if that is less. nullopt: there is none.
std::optional<std::uint32_t> negative_ttl(const ldns_rr_list* authority) {
  constexpr std::size_t kMinimum = 6;
  for (std::size_t i = 0; i < ldns_rr_list_rr_count(authority); ++i) {
    const ldns_rr* const record = ldns_rr_list_rr(authority, i);
    if (ldns_rr_get_type(record) != LDNS_RR_TYPE_SOA || ldns_rr_rd_count(record) <= kMinimum) continue;
    return std::min(ldns_rr_ttl(record), ldns_rdf2native_int32(ldns_rr_rdf(record, kMinimum)));
  }
  return std::nullopt;
}

std::optional<std::uint32_t> ttl_of(const ldns_pkt* packet) {
  const auto rcode = static_cast<dns::Rcode>(ldns_pkt_get_rcode(packet));
  const ldns_rr_list* const answers = ldns_pkt_answer(packet);
  if (rcode == dns::Rcode::kNoError && ldns_rr_list_rr_count(answers) > 0) return least_ttl(answers);
  if (rcode != dns::Rcode::kNoError && rcode != dns::Rcode::kNameError) return std::nullopt;
  return negative_ttl(ldns_pkt_authority(packet));
}

}  // namespace

std::size_t DnsQuery::udp_answer_max() const {
  if (!has_edns) return kPlainUdpBytesMax;
  return std::clamp<std::size_t>(edns_bytes, kPlainUdpBytesMax, kUdpBytesMax);
}

std::variant<DnsQuery, BadMessage> parse_query(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kDnsMessageMax || is_answer(bytes)) return BadMessage{};
  DnsQuery query;
  query.id = static_cast<std::uint16_t>(number_at(bytes, 0));
  query.opcode = (octets(bytes)[2] >> 3U) & 0x0fU;
  query.recursion_desired = (octets(bytes)[2] & 0x01U) != 0;
  query.checking_disabled = (octets(bytes)[3] & 0x10U) != 0;
  const bool plain = number_at(bytes, 4) == 1 && number_at(bytes, 6) == 0 && number_at(bytes, 8) == 0 &&
                     number_at(bytes, 10) <= kQueryAdditionalMax;
  const Packet packet = plain ? parse_packet(bytes) : nullptr;
  if (!packet || ldns_rr_list_rr_count(ldns_pkt_question(packet.get())) != 1) return BadMessage{format_error(bytes)};
  const ldns_rr* const question = ldns_rr_list_rr(ldns_pkt_question(packet.get()), 0);
  query.question = {name_text(ldns_rr_owner(question)), static_cast<dns::RecordType>(ldns_rr_get_type(question))};
  query.record_class = static_cast<std::uint16_t>(ldns_rr_get_class(question));
  query.has_edns = ldns_pkt_edns(packet.get());
  if (query.has_edns) {
    query.edns_version = ldns_pkt_edns_version(packet.get());
    query.edns_bytes = ldns_pkt_edns_udp_size(packet.get());
    query.dnssec_ok = ldns_pkt_edns_do(packet.get());
    if (query.edns_version != 0) return BadMessage{print_rcode(query, kBadVersion)};
  }
  return query;
}

std::string print_answer(const DnsQuery& query, const dns::Answer& answer, const std::string* foreign,
                         std::uint32_t age_seconds, std::size_t bytes_max) {
  Sections sections;
  auto rcode = static_cast<std::uint8_t>(answer.rcode);
  take_records(answer.answers, sections.answers);
  take_records(answer.authority, sections.authority);
  take_records(answer.additional, sections.additional);
  bool authoritative = foreign == nullptr && (rcode == 0 || answer.rcode == dns::Rcode::kNameError);
  if (foreign != nullptr) {
    const Packet packet = parse_packet(*foreign);
    if (!packet) return print_rcode(query, static_cast<std::uint8_t>(dns::Rcode::kServerFailure));
    take_foreign(ldns_pkt_answer(packet.get()), age_seconds, sections.answers);
    take_foreign(ldns_pkt_authority(packet.get()), age_seconds, sections.authority);
    take_foreign(ldns_pkt_additional(packet.get()), age_seconds, sections.additional);
    rcode = static_cast<std::uint8_t>(ldns_pkt_get_rcode(packet.get()));
  }
  return AnswerPrinter(query, authoritative, rcode, std::move(sections)).print(bytes_max, answer.cut);
}

std::string print_query(const OutgoingQuery& query) {
  const Packet packet(ldns_pkt_new());
  RecordPtr question = make_question(query.question, kInternet);
  if (!packet || !question) return {};
  ldns_pkt_set_id(packet.get(), query.id);
  ldns_pkt_set_rd(packet.get(), true);
  ldns_pkt_set_cd(packet.get(), query.checking_disabled);
  ldns_pkt_set_edns_udp_size(packet.get(), kUdpBytesMax);
  ldns_pkt_set_edns_do(packet.get(), query.dnssec_ok);
  push(packet.get(), LDNS_SECTION_QUESTION, std::move(question));
  return packet_bytes(packet.get());
}

std::optional<dns::ForeignAnswer> parse_answer(std::string_view bytes, const OutgoingQuery& query) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kDnsMessageMax || !is_answer(bytes)) return std::nullopt;
  if (number_at(bytes, 0) != query.id || number_at(bytes, 4) != 1) return std::nullopt;
  const Packet packet = parse_packet(bytes);
  if (!packet || ldns_rr_list_rr_count(ldns_pkt_question(packet.get())) != 1) return std::nullopt;
  const ldns_rr* const question = ldns_rr_list_rr(ldns_pkt_question(packet.get()), 0);
  const bool same = ldns_rr_get_type(question) == static_cast<ldns_rr_type>(query.question.type) &&
                    ldns_rr_get_class(question) == LDNS_RR_CLASS_IN &&
                    equal_ignoring_case(name_text(ldns_rr_owner(question)), query.question.name);
  if (!same || ldns_pkt_edns_extended_rcode(packet.get()) != 0) return std::nullopt;
  return dns::ForeignAnswer{.message = std::make_shared<const std::string>(bytes),
                            .rcode = static_cast<dns::Rcode>(ldns_pkt_get_rcode(packet.get())),
                            .truncated = ldns_pkt_tc(packet.get()),
                            .ttl_seconds = ttl_of(packet.get())};
}

}  // namespace spillway::wire
