#include "runtime/entropy.h"

#include "runtime/clock.h"

#include <sys/random.h>
#include <unistd.h>

namespace spillway::runtime {

std::uint64_t entropy() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof bits)) return bits;
  const auto time = static_cast<std::uint64_t>(RealClock::read().wall.time_since_epoch().count());
  return time ^ static_cast<std::uint64_t>(::getpid()) << 44U ^ reinterpret_cast<std::uintptr_t>(&bits);
}

}  // namespace spillway::runtime
