// An ApiClient driven by hand: the test sees the commands it leaves and answers them when it likes.
#pragma once

#include "client/api_client.h"
#include "client/informer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::client {

class ScriptedEngine {
 public:
  explicit ScriptedEngine(ApiClient::Limits limits = {}) : client("test/1", Rng(5), limits) {}

  void start() {
    client.start(now);
    collect();
  }

  /// Lets time pass, waking the client at each wake-up that it requests.
  void advance(Duration by) {
    const Instant end = now.mono + by;
    for (auto next = client.next_wakeup(); next && *next <= end; next = client.next_wakeup()) {
      move_to(std::max(*next, now.mono));
      client.on_wakeup(now);
      collect();
    }
    move_to(end);
  }

  void collect() {
    for (ApiCommand& command : client.take_api_commands()) commands.push_back(std::move(command));
  }

  /// Takes the oldest command out; it must be a T.
  template <typename T>
  T take() {
    T command = std::get<T>(commands.at(0));
    commands.erase(commands.begin());
    return command;
  }

  void answer(CallId id, int status, std::string body) {
    deliver(CallDone{id, api::Response{status, {}, std::move(body)}});
  }

  void frame(CallId id, std::string_view type, std::string_view object) {
    deliver(WatchFrame{
        id, std::make_shared<const std::string>(fmt::format(R"({{"type":"{}","object":{}}})", type, object))});
  }

  void deliver(ApiEvent event) {
    client.on_api_event(event, now);
    collect();
  }

  Now now{Instant(seconds(1000)), WallTime(seconds(1'767'225'600))};
  ApiClient client;
  std::vector<ApiCommand> commands;

 private:
  void move_to(Instant to) {
    now.wall += std::chrono::duration_cast<microseconds>(to - now.mono);
    now.mono = to;
  }
};

inline std::string node_document(std::string_view name, std::string_view version) {
  return fmt::format(R"({{"metadata":{{"name":"{}","resourceVersion":"{}"}}}})", name, version);
}

/// `items` are comma-separated documents.
inline std::string list_document(std::string_view version, std::string_view items, std::string_view next = {}) {
  return fmt::format(R"({{"kind":"NodeList","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
                     version, next, items);
}

}  // namespace spillway::client
