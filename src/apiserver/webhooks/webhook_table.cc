#include "apiserver/webhooks/webhook_table.h"

#include "apiserver/webhooks/compile_in_slices.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

using webhooks::Phase;

WebhookTable::WebhookTable(Core& core)
    : core_(core),
      phases_{
          Phased{Phase::kMutating,
                 &core.cache.of(core.registry.get("mutatingwebhookconfigurations.admissionregistration.k8s.io"))},
          Phased{Phase::kValidating,
                 &core.cache.of(core.registry.get("validatingwebhookconfigurations.admissionregistration.k8s.io"))}} {}

void WebhookTable::load() {
  is_loading_ = true;
  for (Phased& phased : phases_) {
    phased.by_configuration.clear();
    for (const auto& [key, object] : phased.configurations->objects()) compile(phased, *object);
  }
  core_.compilations->when_done([this] {
    is_loading_ = false;
    for (Phased& phased : phases_) join(phased);
  });
}

void WebhookTable::compile(Phased& phased, const StoredObject& configuration) {
  compile_in_slices(
      core_, *phased.configurations, configuration.key,
      [phase = phased.phase](const api::Json& document) { return webhooks_of(phase, document); },
      [this, &phased, name = configuration.name](std::vector<webhooks::Webhook> webhooks) {
        put(phased, name, std::move(webhooks));
        join(phased);
      });
}

void WebhookTable::on_event(const ResourceCache& cache, const EventPtr& event) {
  const auto phased = std::ranges::find(phases_, &cache, &Phased::configurations);
  if (phased == phases_.end()) return;
  if (event->object) return compile(*phased, *event->object);
  if (event->previous) phased->by_configuration.erase(event->previous->name);
  join(*phased);
}

void WebhookTable::put(Phased& phased, const std::string& configuration, std::vector<webhooks::Webhook> webhooks) {
  WebhookList list;
  for (webhooks::Webhook& webhook : webhooks) {
    list.push_back(std::make_shared<const webhooks::Webhook>(std::move(webhook)));
  }
  phased.by_configuration.insert_or_assign(configuration, std::move(list));
}

void WebhookTable::join(Phased& phased) {
  if (is_loading_) return;
  auto all = std::make_shared<WebhookList>();
  for (const auto& [name, list] : phased.by_configuration) all->insert(all->end(), list.begin(), list.end());
  phased.all = std::move(all);
  ++version_;
  empty_ = std::ranges::all_of(phases_, [](const Phased& one) { return one.all->empty(); });
}

}  // namespace spillway::apiserver
