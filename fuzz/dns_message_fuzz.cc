// Messages of clients and of other DNS servers: a query that is understood gets an answer that fits and is an answer to
// it, also if the other server's message is broken.
#include "base/check.h"
#include "wire/dns/message.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace {

using namespace spillway;

void check_reply(const std::string& reply, std::string_view query, std::size_t bytes_max) {
  SPILLWAY_CHECK(reply.size() >= 12 && reply.size() <= bytes_max);
  SPILLWAY_CHECK(reply.substr(0, 2) == query.substr(0, 2));
  SPILLWAY_CHECK((static_cast<unsigned char>(reply[2]) & 0x80U) != 0);
}

void answer(const wire::DnsQuery& query, std::string_view bytes) {
  dns::Answer own;
  own.answers.push_back({query.question.name, dns::RecordType::kCname, 30, dns::NameData{query.question.name}});
  const std::string foreign(bytes);
  const std::size_t bytes_max = query.udp_answer_max();
  check_reply(wire::print_answer(query, own, nullptr, 0, bytes_max), bytes, bytes_max);
  check_reply(wire::print_answer(query, own, &foreign, 7, bytes_max), bytes, bytes_max);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto parsed = wire::parse_query(bytes);
  if (const auto* query = std::get_if<wire::DnsQuery>(&parsed)) {
    answer(*query, bytes);
    wire::print_query({.id = query->id, .question = query->question});
  } else if (const std::string& reply = std::get<wire::BadMessage>(parsed).reply; !reply.empty()) {
    check_reply(reply, bytes, wire::kUdpBytesMax);
  }
  if (size < 2) return 0;
  const auto id = static_cast<std::uint16_t>(data[0] << 8U | data[1]);
  for (const char* name : {"example.com.", "a."}) {
    const auto taken = wire::parse_answer(bytes, {.id = id, .question = {name, dns::RecordType::kA}});
    if (!taken) continue;
    SPILLWAY_CHECK(*taken->message == bytes);
    wire::DnsQuery asked;
    asked.id = id;
    asked.question = {name, dns::RecordType::kA};
    check_reply(wire::print_answer(asked, {}, taken->message.get(), 1, wire::kPlainUdpBytesMax), bytes,
                wire::kPlainUdpBytesMax);
  }
  return 0;
}
