#include "sim/sim_network.h"

#include "api/json/flat_json.h"
#include "client/api_client.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>
#include <variant>

namespace spillway::sim {
namespace {

using UserPtr = std::shared_ptr<const api::UserInfo>;

}  // namespace

/// One request on its way, the answer or stream it gets, and the events that its sender may still get.
class SimNetwork::Exchange final : public api::ResponseSink, public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(SimNetwork& network, std::string endpoint, std::size_t place, client::CallId id, bool watch,
           client::Transport::Receiver& receiver)
      : network_(network),
        endpoint_(std::move(endpoint)),
        place_(place),
        id_(id),
        watch_(watch),
        receiver_(&receiver) {}

  std::size_t place() const { return place_; }

  void send(api::Request request, UserPtr user) {
    if (watch_) target_ = request.target;
    if (watch_ && network_.audit_ != nullptr) audited_ = network_.audit_->begin(target_);
    if (lost(Cut::kToServer)) return;
    network_.time_.after(network_.draw_delay(endpoint_),
                         [self = shared_from_this(), request = std::move(request), user = std::move(user)]() mutable {
                           self->arrive(std::move(request), std::move(user));
                         });
  }

  void on_response(api::Response response) override {
    if (std::exchange(answered_, true)) return;
    if (watch_) {
      deliver(client::WatchEnded{id_, client::error_of_answer(response.status, response.body)});
    } else if (!lost(Cut::kFromServer)) {
      const std::uint32_t repeated = network_.faults_.repeated_ppm;
      if (repeated > 0 && network_.rng_.chance_ppm(repeated)) deliver(client::CallDone{id_, response});
      deliver(client::CallDone{id_, std::move(response)});
    }
  }

  void on_stream(api::Response) override {}

  /// Writes one line, or several: each is an event, as the clients of real connections cut them.
  [[nodiscard]] bool write(std::shared_ptr<const std::string> chunk) override {
    if (chunk->find('\n') + 1 == chunk->size()) return write_event(std::move(chunk), nullptr);
    for (std::size_t from = 0, end = 0; from < chunk->size(); from = end) {
      end = std::min(chunk->find('\n', from), chunk->size() - 1) + 1;
      if (!write_event(std::make_shared<const std::string>(chunk->substr(from, end - from)), nullptr)) return false;
    }
    return true;
  }

  [[nodiscard]] bool write_event(std::shared_ptr<const std::string> line, api::WatchDocumentPtr event) override {
    if (answered_) return false;
    if (audited_) audit(*line, event.get());
    if (network_.rng_.chance_ppm(network_.faults_.watch_break_ppm)) {
      break_connection();
      return false;
    }
    if (is_mute()) return true;
    deliver(client::WatchFrame{id_, std::move(line), std::move(event)});
    return true;
  }

  void on_end() override {
    if (std::exchange(answered_, true)) return;
    deliver(client::WatchEnded{id_, std::nullopt});
  }

  /// The server has ended, or the connection is cut and both sides know.
  void break_connection() {
    abandon();
    if (std::exchange(answered_, true)) return;
    const Error error = make_error(ErrorCode::kServiceUnavailable, "connection to the API server was lost");
    if (watch_) {
      deliver(client::WatchEnded{id_, error});
    } else {
      deliver(client::CallDone{id_, error});
    }
  }

  /// The sender no longer listens.
  void forget() {
    receiver_ = nullptr;
    abandon();
  }

  bool finished() const { return receiver_ == nullptr || (answered_ && in_transit_ == 0); }

 private:
  bool is_mute() const {
    return std::ranges::any_of(network_.muted_, [this](const auto& muted) {
      return muted.first == endpoint_ && target_.find(muted.second) != std::string::npos;
    });
  }

  void audit(const std::string& line, const api::WatchDocument* event) {
    if (event != nullptr) {
      return audit(event->type, event->object->string_at({"metadata", "resourceVersion"}));
    }
    if (const auto flat = api::FlatJson::parse(line)) {  // bookmarks: nothing but a version
      const auto text_of = [&flat](std::initializer_list<std::string_view> path) {
        std::optional<api::FlatJson::At> here = 0;
        for (const std::string_view member : path) here = here ? flat->find(*here, member) : std::nullopt;
        return here ? (*flat)[*here].text : std::string_view();
      };
      return audit(text_of({"type"}), text_of({"object", "metadata", "resourceVersion"}));
    }
    const auto read = api::parse_json(line);
    if (read) audit(read->string_at({"type"}), read->string_at({"object", "metadata", "resourceVersion"}));
  }

