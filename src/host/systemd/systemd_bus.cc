#include "host/systemd/systemd_bus.h"

#include "runtime/clock.h"

#include <fmt/format.h>
#include <systemd/sd-bus.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace spillway::host {
namespace {

constexpr const char* kService = "org.freedesktop.systemd1";
constexpr const char* kPath = "/org/freedesktop/systemd1";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";
// The socket at which systemd takes calls of root itself, also without a bus daemon.
constexpr const char* kPrivateSocket = "unix:path=/run/systemd/private";
constexpr std::string_view kExists = "org.freedesktop.systemd1.UnitExists";
constexpr std::string_view kUnknown = "org.freedesktop.systemd1.NoSuchUnit";
constexpr std::string_view kDone = "done";
constexpr std::string_view kSkipped = "skipped";

constexpr std::uint64_t bus_micros(Duration duration) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(duration).count());
}

struct BusMessageEnd {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};

using BusMessage = std::unique_ptr<sd_bus_message, BusMessageEnd>;

struct BusError {
  BusError() = default;

  ~BusError() { sd_bus_error_free(&error); }

  BusError(const BusError&) = delete;
  BusError& operator=(const BusError&) = delete;

  sd_bus_error error{};
};

int append_property(sd_bus_message* message, const UnitProperty& property) {
  return std::visit(
      [&](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return sd_bus_message_append(message, "(sv)", property.name.c_str(), "b", static_cast<int>(value));
        } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
          return sd_bus_message_append(message, "(sv)", property.name.c_str(), "t", value);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return sd_bus_message_append(message, "(sv)", property.name.c_str(), "s", value.c_str());
        } else {
          int result = sd_bus_message_open_container(message, 'r', "sv");
          if (result >= 0) result = sd_bus_message_append(message, "s", property.name.c_str());
          if (result >= 0) result = sd_bus_message_open_container(message, 'v', "as");
          if (result >= 0) result = sd_bus_message_open_container(message, 'a', "s");
          for (const std::string& each : value)
            if (result >= 0) result = sd_bus_message_append(message, "s", each.c_str());
          for (int open = 0; open < 3; ++open)
            if (result >= 0) result = sd_bus_message_close_container(message);
          return result;
        }
      },
      property.value);
}

int append_properties(sd_bus_message* message, const UnitProperties& properties) {
  int result = sd_bus_message_open_container(message, 'a', "(sv)");
  for (const UnitProperty& each : properties)
    if (result >= 0) result = append_property(message, each);
  return result < 0 ? result : sd_bus_message_close_container(message);
}

bool is_connection_error(int code) {
  return code == -ENOTCONN || code == -ECONNRESET || code == -EPIPE || code == -ESHUTDOWN || code == -EBADF;
}

Error call_error(const char* call, const std::string& unit, int code, const sd_bus_error& said) {
  const ErrorCode kind = code == -ETIMEDOUT ? ErrorCode::kTimeout : ErrorCode::kInternalError;
  return {kind,
          fmt::format("systemd: {} {}: {}", call, unit, said.message != nullptr ? said.message : ::strerror(-code)),
          {}};
}

}  // namespace

/// A connection, with the results of the jobs that it was notified of.
struct SystemdBus::Connection {
  explicit Connection(sd_bus* opened) : bus(opened) {}

  ~Connection() { sd_bus_close_unref(bus); }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  static int on_job_removed(sd_bus_message* message, void* self, sd_bus_error*) {
    std::uint32_t id = 0;
    const char* job = nullptr;
    const char* unit = nullptr;
    const char* result = nullptr;
    if (sd_bus_message_read(message, "uoss", &id, &job, &unit, &result) < 0) return 0;
    auto* connection = static_cast<Connection*>(self);
    if (connection->listens) connection->ended.insert_or_assign(job, result);
    return 0;
  }

  int listen() {
    const int matched = sd_bus_match_signal(bus, nullptr, nullptr, kPath, kManager, "JobRemoved", on_job_removed, this);
    if (matched < 0) return matched;
    // Without a bus daemon every client receives all signals, and the call may be refused.
    BusError error;
    sd_bus_message* answer = nullptr;
    const int subscribed =
        sd_bus_call_method(bus, kService, kPath, kManager, "Subscribe", &error.error, &answer, nullptr);
    const BusMessage freed(answer);
    return is_connection_error(subscribed) ? subscribed : 0;
  }

  sd_bus* bus;
  bool listens = false;  // true while a call is under way: results of other jobs are not kept
  std::map<std::string, std::string> ended;
};

SystemdBus::SystemdBus() = default;
SystemdBus::~SystemdBus() = default;

