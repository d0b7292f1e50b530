#include "apps/dns/dns_service_part.h"

#include <utility>

namespace spillway::apps {
namespace {

constexpr Duration kAnswerMax = seconds(1);

}  // namespace

DnsServicePart::DnsServicePart(runtime::Loop& loop, std::unique_ptr<dns::ServiceKeeper> keeper,
                               std::unique_ptr<client::Transport> transport)
    : EnginePart(loop, std::move(keeper), std::move(transport)),
      loop_(loop),
      keeper_(static_cast<dns::ServiceKeeper&>(this->engine())) {}

void DnsServicePart::stop(runtime::Loop::Task done) {
  const auto finish = std::make_shared<runtime::Loop::Task>(
      [this, done = std::move(done)]() mutable { EnginePart::stop(std::move(done)); });
  // Called by the first of the two; not from within a call of the engine.
  const auto once = [&loop = loop_, finish] {
    loop.post([finish] {
      if (auto task = std::exchange(*finish, nullptr)) task();
    });
  };
  loop_.at(loop_.now().mono + kAnswerMax, once);
  driver().step([this, once](Now) { keeper_.end(once); });
}

}  // namespace spillway::apps
