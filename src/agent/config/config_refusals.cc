#include "agent/config/config_refusals.h"

#include "agent/config/gate_config.h"
#include "agent/config/image_config.h"
#include "agent/config/kubelet_config.h"
#include "agent/config/manifest_config.h"
#include "agent/config/tls_config.h"

namespace spillway::agent {

std::vector<Error> refusals_of(const api::Json& effective) {
  std::vector<Error> errors;
  const auto check = [&errors](const auto& read) {
    if (!read) errors.push_back(read.error());
  };
  check(options_of(effective));
  check(gate_of(effective));
  check(answers_log_queries(effective));
  check(image_gc_of(effective));
  check(parallel_pulls_of(effective));
  check(pull_pace_of(effective));
  check(manifest_url_of(effective));
  check(tls_of(effective));
  return errors;
}

}  // namespace spillway::agent
