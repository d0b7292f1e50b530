// The credentials of a client: a fixed text, a file that changes, or the output of a program. The program runs when a
// request needs credentials and there are no valid ones: at the first request, ten seconds before its answer expires,
// and after a server has refused its credentials. Thread: the client's loop. Bounds: one run at a time, one a second;
// after a refusal at most one in ten seconds.
#pragma once

#include "base/alive.h"
#include "base/error.h"
#include "base/time.h"
#include "runtime/loop.h"
#include "wire/client/bearer_token.h"
#include "wire/client/credential_program.h"
#include "wire/tls/tls.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::wire {

/// The source of an endpoint's credentials.
struct CredentialSource {
  BearerToken token;
  std::string basic;  // "user:password"; empty: none
  std::optional<CredentialProgram> program;
  std::string program_info;       // KUBERNETES_EXEC_INFO
  TlsContext::ClientOptions tls;  // for a certificate that the program prints
};

class ClientCredentials {
 public:
  using Ready = std::function<void(const Outcome&)>;

  ClientCredentials(runtime::Loop& loop, CredentialSource source);

  /// True if credentials are available. If not, call obtain().
  bool ready(Now now) const;
  /// `done` is called once, from the loop, when there are credentials, or with the error for which there are none.
  void obtain(Ready done);

  /// The value of the header "authorization"; empty: none. Only when ready().
  const std::string& header(Instant now);

  /// The TLS context with the certificate that a program printed; null: there is none, or it does not fit its key.
  /// Changes with generation().
  const std::shared_ptr<const TlsContext>& tls() const { return tls_; }

  std::uint64_t generation() const { return generation_; }

  /// The server refused the credentials.
  void on_refused(Instant now);

 private:
  void on_printed(Result<std::string> text);
  Outcome take(const std::string& text);
  void report(const Outcome& outcome);

  runtime::Loop& loop_;
  CredentialSource source_;
  std::string header_;
  std::shared_ptr<const TlsContext> tls_;
  std::uint64_t generation_ = 0;
  bool good_ = false;                // the last answer of a program is still valid
  std::optional<WallTime> expires_;  // end of the credential
  std::optional<Instant> ran_at_;
  std::optional<Error> failure_;  // the error of the last run
  std::unique_ptr<ProgramRun> run_;
  std::vector<Ready> waiting_;
  Alive alive_;
};

}  // namespace spillway::wire
