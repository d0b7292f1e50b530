// Probes and lifecycle hooks: exactly one handler each.
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/pod/rules.h"

#include <fmt/format.h>

#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 2> kHttpSchemes{"HTTP", "HTTPS"};
constexpr std::array<std::string_view, 5> kProbeNumbers{"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                                        "successThreshold", "failureThreshold"};

void check_exec(const CheckedField& action, std::int64_t /*grace_seconds*/) {
  const CheckedField command = action["command"];
  if (command.empty()) command.required();
}

void check_action_port(const CheckedField& action, std::int64_t /*grace_seconds*/) {
  const CheckedField port = action["port"];
  for (const std::string& problem : port_reference_errors(port.json())) port.invalid(problem);
}

void check_http_get(const CheckedField& action, std::int64_t grace_seconds) {
  const CheckedField path = action["path"];
  path.require_text();
  check_action_port(action, grace_seconds);
  const CheckedField scheme = action["scheme"];
  scheme.require_one_of(kHttpSchemes);
  const CheckedField headers = action["httpHeaders"];
  headers.each([&headers](const CheckedField& header) {
    const CheckedField name = header["name"];
    for (const std::string& problem : http_header_name_errors(name.text())) headers.invalid(name.json(), problem);
  });
}

void check_sleep(const CheckedField& action, std::int64_t grace_seconds) {
  const std::int64_t seconds = action["seconds"].integer().value_or(0);
  if (seconds >= 0 && seconds <= grace_seconds) return;
  action.invalid(seconds,
                 fmt::format("must be non-negative and less than terminationGracePeriodSeconds ({})", grace_seconds));
}

struct HandlerKind {
  std::string_view name;
  void (*check)(const CheckedField& action, std::int64_t grace_seconds);
};

/// The handlers of a probe. The first one present is validated; any further one is an error.
constexpr std::array<HandlerKind, 5> kHandlers{{{"exec", check_exec},
                                                {"httpGet", check_http_get},
                                                {"tcpSocket", check_action_port},
                                                {"grpc", check_action_port},
                                                {"sleep", check_sleep}}};

void check_handler(const CheckedField& holder, std::int64_t grace_seconds) {
  bool seen = false;
  for (const HandlerKind& kind : kHandlers) {
    const CheckedField action = holder[kind.name];
    if (!action) continue;
    if (seen) {
      action.forbidden("may not specify more than 1 handler type");
    } else {
      kind.check(action, grace_seconds);
    }
    seen = true;
  }
  if (!seen) holder.required("must specify a handler type");
}

void check_probe(const CheckedField& probe, std::int64_t grace_seconds) {
  check_handler(probe, grace_seconds);
  for (const std::string_view name : kProbeNumbers) {
    const CheckedField number = probe[name];
    number.require_non_negative();
  }
  const CheckedField grace = probe["terminationGracePeriodSeconds"];
  if (grace && grace.integer().value_or(0) <= 0) grace.invalid("must be greater than 0");
}

}  // namespace

void check_probes(const CheckedField& container, std::int64_t grace_seconds) {
  for (const std::string_view name : {"livenessProbe", "startupProbe"}) {
    const CheckedField probe = container[name];
    if (!probe) continue;
    check_probe(probe, grace_seconds);
    const CheckedField successes = probe["successThreshold"];
    if (successes.integer() != 1) successes.invalid("must be 1");
  }
  const CheckedField probe = container["readinessProbe"];
  if (!probe) return;
  check_probe(probe, grace_seconds);
  const CheckedField grace = probe["terminationGracePeriodSeconds"];
  if (grace) grace.invalid("must not be set for readinessProbes");
}

void check_lifecycle(const CheckedField& lifecycle, std::int64_t grace_seconds) {
  for (const std::string_view name : {"postStart", "preStop"}) {
    const CheckedField hook = lifecycle[name];
    if (hook) check_handler(hook, grace_seconds);
  }
}

}  // namespace spillway::apiserver::kinds
