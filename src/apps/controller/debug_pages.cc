#include "apps/controller/debug_pages.h"

#include "api/exchange/status.h"

namespace spillway::apps {

api::Response json_response(int status, const api::Json& document) {
  return {.status = status,
          .headers = {{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"}},
          .body = api::to_text(document) + "\n"};
}

api::Response status_response(const Error& error) {
  const api::Status status(error);
  return json_response(status.code, api::to_json(status));
}

}  // namespace spillway::apps