  void audit(std::string_view type, std::string_view version) {
    std::uint64_t revision = 0;
    std::from_chars(version.data(), version.data() + version.size(), revision);
    audited_->on_event(type, revision, network_.time_.now());
  }

  bool lost(Cut way) { return network_.is_cut(endpoint_, way) || network_.draw_loss(endpoint_); }

  void arrive(api::Request request, UserPtr user) {
    if (receiver_ == nullptr) return;
    apiserver::ApiServer* const server = network_.server_at(place_);
    if (server == nullptr) {
      break_connection();
      return;
    }
    request_ = server->handle(std::move(request), std::move(user), nullptr, shared_from_this(), network_.time_.now());
    if (answered_) request_.reset();
  }

  void abandon() {
    apiserver::ApiServer* const server = network_.server_at(place_);
    if (request_ && server != nullptr) server->abandon(*std::exchange(request_, std::nullopt));
    request_.reset();
  }

  void deliver(client::ApiEvent event) {
    if (receiver_ == nullptr || network_.is_cut(endpoint_, Cut::kFromServer)) return;
    ++network_.messages_;
    ++in_transit_;
    Instant due = network_.time_.now().mono + network_.draw_delay(endpoint_);
    if (watch_) due = last_due_ = std::max(due, last_due_);
    network_.time_.at(due, [self = shared_from_this(), event = std::move(event)]() mutable {
      --self->in_transit_;
      if (self->receiver_ != nullptr) self->receiver_->on_api_event(std::move(event));
    });
  }

  SimNetwork& network_;
  std::string endpoint_;
  std::size_t place_;
  client::CallId id_;
  std::string target_;  // the target of a watch
  std::optional<WatchAudit::Stream> audited_;
  bool watch_;
  client::Transport::Receiver* receiver_;
  std::optional<apiserver::RequestId> request_;
  bool answered_ = false;  // the sender got the end, and gets nothing more, though the request may still arrive
  int in_transit_ = 0;
  Instant last_due_{};
};

class SimNetwork::Connection final : public client::Transport {
 public:
  Connection(SimNetwork& network, std::string endpoint, api::UserInfo user, std::optional<std::size_t> place)
      : network_(network),
        endpoint_(std::move(endpoint)),
        user_(std::make_shared<const api::UserInfo>(std::move(user))),
        is_fixed_(place.has_value()),
        place_(place ? *place : network.draw_place(0)) {
    network_.connections_.emplace(endpoint_, this);
  }

  ~Connection() override {
    for (auto& [id, exchange] : open_) exchange->forget();
    network_.connections_.erase({endpoint_, this});
  }

  void execute(client::ApiCommand command, Receiver& receiver) override {
    if (open_.size() >= sweep_at_) {
      std::erase_if(open_, [](const auto& entry) { return entry.second->finished(); });
      sweep_at_ = std::max(kSweepMin, 2 * open_.size());
    }
    if (auto* call = std::get_if<client::SendCall>(&command)) {
      open(call->id, false, std::move(call->request), receiver);
    } else if (auto* watch = std::get_if<client::OpenWatch>(&command)) {
      open(watch->id, true, std::move(watch->request), receiver);
    } else if (const auto* close = std::get_if<client::CloseWatch>(&command)) {
      const auto found = open_.find(close->id);
      if (found == open_.end()) return;
      found->second->forget();
      open_.erase(found);
    }
  }

  void disconnect(Receiver&) override {
    for (auto& [id, exchange] : open_) exchange->forget();
    open_.clear();
  }

  /// Breaks all open exchanges, and reports that to both ends; with one server, if it is named.
  void break_all(std::optional<std::size_t> place = {}) {
    const auto all = std::exchange(open_, {});
    for (const auto& [id, exchange] : all) {
      if (!place || exchange->place() == *place) exchange->break_connection();
      open_.emplace(id, exchange);  // kept until the last message has arrived
    }
  }

