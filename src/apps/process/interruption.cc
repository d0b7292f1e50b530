#include "apps/process/interruption.h"

#include <csignal>

namespace spillway::apps {
namespace {

volatile std::sig_atomic_t came = 0;

void set(int signal, void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(signal, &action, nullptr);
}

void note(int signal) {
  came = signal;
}

}  // namespace

Interruption::Interruption() {
  came = 0;
  for (const int each : {SIGINT, SIGTERM}) set(each, note, static_cast<int>(SA_RESTART | SA_RESETHAND));
}

Interruption::~Interruption() {
  for (const int each : {SIGINT, SIGTERM}) set(each, SIG_DFL, 0);
}

int Interruption::signal() {
  return came;
}

}  // namespace spillway::apps
