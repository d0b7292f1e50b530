// Callbacks of an object that may be called after its end. Thread: one; an Alive::Ref may be carried through another
// thread, and is evaluated on the object's thread only.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <utility>

namespace spillway {

/// A member of an object whose callbacks may outlive it: timers, posted tasks, answers from other threads. The
/// callbacks do nothing once the object, and this member with it, has ended.
class Alive {
  using Token = std::weak_ptr<const char>;

  template <typename Function>
  struct Guarded {
    template <typename... Arguments>
      requires std::invocable<Function&, Arguments...>
    void operator()(Arguments&&... arguments) {
      if (!token.expired()) std::invoke(function, std::forward<Arguments>(arguments)...);
    }

    template <typename... Arguments>
      requires std::invocable<const Function&, Arguments...>
    void operator()(Arguments&&... arguments) const {
      if (!token.expired()) std::invoke(function, std::forward<Arguments>(arguments)...);
    }

    Token token;
    Function function;
  };

 public:
  /// Outlives the object and says whether the object still exists.
  class Ref {
   public:
    /// A reference to no object: expired.
    Ref() = default;

    bool expired() const { return token_.expired(); }

    /// The function, until the object has ended; afterwards calls do nothing.
    template <typename Function>
    auto guard(Function function) const {
      return Guarded<Function>{token_, std::move(function)};
    }

   private:
    friend Alive;

    explicit Ref(const std::shared_ptr<const char>& token) : token_(token) {}

    Token token_;
  };

  Alive() = default;
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;
  ~Alive() = default;

  Ref ref() const { return Ref(token_); }

  /// Ref::guard().
  template <typename Function>
  auto guard(Function function) const {
    return ref().guard(std::move(function));
  }

  /// From now on guarded functions do nothing, as if the object had ended.
  void end() { token_.reset(); }

 private:
  std::shared_ptr<const char> token_ = std::make_shared<const char>();
};

}  // namespace spillway
