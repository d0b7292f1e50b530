#include "apps/node/serving_context.h"

#include <utility>

namespace spillway::apps {

Outcome ServingContext::set_identity(wire::KeyPair identity) {
  SPILLWAY_TRY(made, make(identity, tls_.client_authority_pem));
  context_ = std::move(made);
  identity_ = std::move(identity);
  return {};
}

Outcome ServingContext::set_client_authority(std::string pem) {
  if (pem.empty()) return make_error(ErrorCode::kInvalid, "there is no certificate in it");
  SPILLWAY_TRY(made, make(identity_, pem));
  context_ = std::move(made);
  tls_.client_authority_pem = std::move(pem);
  return {};
}

Result<std::shared_ptr<const wire::TlsContext>> ServingContext::make(const wire::KeyPair& identity,
                                                                     const std::string& authority) const {
  return wire::TlsContext::make_server(
      {.identity = identity, .client_authority_pem = authority, .bounds = tls_.bounds});
}

}  // namespace spillway::apps
