// Documents in Kubernetes' protobuf encoding, byte for byte as upstream writes them: fields that are no pointers are
// written even when empty, fields in the order of their numbers, maps in the order of their keys.
// Thread: any (pure). Cost: linear in the document. Source: Kubernetes docs, "Kubernetes API Concepts", protobuf
// encoding; spec "API server contract", 5.4.
#pragma once

#include "api/json/flat_json.h"
#include "api/json/json.h"
#include "api/schema/schema.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace spillway::api {

/// The Content-Type of a watch that is answered so.
inline constexpr std::string_view kProtobufStreamType = "application/vnd.kubernetes.protobuf;stream=watch";

/// The type of a document by its apiVersion and kind: of a list, that of its items. Documents of discovery have types
/// too, though none of them is stored. nullptr: unknown.
const Type* protobuf_type(std::string_view api_version, std::string_view kind);

/// True if an answer of this kind, with its type from protobuf_type(), is a list of such items: APIResourceList is
/// none.
bool is_list_of(const Type& items, std::string_view kind);

/// A whole answer: "k8s\0" and the object with its kind. `document` is canonical; for a list (`kind` ends with List),
/// `type` is that of its items. Fields unknown to `type` are left out.
std::string write_protobuf(const Type& type, const Json& document);

/// The protobuf form of one object (no list) whose text is canonical: as to_text() writes it, in whatever order of the
/// members that are fields.
std::string write_protobuf(const Type& type, const FlatJson& document);

/// One item of a list, in the form between other items.
void append_protobuf_item(const Type& type, const Json& document, std::string& out);
/// A whole list of items that are written already. `meta`: ListMeta as JSON.
std::string write_protobuf_list(std::string_view api_version, std::string_view kind, const Json& meta,
                                std::string_view items);

/// The list without its items: the bytes before items of so many bytes in all, and behind them.
struct ProtobufListFrame {
  std::string head;
  std::string tail;
};

ProtobufListFrame protobuf_list_frame(std::string_view api_version, std::string_view kind, const Json& meta,
                                      std::size_t item_bytes);

/// One event of a watch with its length in front. `object`: the result of write_protobuf().
std::string protobuf_frame(std::string_view event_type, std::string_view object);

}  // namespace spillway::api
