// The certificate a node serves with: asked for at the API server as a CertificateSigningRequest for
// kubernetes.io/kubelet-serving, waited for, and replaced before it ends. Until there is one, and where nobody signs
// it, the node serves with a certificate of its own making, which an API server that verifies does not believe. Thread:
// loop. Bounds: one request at a time, one call in flight, back-off to kRetryMax. Source: Kubernetes docs, "Kubelet TLS
// bootstrapping", certificate rotation; spec "Node agent", 12.1.
#pragma once

#include "base/rng.h"
#include "client/api_client.h"
#include "telemetry/log.h"

#include <optional>
#include <string>

namespace spillway::agent {

/// Port: makes keys and takes certificates for them. Implemented by apps/.
class ServingKeys {
 public:
  virtual ~ServingKeys() = default;
  /// A PEM request for a new key, which is kept until install().
  virtual Result<std::string> make_request() = 0;
  /// Serves with it from now on; when it ends. kInvalid: it is not for the key that was asked for last.
  virtual Result<WallTime> install(const std::string& certificate_pem) = 0;
};

class ServingCertificate final : public client::ApiEngine {
 public:
  static constexpr Duration kPollMin = milliseconds(100);
  static constexpr Duration kPollMax = seconds(30);
  static constexpr Duration kRetryMin = seconds(1);
  static constexpr Duration kRetryMax = minutes(5);
  /// A request that nobody signs is made anew after this long: the server forgets it after a day.
  static constexpr Duration kPatience = hours(12);

  ServingCertificate(ServingKeys& keys, telemetry::Log log, Rng rng);

  std::string_view name() const override { return "serving-certificate"; }

  void start(Now now) override;

  void on_api_event(const client::ApiEvent& event, Now now) override { api_.on_api_event(event, now); }

  void on_wakeup(Now now) override { api_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return api_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return api_.take_api_commands(); }

  /// A signed certificate is in use.
  bool installed() const { return installed_; }

 private:
  void request(Now now);
  void poll(Now now);
  void on_answer(const api::Json& request, Now now);
  void install(const std::string& certificate, Now now);
  void retry(std::string_view why, Now now);

  /// True the first time since a certificate was installed: a trouble is said once.
  bool say_once() { return !std::exchange(said_, true); }

  ServingKeys& keys_;
  telemetry::Log log_;
  client::ApiClient api_;
  std::string name_;  // of the request
  Instant asked_{};
  Duration poll_wait_ = kPollMin;
  Duration retry_wait_ = kRetryMin;
  bool said_ = false;
  bool installed_ = false;
};

}  // namespace spillway::agent