 private:
  void open(client::CallId id, bool watch, api::Request request, Receiver& receiver) {
    const std::uint32_t roam = network_.faults_.roam_ppm;
    const bool moves = network_.server_at(place_) == nullptr || (roam > 0 && network_.rng_.chance_ppm(roam));
    if (moves && !is_fixed_) place_ = network_.draw_place(place_);
    const auto exchange = std::make_shared<Exchange>(network_, endpoint_, place_, id, watch, receiver);
    open_.emplace(id, exchange);
    ++network_.messages_;
    exchange->send(std::move(request), user_);
  }

  SimNetwork& network_;
  std::string endpoint_;
  UserPtr user_;
  bool is_fixed_;
  std::size_t place_;
  std::map<client::CallId, std::shared_ptr<Exchange>> open_;  // finished exchanges stay until the next sweep
  static constexpr std::size_t kSweepMin = 8;
  std::size_t sweep_at_ = kSweepMin;
};

SimNetwork::SimNetwork(VirtualTime& time, Rng rng) : time_(time), rng_(rng) {}

SimNetwork::~SimNetwork() = default;

void SimNetwork::attach(apiserver::ApiServer* server, std::size_t place) {
  if (place >= servers_.size()) servers_.resize(place + 1);
  servers_[place] = server;
  if (server != nullptr) return;  // otherwise the server has stopped, and its connections break
  for (const auto& [endpoint, connection] : connections_) connection->break_all(place);
}

std::size_t SimNetwork::draw_place(std::size_t present) {
  std::vector<std::size_t> there;
  for (std::size_t place = 0; place < servers_.size(); ++place)
    if (servers_[place] != nullptr) there.push_back(place);
  if (there.empty()) return present;
  return there.size() == 1 ? there.front() : there[rng_.below(there.size())];
}

std::unique_ptr<client::Transport> SimNetwork::connect(std::string endpoint, api::UserInfo user,
                                                       std::optional<std::size_t> place) {
  return std::make_unique<Connection>(*this, std::move(endpoint), std::move(user), place);
}

bool SimNetwork::is_cut(const std::string& endpoint, Cut way) const {
  const auto found = partitioned_.find(endpoint);
  return found != partitioned_.end() && (found->second == Cut::kBoth || found->second == way);
}

void SimNetwork::partition(const std::string& endpoint, Cut cut) {
  // A direction that is cut stays so until heal(): a watch that continued after a silence would have a gap that its
  // client could not see.
  const auto [known, fresh] = partitioned_.emplace(endpoint, cut);
  if (!fresh && known->second != cut) known->second = Cut::kBoth;
}

void SimNetwork::heal(const std::string& endpoint) {
  if (partitioned_.erase(endpoint) == 0) return;
  for (auto it = connections_.lower_bound({endpoint, nullptr}); it != connections_.end() && it->first == endpoint;
       ++it) {
    it->second->break_all();
  }
}

const Link* SimNetwork::link_of(const std::string& endpoint) const {
  const auto found = links_.find(endpoint);
  return found == links_.end() ? nullptr : &found->second;
}

bool SimNetwork::draw_loss(const std::string& endpoint) {
  const Link* const link = link_of(endpoint);
  return rng_.chance_ppm(faults_.lost_ppm) || (link != nullptr && rng_.chance_ppm(link->lost_ppm));
}

Duration SimNetwork::draw_delay(const std::string& endpoint) {
  const bool slow = rng_.chance_ppm(faults_.slow_ppm);
  const Duration most = slow ? faults_.slow_max : faults_.latency_max;
  const auto span = static_cast<std::uint64_t>((most - faults_.latency_min).count()) + 1;
  const Duration usual = faults_.latency_min + Duration(static_cast<std::int64_t>(rng_.below(span)));
  const Link* const link = link_of(endpoint);
  if (link == nullptr || link->latency == Duration::zero()) return usual;
  const auto more = static_cast<std::uint64_t>(link->latency.count() / 2) + 1;
  return usual + link->latency / 2 + Duration(static_cast<std::int64_t>(rng_.below(more)));
}

}  // namespace spillway::sim
