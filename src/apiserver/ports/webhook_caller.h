// The way from the API server to admission webhooks. Thread: loop.
#pragma once

#include "api/exchange/exchange.h"
#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <functional>
#include <string>

namespace spillway::apiserver {

/// One question to a webhook: POST `body`, JSON, to `origin` + `target`. The server sends no credentials and no
/// certificate of its own.
struct WebhookCall {
  std::string origin;         // "https://10.0.0.1:443", "https://[::1]:8443", "https://hooks.example"
  std::string target;         // "/path?timeout=10s"
  std::string tls_name;       // expected on the certificate; empty: the host of `origin`
  std::string authority_pem;  // PEM of the required authorities; empty: the authorities of the system
  std::string body;
  Duration timeout{};  // the answer is dropped after this time
};

/// Port: implemented by wire/ and by tests.
class WebhookCaller {
 public:
  /// The answer with any status code, redirects included; or the error without the webhook's name. Both with the time
  /// of arrival.
  using Done = std::move_only_function<void(Result<api::Response>, Now)>;

  virtual ~WebhookCaller() = default;

  /// `done` is called once, and never from inside. `id` names the call and is not used again.
  virtual void call(std::uint64_t id, WebhookCall call, Done done) = 0;
  /// Drops the call: `done` will not be called.
  virtual void cancel(std::uint64_t id) = 0;
};

}  // namespace spillway::apiserver
