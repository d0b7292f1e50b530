#include "policy/containers/grpc_action.h"

#include "api/text/duration.h"
#include "policy/containers/utf8_text.h"

#include <fmt/format.h>

#include <array>

namespace spillway::containers {
namespace {

constexpr int kServing = 1;
constexpr std::array<std::string_view, 4> kStatusNames = {"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"};

std::string status_name(int status) {
  const bool known = status >= 0 && static_cast<std::size_t>(status) < kStatusNames.size();
  return known ? std::string(kStatusNames[static_cast<std::size_t>(status)]) : fmt::format("{}", status);
}

}  // namespace

ProbeVerdict evaluate_grpc(const GrpcAnswer& answer, std::string_view address, Duration timeout) {
  using End = GrpcAnswer::End;
  const std::string text = utf8_text(answer.text.substr(0, kProbeOutputMax));
  const auto failure = [](std::string what) { return ProbeVerdict{ProbeOutcome::kFailure, std::move(what)}; };
  switch (answer.end) {
    case End::kAnswered:
      if (answer.status == kServing) return {ProbeOutcome::kSuccess, "service healthy"};
      return failure(fmt::format("service unhealthy (responded with \"{}\")", status_name(answer.status)));
    case End::kNotConnected:
      return failure(fmt::format("timeout: failed to connect service \"{}\" within {}: context deadline exceeded",
                                 address, api::format_duration(timeout)));
    case End::kLate:
      return failure(fmt::format("timeout: health rpc did not complete within {}", api::format_duration(timeout)));
    case End::kUnimplemented:
      return failure(fmt::format(
          "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}", text));
    case End::kFailed:
      break;
  }
  return failure(fmt::format("error: health rpc probe failed: {}", text));
}

}  // namespace spillway::containers
