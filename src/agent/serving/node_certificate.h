// A certificate of a node, requested from the API server with a CertificateSigningRequest and renewed before it
// expires. The serving certificate has the signer kubernetes.io/kubelet-serving; until it is issued the node serves
// with a self-signed one, which an API server that verifies does not accept. The client certificate has the signer
// kubernetes.io/kube-apiserver-client-kubelet. Thread: loop. Bounds: one request at a time, one call in flight,
// back-off to kRetryMax. Source: Kubernetes docs, "Kubelet TLS bootstrapping", certificate rotation; spec "Node agent",
// 12.1.
#pragma once

#include "base/back_off.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "telemetry/log.h"

#include <optional>
#include <string>

namespace spillway::agent {

/// Port: makes keys and takes certificates for them. Implemented by apps/.
class CertificateKeys {
 public:
  virtual ~CertificateKeys() = default;
  /// A PEM request for a new key, which is kept until install().
  virtual Result<std::string> make_request() = 0;
  /// Serves with the certificate from now on; returns its end. kInvalid: it does not fit the last requested key.
  virtual Result<WallTime> install(const std::string& certificate_pem) = 0;
};

enum class CertificatePurpose { kServing, kClient };

class NodeCertificate final : public client::ApiEngine {
 public:
  static constexpr Duration kPollMin = milliseconds(100);
  static constexpr Duration kPollMax = seconds(30);
  static constexpr Duration kRetryMin = seconds(1);
  static constexpr Duration kRetryMax = minutes(5);
  /// An unsigned request is replaced after this time; the API server deletes it after a day.
  static constexpr Duration kPatience = hours(12);

  /// `end`: expiry of the present certificate; nullopt: there is none, and one is requested at once.
  NodeCertificate(CertificatePurpose purpose, CertificateKeys& keys, telemetry::Log log, Rng rng,
                  std::optional<WallTime> end = std::nullopt);

  std::string_view name() const override;

  void start(Now now) override;

  void on_api_event(const client::ApiEvent& event, Now now) override { api_.on_api_event(event, now); }

  void on_wakeup(Now now) override { api_.on_wakeup(now); }

  std::optional<Instant> next_wakeup() const override { return api_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return api_.take_api_commands(); }

 private:
  // The steps of a request, in order; the last one begins the next request when its time comes.
  void request(Now now);
  void on_requested(const Result<api::Json>& outcome, Now now);
  void poll(Now now);
  void on_polled(const Result<api::Json>& outcome, Now now);
  /// The request as the API server has it: signed, refused, or still waiting.
  void on_request(const api::Json& request, Now now);
  void install(const std::string& certificate, Now now);
  /// Requests the next certificate with a fifth of the time to `end` left, and never at once again.
  void renew_before(WallTime end, Now now);
  void retry(std::string_view why, Now now);

  /// True at the first call since a certificate was installed, so that a problem is logged once.
  bool say_once() { return !std::exchange(said_, true); }

  CertificatePurpose purpose_;
  CertificateKeys& keys_;
  telemetry::Log log_;
  client::ApiClient api_;
  std::optional<WallTime> end_;  // expiry of the first certificate
  std::string name_;             // name of the CertificateSigningRequest
  Instant asked_{};
  BackOff polls_{kPollMin, kPollMax};
  BackOff retries_{kRetryMin, kRetryMax};
  bool said_ = false;
  bool installed_ = false;
};

}  // namespace spillway::agent
