// Runs admission webhooks and policies for a request: which are called for an object, in which order, and how their
// answers are applied. Every write calls begin() first, which is one comparison while there are neither. Thread: loop.
// Bounds: calls under way, bytes of them, the time that one request may spend here. Source: Kubernetes docs, "Dynamic
// Admission Control"; KEP-492.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "api/schema/schema.h"
#include "apiserver/access/authorizer.h"
#include "apiserver/ports/webhook_caller.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "apiserver/webhooks/policy_metrics.h"
#include "apiserver/webhooks/policy_table.h"
#include "apiserver/webhooks/request_forms.h"
#include "apiserver/webhooks/webhook_metrics.h"
#include "apiserver/webhooks/webhook_table.h"
#include "base/alive.h"
#include "policy/webhooks/match.h"
#include "policy/webhooks/review_answer.h"
#include "policy/webhooks/review_request.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace spillway::apiserver {

/// Calls one webhook and resumes the write afterwards.
class WebhookCalls {
 public:
  static constexpr std::size_t kCallsMax = 256;         // under way
  static constexpr std::size_t kBytesMax = 64U << 20U;  // bodies of all calls under way

  using Answered = std::move_only_function<void(Result<webhooks::ReviewAnswer>)>;

  /// `caller` null: no webhook can be asked.
  WebhookCalls(Core& core, WebhookCaller* caller) : core_(core), caller_(caller) {}

  ~WebhookCalls();
  WebhookCalls(const WebhookCalls&) = delete;
  WebhookCalls& operator=(const WebhookCalls&) = delete;

  /// `answered` is called once, and never from inside; an error is the reason for a missing answer, in upstream's
  /// words. Waits for `time` at most, which is not more than the webhook's own.
  void ask(const webhooks::Webhook& webhook, const std::string& uid, std::string body, Duration time,
           Answered answered);

 private:
  struct Call {
    webhooks::Phase phase;
    std::string uid;
    std::string url;
    std::size_t bytes;
    Answered answered;
    TimerQueue::Id timer;
  };

  void fail_soon(std::string why, Answered answered);
  void finish(std::uint64_t id, const Result<api::Response>& response);
  void give_up(std::uint64_t id);

  Core& core_;
  WebhookCaller* caller_;
  std::uint64_t last_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::uint64_t, Call> calls_;
  Alive alive_;
};

/// One request past the webhooks: mutate(), again if may_repeat(), then validate(). It keeps to the webhooks that there
/// were when it began.
class Admission final : public std::enable_shared_from_this<Admission> {
 public:
  /// The object after the webhooks' changes; nullopt: unchanged.
  using Mutated = std::move_only_function<void(api::StatusResult<std::optional<api::Json>>)>;
  using Decided = std::move_only_function<void(api::StatusResult<void>)>;

  /// The object and operation under admission.
  struct Subject {
    webhooks::Operation operation = webhooks::Operation::kCreate;
    std::string ns;
    std::string name;
    bool dry_run = false;
  };

  struct Tools {
    Core& core;
    WebhookCalls& calls;
    WebhookMetrics& metrics;
    PolicyMetrics& policy_metrics;
    const Authorizer& authorizer;
  };

  /// Admission phases that have a rule for a request.
  struct Phases {
    bool mutating = false;
    bool validating = false;
    bool policies = false;

    bool any() const { return mutating || validating || policies; }
  };

  Admission(Tools tools, ExchangePtr exchange, Subject subject, Phases phases, const WebhookTable& table,
            const PolicyTable& policies);

  /// CreateOptions, …
  void set_options(api::Json options) { options_ = std::move(options); }

  /// True if a round of mutating webhooks is due: the first, or the second, which shows them the outcome once more.
  bool has_round() const { return round_ == 0 ? phases_.mutating : may_repeat(); }

  bool validates() const { return phases_.validating || phases_.policies; }

  /// True if the outcome of the first mutate() may be shown to the webhooks once more.
  bool may_repeat() const { return round_ == 1 && changed_ && !(previous_.empty() && again_.empty()); }

  /// Asks the mutating webhooks, one after the other; a second time those that want to see what others have changed.
  /// `object`, `old`: null where there is none; in the form of the request's endpoint. May call `done` from inside.
  void mutate(api::Json object, api::Json old, Mutated done);
  /// Evaluates the policies, then calls the validating webhooks, all at once. May call `done` from inside.
  void validate(api::Json object, api::Json old, Decided done);

 private:
  using Form = RequestForms::Form;

  webhooks::Subject rule_subject() const;
  const Form* form_for(const webhooks::Webhook& webhook) const;
  webhooks::KindName kind_of(const Form& form) const;
  const api::Type* type_of(const Form& form) const;
  api::StringMap namespace_labels() const;
  std::optional<api::Status> hindrance() const;
  webhooks::ReviewRequest described(const Form& form) const;
  std::string review(const Form& form, const std::string& uid) const;
  /// The result of the webhook's match conditions; an error ends the request.
  api::StatusResult<bool> wants(const webhooks::Webhook& webhook, const Form& form);
  cel::AccessDecision decide(const cel::AccessRequest& asked) const;
  void ask(const webhooks::Webhook& webhook, const Form& form, WebhookCalls::Answered answered);

