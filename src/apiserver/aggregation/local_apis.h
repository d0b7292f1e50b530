// The APIServices of the group versions that this server serves itself, as clients expect them: built-in ones, and
// those of custom kinds, which are added and removed with their definitions. An existing APIService is not changed. One
// server of a store keeps them at a time. Thread: loop. Bounds: one write at a time; a failed one is repeated after
// kRetry. Source: k8s.io/kube-aggregator 1.32, registration of APIServices.
#pragma once

#include "apiserver/read/collector.h"
#include "apiserver/read/core.h"
#include "apiserver/write/remover.h"
#include "apiserver/write/writer.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {

/// The APIServices of the group versions that are built in. Made when the server starts.
std::vector<api::Json> built_in_api_services(const ResourceRegistry& registry);

class LocalApis final : public Collector {
 public:
  static constexpr Duration kRetry = seconds(10);

  enum class Kept { kNo, kYes };

  LocalApis(Core& core, Writer& writer, Remover& remover, Kept kept);

 private:
  using GroupVersion = std::pair<std::string, std::string>;

  // Collector
  void load() override;
  void on_event(const ResourceCache& cache, const EventPtr& event) override;
  void act() override;

  void compare();
  bool create_one();
  bool remove_one();
  void on_written(bool is_done);

  Core& core_;
  Writer& writer_;
  Remover& remover_;
  const bool is_kept_;
  const ResourceCache& apis_;
  std::uint64_t generation_ = 0;  // the table's, when the sets were last compared
  bool is_dirty_ = false;
  bool is_busy_ = false;  // a write or a timer is under way
  std::set<GroupVersion> missing_;
  std::set<std::string> stale_;  // names
};

}  // namespace spillway::apiserver