Outcome SystemdBus::connect() {
  if (connection_) return {};
  sd_bus* bus = nullptr;
  int opened = sd_bus_open_system(&bus);
  if (opened < 0) {
    opened = sd_bus_new(&bus);
    if (opened >= 0) opened = sd_bus_set_address(bus, kPrivateSocket);
    if (opened >= 0) opened = sd_bus_start(bus);
  }
  if (opened < 0) {
    sd_bus_unref(bus);
    return make_error(ErrorCode::kServiceUnavailable,
                      "systemd does not answer over D-Bus ({}); cgroupDriver: systemd needs it as process 1 of this "
                      "machine, and this program as root",
                      ::strerror(-opened));
  }
  auto made = std::make_unique<Connection>(bus);
  sd_bus_set_method_call_timeout(bus, bus_micros(kCallTimeout));
  const int listening = made->listen();
  if (listening < 0) return call_error("listen", "", listening, sd_bus_error{});
  connection_ = std::move(made);
  return {};
}

/// Sends one call to systemd. `tolerated`: the name of an error that means there is nothing to do; the job is empty
/// then.
template <typename Append>
Result<std::string> SystemdBus::ask_for_job(const char* member, const std::string& unit, std::string_view tolerated,
                                            Append append_arguments) {
  SPILLWAY_TRY_VOID(connect());
  sd_bus_message* made = nullptr;
  int result = sd_bus_message_new_method_call(connection_->bus, &made, kService, kPath, kManager, member);
  const BusMessage request(made);
  if (result >= 0) result = append_arguments(request.get());
  BusError error;
  sd_bus_message* given = nullptr;
  if (result >= 0)
    result = sd_bus_call(connection_->bus, request.get(), bus_micros(kCallTimeout), &error.error, &given);
  const BusMessage answer(given);
  if (result < 0) {
    if (error.error.name != nullptr && tolerated == error.error.name) return std::string();
    if (is_connection_error(result)) connection_.reset();
    return call_error(member, unit, result, error.error);
  }
  const char* job = "";
  if (sd_bus_message_has_signature(answer.get(), "o") > 0) sd_bus_message_read(answer.get(), "o", &job);
  return std::string(job);
}

Outcome SystemdBus::wait_for_job(const std::string& job, const std::string& unit) {
  const Instant end = runtime::RealClock::read_mono() + kCallTimeout;
  while (!connection_->ended.contains(job)) {
    const int processed = sd_bus_process(connection_->bus, nullptr);
    if (processed < 0) {
      connection_.reset();
      return call_error("wait for", unit, processed, sd_bus_error{});
    }
    if (processed > 0) continue;
    const Duration left = end - runtime::RealClock::read_mono();
    if (left <= Duration{}) return call_error("wait for", unit, -ETIMEDOUT, sd_bus_error{});
    const int waited = sd_bus_wait(connection_->bus, bus_micros(left));
    if (waited < 0 && waited != -EINTR) {
      connection_.reset();
      return call_error("wait for", unit, waited, sd_bus_error{});
    }
  }
  const std::string result = connection_->ended.at(job);
  if (result == kDone || result == kSkipped) return {};
  return make_error(ErrorCode::kInternalError, "systemd: the job of {} ended with \"{}\"", unit, result);
}

/// Jobs that end while the call is answered count as well.
template <typename Append>
Outcome SystemdBus::run_job(const char* member, const std::string& unit, std::string_view tolerated,
                            Append append_arguments) {
  SPILLWAY_TRY_VOID(connect());
  connection_->ended.clear();
  connection_->listens = true;
  const Result<std::string> job = ask_for_job(member, unit, tolerated, std::move(append_arguments));
  Outcome ended = job ? Outcome() : Outcome(job.error());
  if (job && !job->empty()) ended = wait_for_job(*job, unit);
  if (connection_) connection_->listens = false;
  return ended;
}

Outcome SystemdBus::start_slice(const std::string& unit, const UnitProperties& properties) {
  return run_job("StartTransientUnit", unit, kExists, [&](sd_bus_message* message) {
    int result = sd_bus_message_append(message, "ss", unit.c_str(), "replace");
    if (result >= 0) result = append_properties(message, properties);
    return result < 0 ? result : sd_bus_message_append(message, "a(sa(sv))", 0);
  });
}

Outcome SystemdBus::set_properties(const std::string& unit, const UnitProperties& properties) {
  if (properties.empty()) return {};
  const auto answered = ask_for_job("SetUnitProperties", unit, {}, [&](sd_bus_message* message) {
    const int result = sd_bus_message_append(message, "sb", unit.c_str(), 1);
    return result < 0 ? result : append_properties(message, properties);
  });
  return answered ? Outcome() : Outcome(answered.error());
}

Outcome SystemdBus::stop_slice(const std::string& unit) {
  SPILLWAY_TRY_VOID(run_job("StopUnit", unit, kUnknown, [&](sd_bus_message* message) {
    return sd_bus_message_append(message, "ss", unit.c_str(), "replace");
  }));
  ignored(ask_for_job("ResetFailedUnit", unit, kUnknown,
                      [&](sd_bus_message* message) { return sd_bus_message_append(message, "s", unit.c_str()); }),
          "a unit that is gone has not failed");
  return {};
}

}  // namespace spillway::host
