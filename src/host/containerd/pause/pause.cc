// The program in the sandbox of a pod: process 1 of the pod's namespaces. It collects ended processes that have no
// other parent, and ends at SIGTERM and SIGINT. Static, without a C library: what it needs of the kernel are four
// calls. Source: Linux system call conventions of x86-64 and AArch64; sigtimedwait(2); "Blocked signals are never
// ignored", which holds for process 1 as well.

namespace {

using Word = unsigned long;

#if defined(__x86_64__)
constexpr long kWait4 = 61;
constexpr long kExitGroup = 231;
constexpr long kSigProcMask = 14;
constexpr long kSigTimedWait = 128;

long call(long number, long a, long b, long c, long d) {
  long result = number;
  register long fourth asm("r10") = d;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
constexpr long kWait4 = 260;
constexpr long kExitGroup = 94;
constexpr long kSigProcMask = 135;
constexpr long kSigTimedWait = 137;

long call(long number, long a, long b, long c, long d) {
  register long first asm("x0") = a;
  register long second asm("x1") = b;
  register long third asm("x2") = c;
  register long fourth asm("x3") = d;
  register long which asm("x8") = number;
  asm volatile("svc 0" : "+r"(first) : "r"(second), "r"(third), "r"(fourth), "r"(which) : "memory");
  return first;
}
#else
#error "pause.cc: the system calls of this processor are not known here"
#endif

constexpr long kInterrupt = 2;
constexpr long kTerminate = 15;
constexpr long kChild = 17;
constexpr long kBlock = 0;   // SIG_BLOCK
constexpr long kNoHang = 1;  // WNOHANG
constexpr long kAnyChild = -1;

constexpr Word bit_of(long signal) {
  return Word{1} << (signal - 1);
}

}  // namespace

extern "C" [[noreturn]] void _start() {
  const Word signals = bit_of(kInterrupt) | bit_of(kTerminate) | bit_of(kChild);
  const long set = reinterpret_cast<long>(&signals);
  call(kSigProcMask, kBlock, set, 0, sizeof signals);
  for (;;) {
    const long signal = call(kSigTimedWait, set, 0, 0, sizeof signals);
    if (signal == kInterrupt || signal == kTerminate) call(kExitGroup, 0, 0, 0, 0);
    while (call(kWait4, kAnyChild, 0, kNoHang, 0) > 0) {
    }
  }
}
