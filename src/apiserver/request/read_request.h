// A request parsed from its bytes alone, before any decision: its attributes, route, answer format and, where wanted,
// its body. It is parsed once, on any thread; authorization and handlers use this same value. Thread: any (pure).
// Source: spec "API server contract", 3, 4, 5; spec "HTTP/2", 6.
#pragma once

#include "api/exchange/exchange.h"
#include "api/exchange/status.h"
#include "api/schema/schema.h"
#include "api/schema/typed.h"
#include "apiserver/request/negotiation.h"
#include "apiserver/request/route.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace spillway::apiserver {

/// A parsed body, as the handlers would parse it.
struct ReadBody {
  const api::Type* type = nullptr;  // type of `object`
  std::optional<Result<api::TypedDocument>> object;
  std::optional<Result<api::DocumentPtr>> patch;
};

/// The place of a request's flow schema in one generation of the configuration of flows.
struct FlowPlace {
  std::uint64_t generation = 0;
  std::size_t schema = 0;
};

struct ReadRequest {
  ResourceTablePtr table;              // keeps the route's resource alive
  api::StatusResult<void> understood;  // an error is the answer to callers that are authorized
  api::Target target;
  RequestAttributes asked;
  api::StatusResult<Route> route = Route();
  api::StatusResult<AnswerForm> form = AnswerForm();
  std::optional<FlowPlace> flow;  // nullopt: not classified
  ReadBody body;
};

/// Parses everything but the body and the flow. For a malformed request only the error is set.
ReadRequest read_request(ResourceTablePtr table, const api::Request& request);

/// Parses the body as well, if that takes long: objects that are written as they are, and patches. Nothing is read of
/// others, nor of what is refused for its format or size. Work: bounded by the size.
void read_body(const api::Request& request, ReadRequest& read);

}  // namespace spillway::apiserver
