#include "apps/process/interruption.h"

#include <csignal>

namespace spillway::apps {
namespace {

volatile std::sig_atomic_t received = 0;

void set(int signal, void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(signal, &action, nullptr);
}

void on_signal(int signal) {
  received = signal;
}

}  // namespace

Interruption::Interruption() {
  received = 0;
  for (const int each : {SIGINT, SIGTERM}) set(each, on_signal, static_cast<int>(SA_RESTART | SA_RESETHAND));
}

Interruption::~Interruption() {
  for (const int each : {SIGINT, SIGTERM}) set(each, SIG_DFL, 0);
}

int Interruption::signal() {
  return received;
}

}  // namespace spillway::apps
