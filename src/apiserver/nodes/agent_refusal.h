// The answer of a node agent, or of the way to it, that is no success: as the error that the client of the API server
// gets. Thread: any (pure).
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"

namespace spillway::apiserver {

/// The message of a Status where the body is one, else its text without line feeds at the end. At most 4 KiB of it are
/// passed on.
Error agent_refusal(const api::Response& response);

}  // namespace spillway::apiserver
