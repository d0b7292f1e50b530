// Writes the audit log: evaluates the policy for every request and records its course. A request that the policy wants
// has an AuditRecord, which its Exchange owns and notifies: of the user and the request when it is made, then of the
// verdict, the answer, the end of a stream. Requests that are refused before there is an Exchange are recorded in one
// call. Thread: Auditor any (immutable once made; the log takes lines on any thread); AuditRecord loop. Source:
// Kubernetes docs, "Auditing"; spec "API server at scale", 10; spec "API server contract", 21.
#pragma once

#include "apiserver/audit/event.h"
#include "apiserver/audit/policy.h"
#include "apiserver/ports/audit_log.h"
#include "apiserver/request/exchange.h"
#include "base/alive.h"
#include "base/time.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::apiserver {

class Auditor;

/// Upstream's metric of events that are lost, which the log counts as well; its label "plugin" is "log".
inline constexpr std::string_view kAuditErrors = "apiserver_audit_error_total";
inline constexpr std::string_view kAuditErrorsHelp = "Events that the audit log has lost";

class AuditRecord final : public AnswerObserver {
 public:
  AuditRecord(const Auditor& auditor, AuditEvent event, AuditDecision decision, bool long_running);
  /// Records that the request got no answer, if it got none.
  ~AuditRecord() override;
  AuditRecord(const AuditRecord&) = delete;
  AuditRecord& operator=(const AuditRecord&) = delete;

  /// Records the arrival of the request. `proceed` is called once it may be carried out, at once or later on the loop;
  /// an error: it may not.
  void receive(std::move_only_function<void(Outcome)> proceed);

  void on_verdict(const Exchange& exchange, bool allowed, std::string_view reason) override;
  void on_name(std::string_view name) override;
  void on_annotation(std::string_view key, std::string_view value) override;
  std::size_t body_bytes_wanted() const override;
  void on_answer(const Answer& answer) override;
  void on_stream(int code) override;
  void on_end() override;

 private:
  void take_request(const api::Request& request);
  void take_name(const Answer& answer);
  void take_answer(const Answer& answer);
  std::string shown(api::Json object) const;
  void write(AuditStage stage);
  void complete();

  const Auditor& auditor_;
  Alive::Ref alive_;  // the auditor
  AuditEvent event_;
  AuditDecision decision_;
  bool long_running_;
  bool left_out_ = false;  // an object that should be in the event
  bool completed_ = false;
};

class Auditor {
 public:
  /// Does a request wait until its arrival is in the log?
  enum class Wait {
    kNever,
    kWritten,  // written or lost
    kKept      // the request is refused if its event cannot be written
  };

  /// The longest line, whatever its level: an event that would be longer loses its objects.
  static constexpr std::size_t kEventBytesMax = std::size_t{6} << 20U;

  struct Options {
    AuditPolicy policy;
    AuditLog* log = nullptr;          // must outlive the auditor
    std::function<WallTime()> clock;  // any thread
    Wait wait = Wait::kNever;
    std::size_t event_bytes_max = kEventBytesMax;  // per line
    telemetry::Registry* metrics = nullptr;        // must outlive the auditor; null: nothing is counted
  };

  explicit Auditor(Options options);
  Auditor(const Auditor&) = delete;
  Auditor& operator=(const Auditor&) = delete;

  /// Null: the policy does not want it. A record that outlives the auditor, such as that of a connection which a node
  /// still holds after the server's end, writes nothing more.
  std::unique_ptr<AuditRecord> begin(const Exchange& exchange) const;

  /// Records a request that was refused with `code` before its attributes were known. `user` null: the sender is
  /// unknown.
  void refused(const api::Request& request, const api::UserInfo* user, std::string audit_id, int code,
               std::string message) const;

 private:
  friend class AuditRecord;

  AuditEvent event_of(const api::Request& request, const api::UserInfo* user, const RequestAttributes& asked,
                      std::string audit_id) const;
  void write(const AuditEvent& event) const;

  Options options_;
  Alive alive_;
  mutable telemetry::Counter events_;
  mutable telemetry::Counter errors_;
  mutable telemetry::Counter rejected_;
};

/// The request's attributes for the audit log, also for a target that cannot be parsed.
RequestAttributes audited_attributes(const api::Request& request);

}  // namespace spillway::apiserver
