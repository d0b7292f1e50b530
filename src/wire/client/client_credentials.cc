#include "wire/client/client_credentials.h"

#include "api/text/base64.h"

#include <utility>

namespace spillway::wire {

namespace {

constexpr Duration kBeforeExpiry = seconds(10);
constexpr Duration kBetweenRuns = seconds(1);
constexpr Duration kAfterRefusal = seconds(10);

}  // namespace

ClientCredentials::ClientCredentials(runtime::Loop& loop, CredentialSource source)
    : loop_(loop), source_(std::move(source)) {
  if (!source_.basic.empty()) header_ = "Basic " + api::encode_base64(source_.basic);
}

bool ClientCredentials::ready(Now now) const {
  if (!source_.program) return true;
  if (!good_) return false;
  // A fresh credential counts even if it has expired already.
  const bool just_made = ran_at_ && now.mono - *ran_at_ < kBetweenRuns;
  return just_made || !expires_ || now.wall + kBeforeExpiry < *expires_;
}

void ClientCredentials::obtain(Ready done) {
  waiting_.push_back(std::move(done));
  if (run_) return;
  const Instant now = loop_.now().mono;
  if (failure_ && ran_at_ && now - *ran_at_ < kBetweenRuns) {
    loop_.post(alive_.guard([this] {
      if (!run_) report(*failure_);
    }));
    return;
  }
  ran_at_ = now;
  run_ = std::make_unique<ProgramRun>(loop_, *source_.program, source_.program_info,
                                      [this](Result<std::string> text) { on_printed(std::move(text)); });
}

void ClientCredentials::on_printed(Result<std::string> text) {
  const auto finished = std::move(run_);
  const Outcome taken = text ? take(*text) : Outcome(text.error());
  failure_ = taken ? std::nullopt : std::optional(taken.error());
  good_ = taken.has_value();
  report(taken);
}

Outcome ClientCredentials::take(const std::string& text) {
  SPILLWAY_TRY(credential, parse_exec_credential(*source_.program, text));
  if (!credential.certificate_pem.empty()) {
    TlsContext::ClientOptions options = source_.tls;
    options.identity = KeyPair{credential.certificate_pem, credential.key_pem};
    auto context = TlsContext::make_client(options);
    if (!context) return invalid(name_of(*source_.program), "its answer: {}", context.error().text());
    tls_ = *std::move(context);
  }
  header_ = credential.token.empty() ? "" : "Bearer " + credential.token;
  expires_ = credential.expires;
  ++generation_;
  return {};
}

void ClientCredentials::report(const Outcome& outcome) {
  for (const Ready& done : std::exchange(waiting_, {})) done(outcome);
}

const std::string& ClientCredentials::header(Instant now) {
  return source_.program || !source_.basic.empty() ? header_ : source_.token.header(now);
}

void ClientCredentials::on_refused(Instant now) {
  source_.token.on_refused();
  if (good_ && ran_at_ && now - *ran_at_ >= kAfterRefusal) good_ = false;
}

}  // namespace spillway::wire
