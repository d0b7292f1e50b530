#include "host/streams/container_console.h"

#include "host/spawn/terminal.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace spillway::host {

void ContainerConsole::open(UniqueFd input, bool ends_once) {
  input_ = std::move(input);
  ends_once_ = ends_once;
}

void ContainerConsole::open_terminal(UniqueFd terminal, bool takes_input) {
  input_ = std::move(terminal);
  has_terminal_ = true;
  takes_input_ = takes_input;
}

void ContainerConsole::listen(std::weak_ptr<OutputListener> listener) {
  std::erase_if(listeners_, [](const auto& each) { return each.expired(); });
  listeners_.push_back(std::move(listener));
  if (on_listened_) return on_listened_();
  on_output_ready();
}

void ContainerConsole::on_output_ready() {
  for_each_listener([](OutputListener& listener) { listener.on_listening(); });
}

void ContainerConsole::set_callbacks(std::function<void()> on_listened, std::function<void()> on_input_ended) {
  on_listened_ = std::move(on_listened);
  on_input_ended_ = std::move(on_input_ended);
}

bool ContainerConsole::has_listeners() const {
  return std::ranges::any_of(listeners_, [](const auto& each) { return !each.expired(); });
}

void ContainerConsole::say(api::Channel channel, std::string_view data) {
  for_each_listener([&](OutputListener& listener) { listener.on_output(channel, data); });
}

void ContainerConsole::for_each_listener(const std::function<void(OutputListener&)>& act) {
  if (listeners_.empty()) return;
  std::erase_if(listeners_, [](const auto& each) { return each.expired(); });
  const auto listeners = listeners_;
  for (const auto& each : listeners)
    if (const auto listener = each.lock()) act(*listener);
}

bool ContainerConsole::is_held_up() const {
  return std::ranges::any_of(listeners_, [](const auto& each) {
    const auto listener = each.lock();
    return listener && listener->is_behind();
  });
}

UniqueFd ContainerConsole::share_input() const {
  return UniqueFd(input_ && takes_input_ ? ::fcntl(input_.get(), F_DUPFD_CLOEXEC, 3) : -1);
}

void ContainerConsole::on_input_given() {
  if (!ends_once_ || has_terminal_) return;
  input_.reset();
  if (on_input_ended_) on_input_ended_();
}

void ContainerConsole::resize(api::TerminalSize size) {
  if (has_terminal_) resize_terminal(input_, size.width, size.height);
}

void ContainerConsole::close() {
  input_.reset();
  for (const auto& each : std::exchange(listeners_, {}))
    if (const auto listener = each.lock()) listener->on_container_ended();
}

}  // namespace spillway::host