  /// Evaluates the policies, once for each validate(); an error ends the request. missing_ is set if they have to be
  /// evaluated again, with the objects in that form.
  api::StatusResult<void> evaluate_policies();
  void report(const admission_policies::PolicyResult& result);

  /// A webhook to call about the present object, and the form in which it wants the object.
  struct Wanted {
    std::size_t index = 0;  // position in the list of its phase
    const Form* form = nullptr;
  };

  /// True if the search for webhooks stopped at a form that has to be converted first; it continues afterwards.
  bool stops_at(const Form& form);
  /// An error ends the request: the webhook that has to convert its objects to the form has failed.
  api::StatusResult<void> check_converted(const Form& form) const;
  void convert_missing(RequestForms::Done done);

  void ask_next_mutating();
  /// nullopt: none is left, or missing_ is set. Continues behind the webhook that was found last.
  api::StatusResult<std::optional<Wanted>> find_next_mutating();
  void on_next_mutating(const api::StatusResult<std::optional<Wanted>>& found);
  void ask_validating();
  /// Evaluates the policies for the object, then appends the webhooks to call to wanted_.
  api::StatusResult<void> find_validating();
  void on_validating(const api::StatusResult<void>& found);
  void ask_wanted();
  void end_validation(const api::StatusResult<void>& result);
  void on_mutation(std::size_t index, const Form& form, Instant asked, Result<webhooks::ReviewAnswer> answer);
  /// The object that the patch makes; nullopt: it changes nothing.
  api::StatusResult<std::optional<api::Json>> patched(const webhooks::Webhook& webhook, const Form& form,
                                                      const api::Json& patch) const;
  void on_taken(std::size_t index, bool changed);
  void record_mutation(std::size_t index, bool changed);
  void end_mutation(api::StatusResult<std::optional<api::Json>> result);

  /// Applies an answer except for its patch; an error ends the request.
  api::StatusResult<void> evaluate(const webhooks::Webhook& webhook, Instant asked,
                                   const Result<webhooks::ReviewAnswer>& answer);
  void record_answer(const webhooks::Webhook& webhook, const webhooks::ReviewAnswer& answer);

  Tools tools_;
  ExchangePtr exchange_;
  Subject subject_;
  Phases phases_;
  api::Json options_;
  Instant deadline_;
  RequestForms forms_;
  const Form* missing_ = nullptr;  // the form that a search stopped at
  std::shared_ptr<const WebhookList> mutating_;
  std::shared_ptr<const WebhookList> validating_;
  std::shared_ptr<const admission_policies::PolicyList> policies_;

  // Progress through the list of a phase.
  std::size_t next_ = 0;
  bool evaluated_ = false;      // by the policies
  std::vector<Wanted> wanted_;  // validating webhooks
  Decided decided_;
  int round_ = 0;
  bool changed_ = false;
  std::set<std::size_t> previous_;  // called before; to be called again only if a later webhook changes the object
  std::set<std::size_t> again_;     // to be called again
  Mutated mutated_;
};

using AdmissionPtr = std::shared_ptr<Admission>;

class WebhookAdmission {
 public:
  /// `authorizer`: answers the authorization checks in expressions.
  WebhookAdmission(Core& core, WebhookTable& table, PolicyTable& policies, WebhookCaller* caller,
                   const Authorizer& authorizer, telemetry::Registry& metrics)
      : core_(core),
        table_(table),
        policies_(policies),
        webhook_calls_(core, caller),
        metrics_(metrics),
        policy_metrics_(metrics),
        authorizer_(authorizer) {}

  /// Null: no webhook and no policy applies. `exchange` null: a write of the server itself, which needs no admission.
  AdmissionPtr begin(const ExchangePtr& exchange, webhooks::Operation operation, const std::string& ns,
                     const std::string& name, bool dry_run) {
    if (nobody_asks() || exchange == nullptr) return nullptr;
    return find(exchange, operation, ns, name, dry_run);
  }

  /// True if a webhook or a policy has a rule for such requests, whatever their objects contain. `part` null: the
  /// object itself.
  bool applies_to(const Resource& resource, const Subresource* part, webhooks::Operation operation) {
    return !nobody_asks() && phases_of(resource, part, operation).any();
  }

 private:
  bool nobody_asks() const { return table_.empty() && policies_.empty(); }

  using Kind = std::tuple<const Resource*, const Subresource*, webhooks::Operation>;

  /// Found once for each kind of request, until the webhooks change.
  Admission::Phases phases_of(const Resource& resource, const Subresource* part, webhooks::Operation operation);
  AdmissionPtr find(const ExchangePtr& exchange, webhooks::Operation operation, const std::string& ns,
                    const std::string& name, bool dry_run);

  Core& core_;
  WebhookTable& table_;
  PolicyTable& policies_;
  WebhookCalls webhook_calls_;
  WebhookMetrics metrics_;
  PolicyMetrics policy_metrics_;
  const Authorizer& authorizer_;
  std::uint64_t version_ = 0;     // both tables' version when `phases_` was begun
  std::uint64_t generation_ = 0;  // the table of resources' at that time
  std::map<Kind, Admission::Phases> phases_;
};

}  // namespace spillway::apiserver
