// Answers of admission webhooks: whatever comes is refused or read, and what is read stays within its bounds.
#include "base/check.h"
#include "base/utf8.h"
#include "policy/webhooks/review_answer.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace spillway;
using webhooks::Phase;
using webhooks::ReviewAnswer;

void check(Phase phase, const ReviewAnswer& answer) {
  SPILLWAY_CHECK(phase == Phase::kMutating || !answer.patch);
  SPILLWAY_CHECK(answer.warnings.size() <= webhooks::kWarningsMax);
  SPILLWAY_CHECK(answer.annotations.size() <= webhooks::kAnnotationsMax);
  for (const std::string& warning : answer.warnings) SPILLWAY_CHECK(warning.size() <= webhooks::kAnswerTextMax + 3);
  const api::Status denial = webhooks::denial_status("hook.example.dev", answer.status);
  SPILLWAY_CHECK(denial.code >= 400 && denial.code <= 599);
  SPILLWAY_CHECK(is_utf8(denial.message) && denial.message.size() <= 2 * webhooks::kAnswerTextMax);
  if (!answer.patch) return;
  const api::Json object =
      api::Json::object({{"metadata", api::Json::object({{"name", "a"}})}, {"data", api::Json::object({{"k", "v"}})}});
  const auto made = webhooks::patched(object, *answer.patch);
  SPILLWAY_CHECK(!made || api::to_text(*made).size() <= webhooks::kObjectBytesMax);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const Phase phase : {Phase::kMutating, Phase::kValidating}) {
    const auto answer = webhooks::read_answer(phase, "u1", bytes);
    if (!answer) {
      SPILLWAY_CHECK(answer.error().text().size() < 4096);
      continue;
    }
    check(phase, *answer);
    const auto again = webhooks::read_answer(phase, "u1", bytes);
    SPILLWAY_CHECK(again && again->allowed == answer->allowed && again->warnings == answer->warnings);
    SPILLWAY_CHECK(!webhooks::read_answer(phase, "u2", bytes));
  }
  return 0;
}
