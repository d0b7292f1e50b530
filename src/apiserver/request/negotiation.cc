#include "apiserver/request/negotiation.h"

#include "api/schema/protobuf.h"
#include "api/schema/schema.h"
#include "base/ascii.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

struct MediaType {
  std::string_view type;
  std::vector<std::pair<std::string_view, std::string_view>> parameters;

  std::string_view parameter(std::string_view name) const {
    for (const auto& [key, value] : parameters) {
      if (key == name) return value;
    }
    return {};
  }
};

std::string_view take(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return trimmed(head);
}

MediaType parse_media_type(std::string_view text) {
  MediaType out;
  out.type = take(text, ';');
  while (!text.empty()) {
    std::string_view parameter = take(text, ';');
    const std::string_view key = take(parameter, '=');
    out.parameters.emplace_back(key, trimmed(parameter));
  }
  return out;
}

std::vector<MediaType> parse_accept(std::string_view accept) {
  std::vector<MediaType> out;
  if (trimmed(accept).empty()) return {MediaType{"*/*", {}}};
  while (!accept.empty()) {
    const std::string_view one = take(accept, ',');
    if (!one.empty()) out.push_back(parse_media_type(one));
  }
  return out;
}

bool is_json(const MediaType& media) {
  return media.type == "application/json" || media.type == "application/*" || media.type == "*/*";
}

bool is_protobuf(const MediaType& media) {
  return media.type == api::kProtobufContentType;
}

api::Status not_acceptable() {
  return make_error(ErrorCode::kNotAcceptable,
                    "only the following media types are accepted: application/json, "
                    "application/json;as=Table;v=v1;g=meta.k8s.io, "
                    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io, "
                    "application/vnd.kubernetes.protobuf, "
                    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
}

}  // namespace

api::StatusResult<AnswerForm> negotiate(std::string_view accept, Encodings encodings, Tables tables) {
  for (const MediaType& media : parse_accept(accept)) {
    const Encoding encoding = is_protobuf(media) ? Encoding::kProtobuf : Encoding::kJson;
    if (encoding == Encoding::kJson && !is_json(media)) continue;
    const std::string_view as = media.parameter("as");
    if (as.empty()) {
      if (encoding == Encoding::kProtobuf && encodings == Encodings::kJsonOnly) continue;
      return AnswerForm{.encoding = encoding};
    }
    const std::string_view version = media.parameter("v");
    if (media.parameter("g") != "meta.k8s.io" || (version != "v1" && version != "v1beta1")) continue;
    if (as == "Table" && encoding == Encoding::kJson && tables == Tables::kShown) {
      return AnswerForm{Form::kTable, std::string(version)};
    }
    if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") {
      return AnswerForm{Form::kPartialMetadata, std::string(version), encoding};
    }
  }
  return not_acceptable();
}

api::StatusResult<DiscoveryForm> negotiate_discovery(std::string_view accept) {
  for (const MediaType& media : parse_accept(accept)) {
    const Encoding encoding = is_protobuf(media) ? Encoding::kProtobuf : Encoding::kJson;
    if (encoding == Encoding::kJson && !is_json(media)) continue;
    const std::string_view as = media.parameter("as");
    if (as.empty()) return DiscoveryForm{.is_aggregated = false, .encoding = encoding};
    if (encoding == Encoding::kJson && as == "APIGroupDiscoveryList" && media.parameter("g") == "apidiscovery.k8s.io" &&
        media.parameter("v") == "v2") {
      return DiscoveryForm{.is_aggregated = true};
    }
  }
  return not_acceptable();
}

api::StatusResult<BodyFormat> body_format(std::string_view content_type) {
  const MediaType media = parse_media_type(content_type);
  if (media.type.empty() || media.type == "application/json") return BodyFormat::kJson;
  if (media.type == "application/yaml") return BodyFormat::kYaml;
  if (media.type == "application/vnd.kubernetes.protobuf") return BodyFormat::kProtobuf;
  return make_error(ErrorCode::kUnsupportedMediaType,
                    "the body of the request was in an unknown format - accepted media types include: "
                    "application/json, application/yaml, application/vnd.kubernetes.protobuf");
}

/// The protobuf schema has no metrics.k8s.io: its objects are JSON only.
Encodings encodings_of(const Route& route) {
  if (route.resource == nullptr || route.resource->group == "metrics.k8s.io") return Encodings::kJsonOnly;
  const api::Type* type = api::find_kind(route.resource->api_version(), route.resource->kind);
  return type != nullptr && !type->json_only() ? Encodings::kProtobufToo : Encodings::kJsonOnly;
}

Tables tables_of(const Route& route) {
  if (route.resource == nullptr) return Tables::kShown;
  if (!route.resource->stored() && !route.resource->verbs.has(Verb::kGet)) return Tables::kNone;
  if (route.subresource == nullptr) return Tables::kShown;
  const SubresourceId id = route.subresource->id;
  const bool is_answered_only =
      id == SubresourceId::kBinding || id == SubresourceId::kEviction || id == SubresourceId::kToken;
  return is_answered_only ? Tables::kNone : Tables::kShown;
}

}  // namespace spillway::apiserver
