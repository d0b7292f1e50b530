#include "apiserver/renewal_requests.h"

#include "api/schema/protobuf.h"
#include "api/schema/protobuf_writer.h"
#include "api/schema/schema.h"

#include <algorithm>

namespace spillway::apiserver {
namespace {

constexpr std::size_t kMagicBytes = 4;

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7fU) | 0x80U);
  return out + static_cast<char>(value);
}

std::string delimited(std::uint32_t number, std::string_view bytes) {
  return varint(number << 3U | 2U) + varint(bytes.size()) + std::string(bytes);
}

/// The fields of a message whose tags are one byte, unchanged.
std::vector<std::string> fields_of(std::string_view message) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; at < message.size();) {
    const std::size_t begin = at;
    const bool has_length = (message[at++] & 7) == 2;
    std::uint64_t value = 0;
    for (unsigned shift = 0; at < message.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(message[at++]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) break;
    }
    if (has_length) at = std::min(message.size(), at + value);
    fields.emplace_back(message.substr(begin, at - begin));
  }
  return fields;
}

/// The content of a field with a length.
std::string_view content_of(std::string_view field) {
  std::size_t at = 1;
  while (at < field.size() && (field[at] & 0x80) != 0) ++at;
  return field.substr(std::min(field.size(), at + 1));
}

const std::vector<std::string>& odd_fields() {
  static const std::vector<std::string> kFields = {delimited(99, "new"),
                                                   delimited(2, ""),
                                                   delimited(1, ""),
                                                   delimited(4, ""),
                                                   delimited(4, "\x08\x01\x10\x00"),
                                                   "\x1b\x08\x01\x1c",
                                                   std::string(101, '\x1b'),
                                                   "\x1c",
                                                   "\x0f",
                                                   varint(2) + "\x01",
                                                   "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                                   "\x12\xff\xff\xff\xff\x0f",
                                                   "\x10\x81\x00",
                                                   std::string(11, '\xff'),
                                                   "\x09" + std::string(8, '\x01'),
                                                   "\x22\x81\x00\x08",
                                                   "\x10\x29",
                                                   "\x28\x07",
                                                   delimited(1, "h\xff"),
                                                   delimited(6, "OldestEmulationVersion")};
  return kFields;
}

std::string joined(const std::vector<std::string>& fields) {
  std::string out;
  for (const std::string& field : fields) out += field;
  return out;
}

/// Down to some message of it, whose fields are then moved, repeated, left out or joined by others.
std::string odd_message(Rng& rng, std::string_view message, int depth) {
  std::vector<std::string> fields = fields_of(message);
  if (fields.empty()) return odd_fields()[rng.below(odd_fields().size())];
  std::string& one = fields[rng.below(fields.size())];
  if (depth > 0 && (one.front() & 7) == 2 && rng.below(4) != 0) {
    one = delimited(static_cast<std::uint32_t>(static_cast<unsigned char>(one.front()) >> 3U),
                    odd_message(rng, content_of(one), depth - 1));
    return joined(fields);
  }
  const std::uint64_t kind = rng.below(5);
  const std::size_t at = rng.below(fields.size());
  if (kind == 0) fields.push_back(fields[at]);
  if (kind == 1) std::swap(fields[at], fields.back());
  if (kind == 2) fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(at));
  if (kind >= 3)
    fields.insert(fields.begin() + static_cast<std::ptrdiff_t>(at), odd_fields()[rng.below(odd_fields().size())]);
  return joined(fields);
}

}  // namespace

Asked heartbeat(const api::Json& from, WallTime now) {
  api::Json body = from;
  body["spec"]["renewTime"] = api::format_micro_time(now);
  return {.target = kLeases + "/" + std::string(from.string_at({"metadata", "name"})),
          .body = api::to_text(body),
          .headers = {{"user-agent", "kubelet/v1.32.0"}}};
}

Asked in_protobuf(Asked asked) {
  const Result<api::Json> document = api::parse_json(asked.body);
  if (!document || !document->is_object()) return asked;
  api::Json lease = *document;
  if (lease.find("kind") == nullptr) lease["kind"] = "Lease";
  if (lease.find("apiVersion") == nullptr) lease["apiVersion"] = "coordination.k8s.io/v1";
  asked.body = api::write_protobuf(*api::find_kind("coordination.k8s.io/v1", "Lease"), lease);
  std::erase_if(asked.headers, [](const auto& header) { return header.first == "content-type"; });
  asked.headers.emplace_back("content-type", std::string(api::kProtobufContentType));
  return asked;
}

void accept_protobuf(Asked& asked) {
  asked.headers.emplace_back("accept", std::string(api::kProtobufContentType) + ",application/json");
}

std::string odd_wire(Rng& rng, const std::string& body) {
  if (body.size() <= kMagicBytes) return body;
  if (rng.below(4) != 0)
    return body.substr(0, kMagicBytes) + odd_message(rng, std::string_view(body).substr(kMagicBytes), 4);
  std::string odd = body;
  const std::size_t at = rng.below(odd.size());
  const std::uint64_t kind = rng.below(3);
  if (kind == 0) odd.resize(at);
  if (kind == 1) odd[at] = static_cast<char>(rng.below(256));
  if (kind == 2) odd.insert(at, 1, static_cast<char>(rng.below(256)));
  return odd;
}

}  // namespace spillway::apiserver
