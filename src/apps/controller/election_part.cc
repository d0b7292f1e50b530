#include "apps/controller/election_part.h"

#include "apps/process/host_name.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::apps {

namespace {

client::LeaderElection::Options with_identity(client::LeaderElection::Options options, const std::string& identity) {
  options.identity = identity;
  return options;
}

}  // namespace

ElectionPart::ElectionPart(Process& process, client::LeaderElection::Options options, const Rng& rng,
                           std::unique_ptr<client::Transport> transport, Callbacks callbacks)
    : process_(process),
      callbacks_(std::move(callbacks)),
      identity_(fmt::format("{}_{:016x}", host_name(), rng.fork("identity").next())),
      lease_(options.name),
      master_(process.metrics().gauge("leader_election_master_status",
                                      "Gauge of if the reporting system is master of the relevant lease, 0 indicates "
                                      "backup, 1 indicates master. 'name' is the string used to identify the lease.",
                                      {{"name", lease_}})),
      engine_(std::make_unique<client::LeaderElection>(with_identity(std::move(options), identity_),
                                                       rng.fork("election"), listener())),
      transport_(std::move(transport)),
      driver_(process.loop(), *engine_, *transport_) {
  master_.set(0);
  driver_.start();
}

client::LeaderElection::Listener ElectionPart::listener() {
  return {[this](Now) {
            process_.log().info("leading", {{"lease", lease_}, {"identity", identity_}});
            master_.set(1);
            process_.loop().post([this, term = engine_->term()] {
              if (engine_->term() == term && engine_->leads()) callbacks_.begin(term);
            });
          },
          [this](const std::string& why, Now) {
            master_.set(0);
            process_.log().warning("not the leader any more: nothing is done until it is elected again",
                                   {{"lease", lease_}, {"why", why}});
            process_.loop().post([this, why] { callbacks_.end("standing by, the lease was lost: " + why); });
          },
          [this](const std::string& leader, Now) {
            process_.log().info("standing by", {{"lease", lease_}, {"leader", leader}});
            callbacks_.standby(leader);
          },
          [this](const Error& error, Now) {
            process_.log().warning("the lease cannot be read: nothing is done until it can",
                                   {{"lease", lease_}, {"error", error.text()}});
          }};
}

std::unique_ptr<client::ApiEngine> ElectionPart::fenced(std::unique_ptr<client::ApiEngine> engine,
                                                        std::uint64_t term) const {
  return std::make_unique<client::FencedEngine>(std::move(engine),
                                                [this, term](Now now) { return may_act(term, now); });
}

void ElectionPart::stop(runtime::Loop::Task done) {
  driver_.step([this, done = std::make_shared<runtime::Loop::Task>(std::move(done))](Now now) {
    engine_->release(
        [this, done] {
          driver_.stop();
          (*done)();
        },
        now);
  });
}

}  // namespace spillway::apps
