#include "host/systemd/slice_units.h"

#include <utility>

namespace spillway::host {

Outcome start_slice(SystemdBus& bus, const cgroups::SliceUnit& unit, const CgroupLimits& limits,
                    CgroupVersion version) {
  SPILLWAY_TRY_VOID(bus.start_slice(unit.name, slice_properties(unit, version)));
  return bus.set_properties(unit.name, limit_properties(limits, version));
}

SliceUnits::SliceUnits(runtime::Loop& loop, CgroupVersion version, std::unique_ptr<SystemdBus> bus)
    : loop_(loop), version_(version), bus_(std::move(bus)), thread_(loop, kQueueMax) {}

void SliceUnits::submit(std::function<Outcome(SystemdBus&)> call, Done done) {
  auto shared = std::make_shared<Done>(std::move(done));
  const bool queued = thread_.submit([bus = bus_, call = std::move(call), shared]() -> runtime::Loop::Task {
    return [outcome = call(*bus), shared]() mutable { (*shared)(std::move(outcome)); };
  });
  if (queued) return;
  loop_.post(
      [shared] { (*shared)(make_error(ErrorCode::kTooManyRequests, "systemd: {} calls wait already", kQueueMax)); });
}

void SliceUnits::start(const cgroups::SliceUnit& unit, const CgroupLimits& limits, Done done) {
  submit([unit, limits, version = version_](SystemdBus& bus) { return start_slice(bus, unit, limits, version); },
         std::move(done));
}

void SliceUnits::limit(const std::string& unit, const CgroupLimits& limits, Done done) {
  submit([unit, properties = limit_properties(limits, version_)](
             SystemdBus& bus) { return bus.set_properties(unit, properties); },
         std::move(done));
}

void SliceUnits::stop(const std::string& unit, Done done) {
  submit([unit](SystemdBus& bus) { return bus.stop_slice(unit); }, std::move(done));
}

}  // namespace spillway::host
