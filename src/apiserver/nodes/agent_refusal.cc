#include "apiserver/nodes/agent_refusal.h"

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <string_view>

namespace spillway::apiserver {
namespace {

constexpr std::size_t kReasonBytesMax = 4096;
constexpr std::size_t kStatusBytesMax = 16 * 1024;  // a longer body is no Status of an agent

}  // namespace

Error agent_refusal(const api::Response& response) {
  const int http_status = response.ok() ? 500 : response.status;
  if (response.body.starts_with('{') && response.body.size() <= kStatusBytesMax) {
    const auto document = api::parse_json(response.body);
    const auto status = document ? api::parse_status(*document) : Result<api::Status>(document.error());
    if (status && !status->ok() && !status->message.empty()) {
      return make_error(api::error_code_of(status->reason, http_status), "{}",
                        std::string_view(status->message).substr(0, kReasonBytesMax));
    }
  }
  std::string_view why = std::string_view(response.body).substr(0, kReasonBytesMax);
  why = why.substr(0, why.find_last_not_of("\r\n") + 1);
  return make_error(api::error_code_of({}, http_status), "{}", why.empty() ? "the node agent gave no reason" : why);
}

}  // namespace spillway::apiserver
