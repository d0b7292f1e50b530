// Bodies in Kubernetes' protobuf envelope ("k8s\0", runtime.Unknown), read into the same canonical documents as JSON
// bodies: of requests, of answers, and the events of watches. Unknown fields are skipped. The way back is
// protobuf_writer.h.
// Thread: any (pure). Source: Kubernetes docs, "Kubernetes API Concepts", protobuf encoding; spec "API server
// contract", 5.4.
#pragma once

#include "api/json/document_bounds.h"
#include "api/json/json.h"
#include "api/schema/schema.h"
#include "api/schema/typed.h"
#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace spillway::api {

/// The Content-Type of such bodies.
inline constexpr std::string_view kProtobufContentType = "application/vnd.kubernetes.protobuf";

/// Starts with the four magic bytes.
bool is_protobuf(std::string_view body);

/// The type a body names, from its envelope alone. kBadRequest: no envelope, or a kind that is not served.
Result<const Type*> protobuf_kind(std::string_view body);

/// The document in canonical form, with apiVersion and kind. kBadRequest: truncated or malformed, text that is no
/// UTF-8, or another kind than `type`. kRequestEntityTooLarge: more fields or values than a document may have.
Result<Json> read_protobuf(const Type& type, std::string_view body);

/// As above, and collects at most eight fields that the schema does not have: "field 99 of core/v1.PodSpec".
/// `fields_max`: on the wire.
Result<TypedDocument> read_protobuf_fields(const Type& type, std::string_view body,
                                           std::size_t fields_max = kWireFieldsMax);

/// Decodes a whole answer into the document that JSON would give: an object, a Status, or a list, whose items have
/// their kind, too. kBadRequest, kRequestEntityTooLarge: as above, the latter for one object.
Result<Json> read_protobuf_answer(std::string_view body);

/// One event of a watch.
struct ProtobufEvent {
  std::string type;  // "ADDED"
  Json object;
};

/// `frame`: without the length in front of it.
Result<ProtobufEvent> read_protobuf_event(std::string_view frame);

}  // namespace spillway::api
