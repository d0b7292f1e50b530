// The simulated network between engines and the API server: every message is delayed, may be lost, and overtakes
// others; the events of one watch stay in order, as they would on one connection. Thread: one. All randomness is drawn
// from the given stream.
#pragma once

#include "api/exchange/exchange.h"
#include "apiserver/server.h"
#include "base/rng.h"
#include "client/engine.h"
#include "sim/network_faults.h"
#include "sim/properties/watch_audit.h"
#include "sim/time/virtual_time.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::sim {

class SimNetwork {
 public:
  SimNetwork(VirtualTime& time, Rng rng);
  ~SimNetwork();

  /// Checks the events that servers write to watches from now on; must live as long as a server writes. Null: no
  /// checks.
  void set_audit(WatchAudit* audit) { audit_ = audit; }

  void set_faults(const NetworkFaults& faults) { faults_ = faults; }

  const NetworkFaults& faults() const { return faults_; }

  /// The server at a place, which requests reach; nullptr: no server listens there, connections are refused and open
  /// watches break.
  void attach(apiserver::ApiServer* server, std::size_t place = 0);

  /// A connection for one engine. `endpoint` names it for partitions. It keeps to one server, drawn, as long as that is
  /// there; or to the one at `place`, whatever happens.
  std::unique_ptr<client::Transport> connect(std::string endpoint, api::UserInfo user,
                                             std::optional<std::size_t> place = {});

  /// Cuts the endpoint off: messages from it and to it are lost, its watches go silent. With one direction: that alone,
  /// and any that is cut already.
  void partition(const std::string& endpoint, Cut cut = Cut::kBoth);
  /// Ends the partition: clients then notice that their cut watches are broken.
  void heal(const std::string& endpoint);

  /// Watches of this endpoint whose target contains `part` carry nothing any more, without breaking: neither events
  /// nor bookmarks. Until unmute(); new watches of that kind are mute as well.
  void mute(const std::string& endpoint, const std::string& part) { muted_.emplace(endpoint, part); }

  void unmute() { muted_.clear(); }

  void set_link(const std::string& endpoint, const Link& link) { links_.insert_or_assign(endpoint, link); }

  /// Makes the link as good as any other.
  void restore_link(const std::string& endpoint) { links_.erase(endpoint); }

  bool is_partitioned(const std::string& endpoint) const { return partitioned_.contains(endpoint); }

  std::uint64_t messages() const { return messages_; }

 private:
  class Connection;
  class Exchange;

  bool is_cut(const std::string& endpoint, Cut way) const;

  const Link* link_of(const std::string& endpoint) const;
  Duration draw_delay(const std::string& endpoint);
  bool draw_loss(const std::string& endpoint);
  /// Draws a place where a server listens; `present`, if none does.
  std::size_t draw_place(std::size_t present);

  apiserver::ApiServer* server_at(std::size_t place) const {
    return place < servers_.size() ? servers_[place] : nullptr;
  }

  VirtualTime& time_;
  Rng rng_;
  NetworkFaults faults_;
  WatchAudit* audit_ = nullptr;
  std::vector<apiserver::ApiServer*> servers_;  // by place
  std::map<std::string, Cut> partitioned_;
  std::map<std::string, Link> links_;
  std::set<std::pair<std::string, std::string>> muted_;        // endpoint, part of the target
  std::set<std::pair<std::string, Connection*>> connections_;  // the name first: order does not depend on addresses
  std::uint64_t messages_ = 0;
};

}  // namespace spillway::sim
