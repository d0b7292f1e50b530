// The answer of a webhook: an AdmissionReview with a response, parsed as untrusted input. Its parts are bounded:
// values, warnings, annotations, texts. Thread: any (pure).
// Source: Kubernetes API reference, admission.k8s.io/v1 AdmissionResponse; Kubernetes docs, "Dynamic Admission
// Control", response.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "base/error.h"
#include "policy/webhooks/webhook.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::webhooks {

inline constexpr std::size_t kWarningsMax = 64;     // per answer; the rest is left out
inline constexpr std::size_t kAnnotationsMax = 32;  // per answer
// bytes of one warning, annotation or message; longer ones are cut
inline constexpr std::size_t kAnswerTextMax = 4 << 10;
inline constexpr std::size_t kObjectBytesMax = 3U << 20U;  // for an object after a patch, as for a request's body

struct ReviewAnswer {
  bool allowed = false;
  std::optional<api::Json> patch = {};  // a list that is not empty
  std::vector<std::string> warnings = {};
  std::vector<std::pair<std::string, std::string>> annotations = {};  // for the audit log
  api::Status status = {};  // a rejection's code, reason and message, as they were sent
};

/// kInvalid: no valid answer to the review `uid`, in upstream's words. An answer without `allowed` rejects the request.
Result<ReviewAnswer> read_answer(Phase phase, std::string_view uid, std::string_view body);

/// The client's error for a request that the webhook denies. The code is at least 400.
api::Status denial_status(std::string_view webhook, const api::Status& said);

/// 500: `failed calling webhook "NAME": WHY`.
api::Status failure_status(std::string_view webhook, std::string_view why);

/// 400: the webhook may do something beyond its answer, which a dry run must not.
api::Status dry_run_status(std::string_view webhook);

/// 500: `Internal error occurred: WHY`.
api::Status internal_status(std::string_view why);

/// The object after the patch. 500: the patch does not fit, or makes too large an object.
api::StatusResult<api::Json> patched(const api::Json& object, const api::Json& patch);

}  // namespace spillway::webhooks
