// Golden vectors of protobuf request bodies.
#include "api/schema/protobuf.h"
#include "api/text/base64.h"
#include "support/vectors.h"

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

const bool kProtobuf = support::add_vector_check("api/protobuf", check_protobuf);

}  // namespace
}  // namespace spillway::api
