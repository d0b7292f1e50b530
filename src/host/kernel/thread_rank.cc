#include "host/kernel/thread_rank.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace spillway::host {

ThreadRank get_ahead() noexcept {
  sched_param parameters{};
  parameters.sched_priority = 1;
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  if (::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameters) == 0) return ThreadRank::kRealTime;
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  return ::setpriority(PRIO_PROCESS, thread, -20) == 0 ? ThreadRank::kNice : ThreadRank::kOrdinary;
}

}  // namespace spillway::host
