#include "wire/http2/flood_guard.h"

namespace spillway::wire {
namespace {

constexpr int kEmptyInARowMax = 10;
constexpr std::uint64_t kPrioritiesPerStream = 100;
constexpr std::uint64_t kWindowUpdatesFree = 100;  // allowed before any request
constexpr std::uint64_t kWindowUpdatesPerStream = 2;
constexpr std::uint64_t kWindowUpdatesPerData = 20;

}  // namespace

bool FloodGuard::allows(Frame frame, Instant now) {
  switch (frame) {
    case Frame::kReset:
      return resets_.try_take(now);
    case Frame::kPing:
      return pings_.try_take(now);
    case Frame::kSettings:
      return settings_.try_take(now);
    case Frame::kEmpty:
      return ++empty_in_a_row_ <= kEmptyInARowMax;
    case Frame::kPriority:
      return ++priorities_ <= kPrioritiesPerStream * (1 + streams_);
    case Frame::kWindowUpdate:
      return ++window_updates_ <=
             kWindowUpdatesFree + kWindowUpdatesPerStream * streams_ + kWindowUpdatesPerData * data_sent_;
  }
  return false;
}

std::string_view to_string(FloodGuard::Frame frame) {
  switch (frame) {
    case FloodGuard::Frame::kReset:
      return "resets";
    case FloodGuard::Frame::kPing:
      return "pings";
    case FloodGuard::Frame::kSettings:
      return "settings";
    case FloodGuard::Frame::kEmpty:
      return "empty frames";
    case FloodGuard::Frame::kPriority:
      return "priorities";
    case FloodGuard::Frame::kWindowUpdate:
      return "window updates";
  }
  return "";
}

}  // namespace spillway::wire
