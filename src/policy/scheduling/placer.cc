#include "policy/scheduling/placer.h"

#include "policy/scheduling/pending_pod.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace spillway::scheduling {

/// Filter and score results of all nodes, shared by pods with equal requirements.
class Placer::Ranking {
 public:
  Ranking(const api::Pod& pod, PendingPod pending)
      : pod_(std::make_unique<const api::Pod>(pod)), pending_(std::move(pending)) {
    pending_.pod = pod_.get();
  }

  bool is_for(const PendingPod& pending) const { return asks_alike(pending_, pending); }

  /// Updates images; a change in their number of nodes changes the scores of all nodes that have them.
  void set_images(std::vector<PendingImage> images) {
    const bool same =
        std::ranges::equal(pending_.images, images, {}, &PendingImage::node_share, &PendingImage::node_share);
    if (same) return;
    pending_.images = std::move(images);
    refresh_all_ = true;
  }

  void mark_changed(std::uint32_t node) {
    if (refresh_all_) return;
    changed_.push_back(node);
    if (changed_.size() > rows_.size()) mark_new_set();
  }

  void mark_new_set() {
    refresh_all_ = true;
    changed_.clear();
  }

  std::optional<Placement> best(const std::vector<const Entry*>& nodes) {
    refresh(nodes);
    if (nodes.empty()) return std::nullopt;
    const std::uint32_t winner = winners_[1];
    if (!rows_[winner].fits) return std::nullopt;
    const Row& of = rows_[winner];
    return placement_on({&nodes[winner]->first, of.pod_count, of.score}, of.total, candidates_);
  }

