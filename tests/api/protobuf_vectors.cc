// Golden vectors of protobuf: bodies of requests read, answers and events of watches written, and read again.
#include "api/schema/protobuf.h"
#include "api/schema/protobuf_writer.h"
#include "api/text/base64.h"
#include "support/vectors.h"

#include <algorithm>

namespace spillway::api {
namespace {

std::optional<support::Mismatch> check_protobuf(const Json& row) {
  const Json& want = *row.at({"expected", "object"});
  const Result<std::string> body = decode_base64(row.string_at({"body"}));
  if (!body) return support::Mismatch{to_text(want), body.error().text()};
  const Result<const Type*> type = protobuf_kind(*body);
  if (!type) return support::Mismatch{to_text(want), type.error().text()};
  const Result<Json> got = read_protobuf(**type, *body);
  if (!got) return support::Mismatch{to_text(want), got.error().text()};
  return support::compare(want, *got);
}

std::string encoded(const Json& object) {
  const Type* type = protobuf_type(object.string_at({"apiVersion"}), object.string_at({"kind"}));
  return type != nullptr ? write_protobuf(*type, object) : std::string();
}

/// Upstream, too, reads an absent value of such a map as an empty one, and writes that.
bool has_absent_bytes(const Json& object) {
  const auto is_absent = [](const auto& entry) { return entry.value.is_null(); };
  for (const std::string_view name : {"data", "binaryData"}) {
    const Json* data = object.find(name);
    if (data != nullptr && data->if_object() != nullptr && std::ranges::any_of(*data->if_object(), is_absent))
      return true;
  }
  const Json* items = object.find("items");
  return items != nullptr && items->if_array() != nullptr && std::ranges::any_of(*items->if_array(), has_absent_bytes);
}

/// A value at rest that is read and written again has the same bytes, so that a comparison finds no change.
std::optional<support::Mismatch> check_way_back(const Json& object, const std::string& bytes) {
  const Type* type = find_kind(object.string_at({"apiVersion"}), object.string_at({"kind"}));
  if (type == nullptr || object.find("metadata") == nullptr || has_absent_bytes(object)) return std::nullopt;
  const auto read = read_protobuf_fields(*type, bytes);
  if (!read) return support::Mismatch{"readable", read.error().text()};
  if (!read->unknown_fields.empty()) return support::Mismatch{"no unknown field", read->unknown_fields.front()};
  const std::string again = write_protobuf(*type, read->object);
  if (again == bytes) return std::nullopt;
  return support::Mismatch{encode_base64(bytes), encode_base64(again)};
}

/// The document that a client decodes from an answer encodes to the same bytes again.
std::optional<support::Mismatch> check_answer(const Json& object, const std::string& bytes) {
  if (object.string_at({"apiVersion"}).starts_with("meta.k8s.io/") || has_absent_bytes(object)) return std::nullopt;
  const auto read = read_protobuf_answer(bytes);
  if (!read) return support::Mismatch{"readable", read.error().text()};
  const std::string again = encoded(*read);
  if (again == bytes) return std::nullopt;
  return support::Mismatch{encode_base64(bytes), encode_base64(again)};
}

std::optional<support::Mismatch> check_event(const Json& event) {
  const Json& object = *event.find("object");
  const auto read = read_protobuf_event(protobuf_frame(event.string_at({"type"}), encoded(object)).substr(4));
  if (object.string_at({"apiVersion"}).starts_with("meta.k8s.io/")) return std::nullopt;
  if (!read) return support::Mismatch{"readable", read.error().text()};
  if (read->type != event.string_at({"type"}))
    return support::Mismatch{std::string(event.string_at({"type"})), read->type};
  return check_answer(object, encoded(read->object));
}

std::optional<support::Mismatch> check_encoding(const Json& row) {
  const bool watch = row.string_at({"op"}) == "watch";
  const std::string_view want = row.string_at({"want", watch ? "stream" : "body"});
  std::string got;
  if (watch) {
    for (const Json& event : *row.at({"in", "events"})->if_array()) {
      got += protobuf_frame(event.string_at({"type"}), encoded(*event.find("object")));
    }
  } else {
    got = encoded(*row.at({"in", "object"}));
  }
  const std::string text = encode_base64(got);
  if (text != want) return support::Mismatch{std::string(want), text};
  if (watch) {
    for (const Json& event : *row.at({"in", "events"})->if_array()) {
      if (auto mismatch = check_event(event)) return mismatch;
    }
    return std::nullopt;
  }
  const Json& object = *row.at({"in", "object"});
  if (auto mismatch = check_answer(object, got)) return mismatch;
  return check_way_back(object, got);
}

const bool kProtobuf = support::add_vector_check("api/protobuf", check_protobuf);
const bool kProtobufEncode = support::add_vector_check("api/protobuf_encode", check_encoding);
const bool kEndpointsProtobufEncode = support::add_vector_check("api/endpoints_protobuf_encode", check_encoding);
const bool kLimitsProtobufEncode = support::add_vector_check("api/limits_protobuf_encode", check_encoding);
const bool kAutoscalerProtobufEncode = support::add_vector_check("api/autoscaler_protobuf_encode", check_encoding);
const bool kQuotaProtobufEncode = support::add_vector_check("api/quota_protobuf_encode", check_encoding);
const bool kJobProtobufEncode = support::add_vector_check("api/job_protobuf_encode", check_encoding);
const bool kNetworkingProtobufEncode = support::add_vector_check("api/networking_protobuf_encode", check_encoding);
const bool kAttachmentsProtobufEncode = support::add_vector_check("api/attachments_protobuf_encode", check_encoding);
const bool kReplicationProtobufEncode = support::add_vector_check("api/replication_protobuf_encode", check_encoding);
const bool kStatefulProtobufEncode = support::add_vector_check("api/stateful_protobuf_encode", check_encoding);

}  // namespace
}  // namespace spillway::api
