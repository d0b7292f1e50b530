// What a container says and hears while it runs, and who listens: attached clients hear its outputs beside the log, and
// one or more of them may give it input.
// Thread: loop. Source: spec "Pod lifecycle", 11.1; Kubernetes API reference, "Container" (stdin, stdinOnce, tty).
#pragma once

#include "api/stream/command_channels.h"
#include "base/unique_fd.h"

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace spillway::host {

/// Port: hears a container.
class OutputListener {
 public:
  virtual ~OutputListener() = default;
  /// From now on it hears all that is said. May come again.
  virtual void on_listening() = 0;
  virtual void on_output(api::Channel channel, std::string_view data) = 0;
  virtual void on_container_ended() = 0;
  /// It should not be told more for now.
  virtual bool is_behind() = 0;
};

class ContainerConsole {
 public:
  /// `input`: where its input goes, not blocking; empty: it has none.
  void open(UniqueFd input, bool ends_once);
  /// Input and outputs are one terminal. `takes_input`: clients may type.
  void open_terminal(UniqueFd terminal, bool takes_input);

  bool has_terminal() const { return has_terminal_; }

  /// What is called when somebody begins to listen, which has to lead to on_heard(), and when its input has ended.
  /// Nothing: nobody has to know.
  void tell(std::function<void()> on_listened, std::function<void()> on_input_ended);

  bool has_listeners() const;

  /// `listener` will hear what it says, from on_listening() on, and of its end.
  void listen(std::weak_ptr<OutputListener> listener);
  /// What it says comes to say() from now on.
  void on_heard();

  void say(api::Channel channel, std::string_view data);
  /// Somebody who listens is behind: the container should not be read on.
  bool is_held_up() const;

  /// For one client; empty: there is no input, or it is at its end.
  UniqueFd share_input() const;
  /// A client has given all its input.
  void on_input_given();
  /// Of its terminal.
  void resize(api::TerminalSize size);
  /// The container has ended: whoever listens is told.
  void close();

 private:
  void for_each_listener(const std::function<void(OutputListener&)>& act);

  UniqueFd input_;
  bool ends_once_ = false;
  bool has_terminal_ = false;
  bool takes_input_ = true;
  std::vector<std::weak_ptr<OutputListener>> listeners_;
  std::function<void()> on_listened_;
  std::function<void()> on_input_ended_;
};

}  // namespace spillway::host
