// The streams of a running container: attached clients receive its outputs beside the log, and one or more of them may
// send it input.
// Thread: loop. Source: spec "Pod lifecycle", 11.1; Kubernetes API reference, "Container" (stdin, stdinOnce, tty).
#pragma once

#include "api/stream/command_channels.h"
#include "base/unique_fd.h"

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace spillway::host {

/// Port: receives a container's output.
class OutputListener {
 public:
  virtual ~OutputListener() = default;
  /// The listener receives all further output. May be called again.
  virtual void on_listening() = 0;
  virtual void on_output(api::Channel channel, std::string_view data) = 0;
  virtual void on_container_ended() = 0;
  /// True if the listener should get no more for now.
  virtual bool is_behind() = 0;
};

class ContainerConsole {
 public:
  /// `input`: the descriptor of the container's input, not blocking; empty: it has none.
  void open(UniqueFd input, bool ends_once);
  /// Uses one terminal for input and outputs. `takes_input`: clients may type.
  void open_terminal(UniqueFd terminal, bool takes_input);

  bool has_terminal() const { return has_terminal_; }

  /// Sets the callbacks for a new listener, which has to lead to on_output_ready(), and for the end of the input.
  /// Empty: none.
  void set_callbacks(std::function<void()> on_listened, std::function<void()> on_input_ended);

  bool has_listeners() const;

  /// `listener` receives the output, from on_listening() on, and the end.
  void listen(std::weak_ptr<OutputListener> listener);
  /// From now on the container's output is passed to say().
  void on_output_ready();

  void say(api::Channel channel, std::string_view data);
  /// True if a listener is behind: read no more from the container.
  bool is_held_up() const;

  /// A copy of the input for one client; empty: there is none, or it has ended.
  UniqueFd share_input() const;
  /// A client has given all its input.
  void on_input_given();
  /// Sets the size of the terminal.
  void resize(api::TerminalSize size);
  /// The container has ended: notifies all listeners.
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
