// Applies objects of files by server-side apply, and keeps them applied: each one again every 30 s, so that a change or
// a removal by another client lasts at most that long. Objects are applied one after another: namespaces and
// definitions of custom kinds first, then the order of the files. A failed one is retried with a back-off up to 30 s,
// so that the order of files matters little. Objects that the files no longer contain stay in the cluster. Thread:
// loop. Bounds: one request in flight; objects as many as the caller hands over.
#pragma once

#include "client/api_client.h"
#include "client/engine.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/manifests/manifest.h"
#include "telemetry/log.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class ManifestApplier final : public client::ApiEngine {
 public:
  ManifestApplier(Rng rng, telemetry::Log log);

  std::string_view name() const override { return "spillway-manifests"; }

  void start(Now now) override;
  void on_api_event(const client::ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

  /// Takes the place of the objects so far. Those that are new or different are applied at once, the others when they
  /// are due; before start() they wait for it. Of two manifests of one object the first counts; the second is reported
  /// in the log.
  void replace(std::vector<Manifest> manifests, Now now);

  /// Objects that the server has accepted as the files have them now.
  std::size_t applied() const;

  std::size_t wanted() const { return entries_.size(); }

 private:
  /// A kind as discovery describes it.
  struct Resource {
    std::string plural;
    bool is_namespaced = false;
  };

  using Resources = std::map<std::string, Resource, std::less<>>;  // by kind

  struct Entry {
    Manifest manifest;
    std::string resource_version;  // after the last apply; empty: not applied yet as the file has it
    std::string failure;           // the text that was reported last; empty: none
  };

  static Resources resources_in(const api::Json& discovery);

  void run(Now now);
  /// Reads the kind's resource if it is unknown, then applies the object.
  void sync(const std::string& key);
  void read_resources(const std::string& key, const std::string& api_version);
  void on_resources_read(const std::string& key, const Result<api::Json>& answer, Now now);
  void apply(const std::string& key, const Resource& resource);
  void on_applied(const std::string& key, const Result<api::Json>& answer, Now now);
  void fail(const std::string& key, const Error& error, Now now);
  /// Ends the turn of the object of `key`, and begins that of the next one.
  void finish(const std::string& key, Now now);

  telemetry::Log log_;
  client::ApiClient client_;
  client::WorkQueue queue_;  // keys of entries_
  client::WakeUp wake_up_;
  std::map<std::string, Entry> entries_;                     // by apiVersion, kind, namespace and name
  std::map<std::string, Resources, std::less<>> resources_;  // by apiVersion
  bool started_ = false;
  bool busy_ = false;  // an object is being applied
};

}  // namespace spillway::controllers
