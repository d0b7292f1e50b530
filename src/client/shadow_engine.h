// Runs another engine without letting it write: its reads are sent, its writes are answered with 404 and not sent. A
// write that it wants again and again is a difference between the cluster and its wanted state: reported once per
// target, when it has been wanted for `patience`. Thread: loop. Bounds: targets wanted within the last ten times
// `patience` are remembered. Events are dropped.
#pragma once

#include "client/engine.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::client {

class ShadowEngine final : public ApiEngine {
 public:
  struct Difference {
    std::string write;  // "PATCH /api/v1/nodes/n1"
    std::string body;
    Duration wanted{};
  };

  struct Options {
    Duration patience = seconds(15);
    // the first time the write was wanted
    std::function<void(const std::string& write, const std::string& body)> on_write;
    std::function<void(const Difference&)> on_difference;
  };

  ShadowEngine(std::unique_ptr<ApiEngine> inner, Options options)
      : inner_(std::move(inner)), options_(std::move(options)) {}

  std::string_view name() const override { return inner_->name(); }

  void start(Now now) override;
  void on_api_event(const ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;
  std::optional<Instant> next_wakeup() const override;
  std::vector<ApiCommand> take_api_commands() override;

 private:
  struct Want {
    Instant since;
    Instant last;
    bool reported = false;
  };

  void answer_writes(Now now);
  void record(const api::Request& request, Now now);

  std::unique_ptr<ApiEngine> inner_;
  Options options_;
  std::vector<SendCall> writes_;  // writes to be answered in the next step
  std::map<std::string, Want> wants_;
  Instant now_{};
};

}  // namespace spillway::client
