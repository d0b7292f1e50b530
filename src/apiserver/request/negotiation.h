// Content negotiation: Accept and Content-Type. Thread: any (pure). Source: spec "API server contract", 4.3.
#pragma once

#include "api/exchange/status.h"
#include "apiserver/request/route.h"

#include <string>
#include <string_view>

namespace spillway::apiserver {

/// The shape in which objects are answered.
enum class Form { kObject, kTable, kPartialMetadata };

enum class Encoding { kJson, kProtobuf };

struct AnswerForm {
  Form form = Form::kObject;
  std::string meta_version = "v1";  // apiVersion of Table and PartialObjectMetadata: "v1" or "v1beta1"
  Encoding encoding = Encoding::kJson;

  friend bool operator==(const AnswerForm&, const AnswerForm&) = default;
};

/// Encodings of a resource's answers; all can be JSON.
enum class Encodings { kJsonOnly, kProtobufToo };

/// kShown: the objects of a resource have rows, so that a client may request a Table.
enum class Tables { kNone, kShown };

/// The first acceptable type. 406 if there is none. A Table is always JSON.
api::StatusResult<AnswerForm> negotiate(std::string_view accept, Encodings encodings, Tables tables = Tables::kShown);

/// The form of the answer to a discovery request.
struct DiscoveryForm {
  bool is_aggregated = false;  // apidiscovery.k8s.io/v2, always JSON
  Encoding encoding = Encoding::kJson;

  friend bool operator==(const DiscoveryForm&, const DiscoveryForm&) = default;
};

/// The first acceptable form. 406 if there is none.
api::StatusResult<DiscoveryForm> negotiate_discovery(std::string_view accept);

enum class BodyFormat { kJson, kYaml, kProtobuf };

/// The format of a POST, PUT or DELETE body; no Content-Type means JSON. 415: an unsupported one.
api::StatusResult<BodyFormat> body_format(std::string_view content_type);

/// The encodings in which answers of the route can be written.
Encodings encodings_of(const Route& route);

/// Reviews, bindings, evictions and tokens are answered and not kept: they have no rows.
Tables tables_of(const Route& route);

}  // namespace spillway::apiserver
