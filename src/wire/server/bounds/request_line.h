// Chooses the next request to carry out: heartbeats of nodes before those of controllers, those before all others,
// within a class each client in turn. No class waits for ever: of sixteen turns heartbeats take eight at most, others
// of vital clients six. A class has so many seats, for requests that are being carried out, and so many places to wait.
// Thread: any.
#pragma once

#include "runtime/loop.h"
#include "wire/http/client_rank.h"
#include "wire/http/http_limits.h"

#include <array>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace spillway::wire {

class RequestLine : public std::enable_shared_from_this<RequestLine> {
 public:
  /// Held while a request is executed; released by the destructor.
  class Seat {
   public:
    Seat() = default;

    Seat(Seat&& other) noexcept : line_(std::move(other.line_)), of_(other.of_) {}

    Seat& operator=(Seat&& other) noexcept {
      std::swap(line_, other.line_);
      std::swap(of_, other.of_);
      return *this;
    }

    ~Seat() {
      if (line_) line_->release(of_);
    }

   private:
    friend class RequestLine;
    std::shared_ptr<RequestLine> line_;
    RequestClass of_ = RequestClass::kOrdinary;
  };

  using Act = std::move_only_function<void(Seat)>;

  /// `call` has the owner call serve_one(), once for each call, where requests are carried out: a seat has become free.
  RequestLine(const QueueBounds& bounds, std::function<void()> call) : bounds_(bounds), call_(std::move(call)) {}

  RequestLine(const RequestLine&) = delete;
  RequestLine& operator=(const RequestLine&) = delete;

  /// False: too many wait. Else the owner is to call serve_one() once, some time.
  bool enter(RequestClass of, const std::string& client, Act act);
  /// Executes the next request, if there is one with a seat.
  void serve_one();
  /// Drops all waiting requests; their functions are destroyed on the caller's thread.
  void clear();

  std::size_t waiting() const;

 private:
  static constexpr std::size_t kClasses = 3;
  /// Turns of a class while others wait.
  static constexpr std::array<int, kClasses> kTurns = {8, 6, 2};

  struct Class {
    std::map<std::string, std::list<Act>> by_client;  // clients without requests have no entry
    std::string last_client;
    std::size_t waiting = 0;
    std::size_t seated = 0;
    int turns = 0;
  };

  std::size_t seats_of(std::size_t index) const;
  std::size_t places_of(std::size_t index) const;
  bool can_serve(std::size_t index) const;
  std::optional<std::size_t> pick();
  void release(RequestClass of);

  const QueueBounds bounds_;
  const std::function<void()> call_;
  mutable std::mutex mutex_;
  std::array<Class, kClasses> classes_;  // guarded by mutex
};

}  // namespace spillway::wire
