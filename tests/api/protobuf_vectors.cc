// Golden vectors of protobuf: bodies of requests read, answers and events of watches written.
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
  const Json* data = object.find("data");
  if (data == nullptr || data->if_object() == nullptr) return false;
  return std::ranges::any_of(*data->if_object(), [](const auto& entry) { return entry.value.is_null(); });
}

/// A value at rest that is read and written again is the same bytes: whoever compares them finds no change.
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
  return watch ? std::nullopt : check_way_back(*row.at({"in", "object"}), got);
}

const bool kProtobuf = support::add_vector_check("api/protobuf", check_protobuf);
const bool kProtobufEncode = support::add_vector_check("api/protobuf_encode", check_encoding);

}  // namespace
}  // namespace spillway::api
