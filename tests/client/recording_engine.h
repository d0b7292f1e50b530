// An engine that writes down its events and gives the commands that a test puts into it.
#pragma once

#include "client/engine.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::client {

class RecordingEngine final : public ApiEngine {
 public:
  struct Record {
    std::vector<std::string> received;  // "start", "wakeup", "done 7 404"
    std::vector<ApiCommand> commands;
    std::optional<Instant> wakeup;
  };

  explicit RecordingEngine(Record& record) : record_(record) {}

  std::string_view name() const override { return "recording"; }

  void start(Now) override { record_.received.emplace_back("start"); }

  void on_api_event(const ApiEvent& event, Now) override {
    std::string text = "event";
    if (const auto* done = std::get_if<CallDone>(&event)) {
      text = "done " + std::to_string(done->id);
      if (done->response) text += " " + std::to_string(done->response->status);
    }
    record_.received.push_back(std::move(text));
  }

  void on_wakeup(Now) override { record_.received.emplace_back("wakeup"); }

  std::optional<Instant> next_wakeup() const override { return record_.wakeup; }

  std::vector<ApiCommand> take_api_commands() override { return std::exchange(record_.commands, {}); }

 private:
  Record& record_;
};

}  // namespace spillway::client
