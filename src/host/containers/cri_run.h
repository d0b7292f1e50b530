// An operation on a container runtime that waits for its answers, written as a list of steps
// (docs/adr/0072-writes-as-lists-of-steps.md). A step that makes a call names the function that receives the answer:
//
//     host.calls.call("StartContainer", request, kRuntimeCallMax, then(&CriContainerStart::on_started));
//     return Next::kWait;
//
// The call keeps the run alive until the answer, and nothing else does; without an answer the run ends with the calls
// of its runtime. The run has ended when a step or an answer returns Next::kEnd. Thread: loop.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "base/step_list.h"

#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace spillway::host {

/// The base of a class whose functions are the steps. Objects are owned by std::shared_ptr.
template <typename Run, typename Step>
class CriRun : public std::enable_shared_from_this<Run> {
 public:
  virtual ~CriRun() = default;
  CriRun(const CriRun&) = delete;
  CriRun& operator=(const CriRun&) = delete;

  /// Runs steps until one waits or the run ends. Called by the one that starts it, then by the run itself.
  void advance() { resume(Next::kStep); }

 protected:
  /// `steps`: in their order; they must outlive the run.
  explicit CriRun(std::span<const Step> steps) : steps_(steps) {}

  /// Continues after an answer.
  void resume(Next next) {
    while (next == Next::kStep) next = run(steps_.take());
  }

  /// The receiver of an answer, which says how the run continues.
  template <typename Answer>
  auto then(Next (Run::*on_answer)(Answer answer)) {
    return [self = this->shared_from_this(), on_answer](Answer answer) {
      self->resume(((*self).*on_answer)(std::move(answer)));
    };
  }

  StepList<Step> steps_;

 private:
  /// The function of each step.
  virtual Next run(Step step) = 0;
};

}  // namespace spillway::host
