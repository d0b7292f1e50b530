#include "sim/read_back.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

namespace spillway::sim {
namespace {

constexpr std::string_view kCollection = "/api/v1/namespaces/default/configmaps";

}  // namespace

ReadBack::ReadBack(VirtualTime& time, Rng rng, SimNetwork& network, std::size_t servers, Invariants& invariants)
    : time_(time), rng_(rng), invariants_(invariants) {
  for (std::size_t server = 0; server < servers; ++server) {
    ways_.push_back(network.connect(fmt::format("reader {}", server),
                                    api::UserInfo{"reader", "", {"system:masters", "system:authenticated"}}, server));
  }
}

ReadBack::~ReadBack() = default;

std::string ReadBack::target() const {
  return fmt::format("{}/read-back-{}", kCollection, names_);
}

void ReadBack::later() {
  time_.after(kEvery, alive_.guard([this] { ask(); }));
}

/// Creates the object if it is absent, deletes it if it is there, and in between reads it.
void ReadBack::ask() {
  const bool reads = rng_.below(2) == 0;
  asked_ = reads ? api::Method::kGet : exists_ ? api::Method::kDelete : api::Method::kPost;
  api::Request request{asked_, target(), {{"content-type", "application/json"}}, {}};
  if (asked_ == api::Method::kPost) {
    request.target = kCollection;
    request.body =
        fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"read-back-{}"}}}})", names_);
  }
  const client::CallId id = ++last_;
  waits_ = id;
  server_ = rng_.below(ways_.size());
  ways_[server_]->execute(client::SendCall{id, std::move(request)}, *this);
  time_.after(kPatience, alive_.guard([this, id] {
    if (waits_ == id) give_up();
  }));
}

/// A write of unknown outcome may be executed now or later: continues with another name.
void ReadBack::give_up() {
  waits_.reset();
  if (asked_ != api::Method::kGet) {
    ++names_;
    exists_ = false;
  }
  later();
}

void ReadBack::on_api_event(client::ApiEvent event) {
  const auto* const done = std::get_if<client::CallDone>(&event);
  if (done == nullptr || waits_ != done->id) return;
  if (!done->response || done->response->status == 429 || done->response->status >= 500) return give_up();
  waits_.reset();
  check_answer(done->response->status);
  later();
}

void ReadBack::check_answer(int status) {
  const bool creates = asked_ == api::Method::kPost;
  const int wanted = creates ? 201 : exists_ ? 200 : 404;
  if (status == wanted) {
    ++confirmed_;
    if (creates) exists_ = true;
    if (asked_ == api::Method::kDelete) exists_ = false;
    return;
  }
  invariants_.violate(Property::kAcknowledgedWrites, time_.now(),
                      fmt::format("server {} answered {} to {} of {}, which {}", server_, status,
                                  creates                       ? "a POST"
                                  : asked_ == api::Method::kGet ? "a GET"
                                                                : "a DELETE",
                                  target(), exists_ ? "is there" : "is not there"));
  ++names_;
  exists_ = false;
}

}  // namespace spillway::sim
