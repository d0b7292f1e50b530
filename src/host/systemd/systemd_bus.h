// Units of the systemd that is process 1 here, over D-Bus: the only file that uses libsystemd's bus.
// Thread: one at a time, and not the loop: every call waits, at most kCallTimeout. Source: org.freedesktop.systemd1(5),
// sd-bus(3).
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "host/systemd/unit_properties.h"

#include <memory>
#include <string>
#include <string_view>

namespace spillway::host {

class SystemdBus {
 public:
  /// Upstream's wait for a job of systemd; without an answer the call fails with kTimeout.
  static constexpr Duration kCallTimeout = seconds(30);

  /// Connects with the first call, and again after an error of the connection.
  SystemdBus();
  ~SystemdBus();
  SystemdBus(const SystemdBus&) = delete;
  SystemdBus& operator=(const SystemdBus&) = delete;

  /// kServiceUnavailable: neither the system bus nor systemd itself takes calls, with the way to mend it.
  Outcome connect();

  /// Starts a transient slice and waits until it has its cgroup. One that is there is left as it is.
  Outcome start_slice(const std::string& unit, const UnitProperties& properties);
  /// Sets the properties until the next boot.
  Outcome set_properties(const std::string& unit, const UnitProperties& properties);
  /// Ends everything in the slice and removes its cgroup. It is no error if the slice does not exist.
  Outcome stop_slice(const std::string& unit);

 private:
  struct Connection;

  template <typename Append>
  Result<std::string> ask_for_job(const char* member, const std::string& unit, std::string_view tolerated,
                                  Append append_arguments);
  template <typename Append>
  Outcome run_job(const char* member, const std::string& unit, std::string_view tolerated, Append append_arguments);
  Outcome wait_for_job(const std::string& job, const std::string& unit);

  std::unique_ptr<Connection> connection_;
};

}  // namespace spillway::host