  /// Places a pod with equal requirements whose result also depends on pods of other nodes.
  std::optional<Placement> best_among(const std::vector<const Entry*>& nodes, const PendingPod& pending,
                                      const Relations& relations, const Topology& topology,
                                      const Surroundings& around) {
    refresh(nodes);
    const bool refuses = relations.filters();
    const bool promises = around.has_promises();
    std::vector<std::size_t> fitting;
    fitting.reserve(nodes.size());
    ScoreBounds bounds;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      const Row& row = rows_[node];
      if (!row.fits) continue;
      const bool promised = promises && !around.promised(nodes[node]->first, *pending.pod).empty();
      if (promised && refuse_on(pending, relations, topology, node, {}, around)) continue;
      if (!promised && refuses && !relations.admits(node)) continue;
      fitting.push_back(node);
      bounds.include(row.score);
    }
    if (fitting.empty()) return std::nullopt;
    const auto spread = relations.spread_scores(fitting);
    const auto inter_pod = relations.inter_pod_scores(fitting);
    const bool totals_hold = bounds == most_;  // totals from each node alone
    const auto related = [&](std::size_t i) {
      Score score;
      if (!spread.empty()) score.spread = spread[i];
      if (!inter_pod.empty()) score.inter_pod = inter_pod[i];
      return score;
    };
    for (std::size_t i = 0; i < fitting.size(); ++i) bounds.include(related(i));
    const ScoreWeights& weights = pending_.profile->weights;
    std::size_t best = 0;
    std::pair<std::int64_t, std::int64_t> best_rank;
    for (std::size_t i = 0; i < fitting.size(); ++i) {
      const Row& row = rows_[fitting[i]];
      const std::int64_t alone = totals_hold ? row.total : total_score(row.score, bounds, weights);
      const std::pair rank{-(alone + related_score(related(i), bounds, weights)), row.pod_count};
      if (i > 0 && rank >= best_rank) continue;  // nodes are in the order of their names
      best = i;
      best_rank = rank;
    }
    const Row& winner = rows_[fitting[best]];
    Score score = winner.score;
    score.spread = related(best).spread;
    score.inter_pod = related(best).inter_pod;
    return placement_on({&nodes[fitting[best]]->first, winner.pod_count, score}, -best_rank.first, fitting.size());
  }

 private:
  struct Row {
    bool fits = false;
    Score score;
    std::int64_t total = 0;
    std::int64_t pod_count = 0;
  };

  void refresh(const std::vector<const Entry*>& nodes) {
    if (refresh_all_) {
      rows_.assign(nodes.size(), {});
      soft_taints_.clear();
      affinities_.clear();
      candidates_ = 0;
      for (std::uint32_t node = 0; node < nodes.size(); ++node) evaluate(node, nodes[node]->second);
    } else {
      for (const std::uint32_t node : changed_) evaluate(node, nodes[node]->second);
    }
    ScoreBounds most;
    most.soft_taints = most_of(soft_taints_);
    most.affinity = most_of(affinities_);
    if (refresh_all_ || most != most_) {
      most_ = most;
      rebuild_winners();
    } else {
      for (const std::uint32_t node : changed_) update_winners(node);
    }
    refresh_all_ = false;
    changed_.clear();
  }

  void evaluate(std::uint32_t node, const policy::NodeLoad& load) {
    Row& row = rows_[node];
    if (row.fits) count(row.score, false);
    row = {};
    row.fits = !refuse_pod(pending_, load).has_value();
    if (!row.fits) return;
    row.score = score_node(pending_, load);
    row.pod_count = load.pod_count;
    count(row.score, true);
  }

  using Amounts = std::map<std::int64_t, std::size_t>;  // above zero, and how many candidates have it

  void count(const Score& score, bool there) {
    candidates_ = there ? candidates_ + 1 : candidates_ - 1;
    const auto in = [there](Amounts& amounts, std::int64_t amount) {
      if (amount <= 0) return;
      std::size_t& candidates = amounts[amount];
      candidates = there ? candidates + 1 : candidates - 1;
      if (candidates == 0) amounts.erase(amount);
    };
    in(soft_taints_, score.soft_taints);
    in(affinities_, score.affinity);
  }

  static std::int64_t most_of(const Amounts& amounts) { return amounts.empty() ? 0 : amounts.rbegin()->first; }

  /// Smallest is best. Nodes are in the order of their names.
  auto rank(std::uint32_t node) const {
    const Row& of = rows_[node];
    return std::tuple(!of.fits, -of.total, of.pod_count, node);
  }

  std::uint32_t better_of(std::uint32_t a, std::uint32_t b) const {
    if (a == kNobody || b == kNobody) return std::min(a, b);
    return rank(a) < rank(b) ? a : b;
  }

  void update_winners(std::uint32_t node) {
    rows_[node].total = total_score(rows_[node].score, most_, pending_.profile->weights);
    for (std::size_t match = (winners_.size() / 2 + node) / 2; match > 0; match /= 2) {
      winners_[match] = better_of(winners_[2 * match], winners_[2 * match + 1]);
    }
  }

  void rebuild_winners() {
    const std::size_t width = std::bit_ceil(std::max<std::size_t>(rows_.size(), 1));
    winners_.assign(2 * width, kNobody);
    for (std::uint32_t node = 0; node < rows_.size(); ++node) {
      rows_[node].total = total_score(rows_[node].score, most_, pending_.profile->weights);
      winners_[width + node] = node;
    }
    for (std::size_t match = width - 1; match > 0; --match) {
      winners_[match] = better_of(winners_[2 * match], winners_[2 * match + 1]);
    }
  }

  static constexpr std::uint32_t kNobody = UINT32_MAX;

  std::unique_ptr<const api::Pod> pod_;  // first pod with these requirements
  PendingPod pending_;
  bool refresh_all_ = true;
  std::vector<std::uint32_t> changed_;  // since the last refresh
  std::vector<Row> rows_;               // one row per node, in their order
  std::vector<std::uint32_t> winners_;  // [1]: of all; of 2 m and 2 m + 1 at m; the nodes in the second half
  Amounts soft_taints_;
  Amounts affinities_;
  ScoreBounds most_;
  std::size_t candidates_ = 0;
};

Placer::Placer(std::vector<Profile> profiles) : profiles_(std::move(profiles)) {}

Placer::~Placer() = default;

const Profile& Placer::profile_of(const api::Pod& pod) const {
  const auto named = std::ranges::find(profiles_, pod.spec.scheduler_name, &Profile::scheduler);
  return named == profiles_.end() ? profiles_.front() : *named;
}

void Placer::set_node(std::shared_ptr<const api::Node> node) {
  const auto [entry, is_new] = nodes_.try_emplace(node->metadata.name);
  if (!is_new) {
    count_images(entry->second, false);
    if (entry->second.node->metadata.labels != node->metadata.labels) topology_.reset();
  }
  around_.slot_of(node->metadata.name);
  entry->second.set_node(std::move(node));
  count_images(entry->second, true);
  is_new ? mark_new_set() : mark_changed(entry->first);
}

