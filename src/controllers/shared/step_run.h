// An operation of a controller that waits for answers of the API server, written as a list of steps
// (docs/adr/0072-writes-as-lists-of-steps.md). A step that makes a call names the function that receives the answer:
//
//     client.patch(path, type, patch, then(&JobSync::on_status_written));
//     return Next::kWait;
//
// The call keeps the run alive until the answer, and nothing else does. The run has ended when a step or an answer
// returns Next::kEnd. Thread: loop.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "base/step_list.h"
#include "base/time.h"
#include "client/api_client.h"

#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace spillway::controllers {

/// The base of a class whose functions are the steps. Objects are owned by std::shared_ptr.
template <typename Run, typename Step>
class StepRun : public std::enable_shared_from_this<Run> {
 public:
  virtual ~StepRun() = default;
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  /// Runs steps until one waits or the run ends. Called by the one that starts it, then by the run itself.
  void advance(Now now) {
    Next next = Next::kStep;
    while (next == Next::kStep) next = run(steps_.take(), now);
  }

 protected:
  /// Receives the answer to a call, and says how the run continues.
  using Answer = Next (Run::*)(const Result<api::Json>& outcome, Now now);

  /// `steps`: in their order; they must outlive the run.
  explicit StepRun(std::span<const Step> steps) : steps_(steps) {}

  /// The completion of a call.
  client::ApiClient::Done then(Answer on_answer) {
    return [self = this->shared_from_this(), on_answer](const Result<api::Json>& outcome, Now now) {
      if (((*self).*on_answer)(outcome, now) == Next::kStep) self->advance(now);
    };
  }

  /// The completion of one of several calls that are under way at once; `about` is handed on with the answer.
  template <typename About>
  client::ApiClient::Done then(Next (Run::*on_answer)(const About& about, const Result<api::Json>& outcome, Now now),
                               About about) {
    return [self = this->shared_from_this(), on_answer, about = std::move(about)](const Result<api::Json>& outcome,
                                                                                  Now now) {
      if (((*self).*on_answer)(about, outcome, now) == Next::kStep) self->advance(now);
    };
  }

  /// The action of a timer: the next step follows.
  std::function<void(Now)> then_advance() {
    return [self = this->shared_from_this()](Now now) { self->advance(now); };
  }

  StepList<Step> steps_;

 private:
  /// The function of each step.
  virtual Next run(Step step, Now now) = 0;
};

}  // namespace spillway::controllers
