// The admission webhooks of the cluster, ready to be called: updated with each write of a configuration. A
// configuration with long match conditions takes effect some turns of the loop after its commit, when they are
// compiled, and its write is answered then; until then its former version is in effect. Those that are stored at the
// start take effect together, when all are compiled; the server serves no request before (serving/server_start.h).
// Thread: loop.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "policy/webhooks/webhook.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spillway::apiserver {

/// Webhooks in the order of their calls: by the name of the configuration, then by their place in it.
using WebhookList = std::vector<std::shared_ptr<const webhooks::Webhook>>;

class WebhookTable final : public Collector {
 public:
  explicit WebhookTable(Core& core);

  /// True if there is no webhook of either phase.
  bool empty() const { return empty_; }

  /// Changes with every change of the configurations.
  std::uint64_t version() const { return version_; }

  /// The webhooks as they are now; a later change makes another list.
  std::shared_ptr<const WebhookList> list(webhooks::Phase phase) const { return of(phase).all; }

  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;

  void act() override {}

 private:
  struct Phased {
    webhooks::Phase phase;
    const ResourceCache* configurations;
    std::map<std::string, WebhookList> by_configuration = {};
    std::shared_ptr<const WebhookList> all = std::make_shared<const WebhookList>();
  };

  const Phased& of(webhooks::Phase phase) const { return phases_[static_cast<std::size_t>(phase)]; }

  /// Compiles the stored configuration, which then takes effect.
  void compile(Phased& phased, const StoredObject& configuration);
  void put(Phased& phased, const std::string& configuration, std::vector<webhooks::Webhook> webhooks);
  void join(Phased& phased);

  const Core& core_;
  std::array<Phased, 2> phases_;
  bool empty_ = true;
  std::uint64_t version_ = 0;
  bool is_loading_ = false;  // objects that were stored at the start are being compiled
};

}  // namespace spillway::apiserver