void Placer::set_pods(const std::string& node, std::span<const api::Pod* const> pods) {
  const auto entry = nodes_.find(node);
  if (entry == nodes_.end()) return;
  policy::NodeLoad load(entry->second.node);
  around_.clear(node);
  for (const api::Pod* pod : pods) {
    load.add(*pod);
    around_.add(node, *pod);
  }
  entry->second = std::move(load);
  mark_changed(node);
}

void Placer::add_pod(const std::string& node, const api::Pod& pod) {
  const auto entry = nodes_.find(node);
  if (entry == nodes_.end()) return;
  entry->second.add(pod);
  around_.add(node, pod);
  mark_changed(node);
}

void Placer::erase(const std::string& node) {
  const auto entry = nodes_.find(node);
  if (entry == nodes_.end()) return;
  count_images(entry->second, false);
  nodes_.erase(entry);
  around_.forget(node);
  mark_new_set();
}

void Placer::count_images(const policy::NodeLoad& load, bool there) {
  for (const auto& [image, bytes] : load.image_bytes) {
    std::size_t& holders = holders_[image];
    holders = there ? holders + 1 : holders - 1;
    if (holders == 0) holders_.erase(image);
  }
}

void Placer::mark_changed(const std::string& node) {
  if (order_.empty()) return;  // all nodes are refreshed anyway
  const auto found = std::ranges::lower_bound(order_, node, {}, [](const Entry* entry) { return entry->first; });
  const auto number = static_cast<std::uint32_t>(found - order_.begin());
  for (Ranking& ranking : rankings_) ranking.mark_changed(number);
}

void Placer::mark_new_set() {
  order_.clear();
  topology_.reset();
  for (Ranking& ranking : rankings_) ranking.mark_new_set();
}

void Placer::number_nodes() {
  if (order_.size() == nodes_.size()) return;
  for (const Entry& entry : nodes_) order_.push_back(&entry);
}

Topology& Placer::topology() {
  if (!topology_) topology_.emplace(nodes_, around_);
  return *topology_;
}

std::optional<Placement> Placer::place_by_name(const PendingPod& pending, const Relations& relations) {
  std::vector<FittingNode> candidates;
  std::vector<std::size_t> numbers;
  for (const std::string& name : *pending.only_nodes) {
    const auto node = topology().number_of(name);
    if (!node || refuse_on(pending, relations, topology(), *node, {}, around_)) continue;
    const policy::NodeLoad& load = topology().load(*node);
    candidates.push_back({&topology().name(*node), load.pod_count, score_node(pending, load)});
    numbers.push_back(*node);
  }
  if (candidates.empty()) return std::nullopt;
  relations.score(numbers, candidates);
  return choose(candidates, pending.profile->weights);
}

Placer::Ranking& Placer::ranking_for(const api::Pod& pod, PendingPod pending) {
  const auto known = std::ranges::find_if(rankings_, [&](const Ranking& ranking) { return ranking.is_for(pending); });
  if (known == rankings_.end()) {
    if (rankings_.size() == kRankingsMax) rankings_.pop_back();
    rankings_.emplace_front(pod, std::move(pending));
  } else {
    known->set_images(std::move(pending.images));
    rankings_.splice(rankings_.begin(), rankings_, known);
  }
  return rankings_.front();
}

Placement Placer::place(const api::Pod& pod, const VolumeFilter& volumes) {
  const Profile& profile = profile_of(pod);
  std::optional<Placement> placement;
  if (!volumes && pod.status.nominated_node_name.empty()) {
    PendingPod pending = make_pending(pod, profile);
    for (PendingImage& image : pending.images) {
      const auto holders = holders_.find(image.name);
      image.node_share = node_share(holders == holders_.end() ? 0 : holders->second, nodes_.size());
    }
    const Relations relations(pending, around_, topology());
    if (pending.only_nodes) {
      placement = place_by_name(pending, relations);
    } else {
      number_nodes();
      Ranking& ranking = ranking_for(pod, pending);
      placement = relations.none() && !around_.has_promises()
                      ? ranking.best(order_)
                      : ranking.best_among(order_, pending, relations, topology(), around_);
    }
  }
  return placement ? *std::move(placement) : place_pod(pod, nodes_, profile, volumes, around_);
}

}  // namespace spillway::scheduling
