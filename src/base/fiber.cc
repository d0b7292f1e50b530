#include "base/fiber.h"

#include "base/check.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <limits>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define SPILLWAY_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPILLWAY_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SPILLWAY_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SPILLWAY_TSAN 1
#endif
#endif
#if defined(SPILLWAY_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SPILLWAY_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace spillway {

namespace {

constexpr std::size_t kGuardBytes = 64U << 10U;  // below the stack; to touch it is a fault
/// Stacks that a thread keeps for its next fibers: most computations end in their first slice, one after the other.
constexpr std::size_t kKeptStacks = 2;

class Stack {
 public:
  Stack()
      : memory_(::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0)) {
    SPILLWAY_CHECK(memory_ != MAP_FAILED);
    SPILLWAY_CHECK(::mprotect(bottom(), Fiber::kStackBytes, PROT_READ | PROT_WRITE) == 0);
  }

  ~Stack() {
    if (memory_ != nullptr) ::munmap(memory_, kBytes);
  }

  Stack(Stack&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}

  Stack& operator=(Stack&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }

  void* bottom() const { return static_cast<char*>(memory_) + kGuardBytes; }

 private:
  static constexpr std::size_t kBytes = Fiber::kStackBytes + kGuardBytes;

  void* memory_;
};

std::vector<Stack>& kept_stacks() {
  thread_local std::vector<Stack> stacks;
  return stacks;
}

Stack take_stack() {
  std::vector<Stack>& kept = kept_stacks();
  if (kept.empty()) return {};
  Stack stack = std::move(kept.back());
  kept.pop_back();
  return stack;
}

void keep_stack(Stack stack) {
  std::vector<Stack>& kept = kept_stacks();
  if (kept.size() < kKeptStacks) kept.push_back(std::move(stack));
}

}  // namespace

struct Fiber::Context {
  Work work;
  Stack stack = take_stack();
  ucontext_t own = {};
  ucontext_t caller = {};
  std::uint64_t left = 0;  // units of the slice
  Context* outer = nullptr;
  bool begun = false;
  bool ended = false;
#if defined(SPILLWAY_ASAN)
  void* own_fake = nullptr;
  void* caller_fake = nullptr;
  const void* caller_bottom = nullptr;
  std::size_t caller_bytes = 0;
#endif
#if defined(SPILLWAY_TSAN)
  void* own_tsan = __tsan_create_fiber(0);
  void* caller_tsan = nullptr;
#endif

  /// The fiber that runs on this thread; null: none.
  static Context*& running() {
    thread_local Context* context = nullptr;
    return context;
  }

  static void enter() {
    Context& self = *running();
#if defined(SPILLWAY_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, &self.caller_bottom, &self.caller_bytes);
#endif
    self.work();
    self.work = nullptr;  // its captures are released before the end is reported
    self.ended = true;
    self.switch_out();
  }

  void switch_in() {
    outer = std::exchange(running(), this);
#if defined(SPILLWAY_ASAN)
    __sanitizer_start_switch_fiber(&caller_fake, stack.bottom(), kStackBytes);
#endif
#if defined(SPILLWAY_TSAN)
    caller_tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(own_tsan, 0);
#endif
    ::swapcontext(&caller, &own);
#if defined(SPILLWAY_ASAN)
    __sanitizer_finish_switch_fiber(caller_fake, nullptr, nullptr);
#endif
    running() = outer;
  }

  void switch_out() {
#if defined(SPILLWAY_ASAN)
    __sanitizer_start_switch_fiber(ended ? nullptr : &own_fake, caller_bottom, caller_bytes);
#endif
#if defined(SPILLWAY_TSAN)
    __tsan_switch_to_fiber(caller_tsan, 0);
#endif
    ::swapcontext(&own, &caller);
#if defined(SPILLWAY_ASAN)
    __sanitizer_finish_switch_fiber(own_fake, &caller_bottom, &caller_bytes);
#endif
  }
};

Fiber::Fiber(Work work) : context_(std::make_unique<Context>()) {
  context_->work = std::move(work);
}

Fiber::~Fiber() {
  while (context_->begun && !context_->ended) resume(std::numeric_limits<std::uint64_t>::max());
#if defined(SPILLWAY_TSAN)
  __tsan_destroy_fiber(context_->own_tsan);
#endif
  keep_stack(std::move(context_->stack));
}

bool Fiber::resume(std::uint64_t units) {
  SPILLWAY_CHECK(!context_->ended && units > 0);
  if (!std::exchange(context_->begun, true)) {
    SPILLWAY_CHECK(::getcontext(&context_->own) == 0);
    context_->own.uc_stack.ss_sp = context_->stack.bottom();
    context_->own.uc_stack.ss_size = kStackBytes;
    ::makecontext(&context_->own, &Context::enter, 0);
  }
  context_->left = units;
  context_->switch_in();
  return context_->ended;
}

void count_work(std::uint64_t units) {
  Fiber::Context* fiber = Fiber::Context::running();
  if (fiber == nullptr) return;
  if (units < fiber->left) {
    fiber->left -= units;
    return;
  }
  fiber->left = 0;
  fiber->switch_out();
}

}  // namespace spillway
