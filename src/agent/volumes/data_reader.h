// Reads the ConfigMaps and Secrets that pods refer to, and reads them again as long as a pod does. Many pods share one
// read. Thread: loop. Bounds: one record per object that a pod of this node refers to; one call at a time for each.
// Source: spec "Pod lifecycle", 7.5; Kubernetes docs, "Mounted ConfigMaps are updated automatically".
#pragma once

#include "agent/contract/context.h"
#include "agent/volumes/data_objects.h"
#include "base/rng.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace spillway::agent {

class DataReader {
 public:
  using Key = std::pair<std::string, DataReference>;  // by namespace

  struct Reading {
    bool done = false;                  // answered since a pod last requested it
    std::optional<api::Json> document;  // absent: the object does not exist, or `error` says why it could not be read
    std::optional<Error> error;         // error of the last read, unless the object does not exist
  };

  DataReader(AgentContext& context, Rng rng) : context_(context), rng_(rng) {}

  /// Called after every read.
  void when_read(std::function<void(const Key& key, Now now)> listener) { listener_ = std::move(listener); }

  /// Counts one more user of the object, and reads it now.
  void hold(const Key& key);
  void release(const Key& key);
  /// Reads the object now, unless a read is under way.
  void read_again(const Key& key);

  const Reading& reading(const Key& key) const;

 private:
  struct Record {
    Reading reading;
    std::int64_t holders = 0;
    std::uint64_t generation = 0;  // counts calls: answers of older calls are ignored
    bool asking = false;
    std::optional<client::ApiClient::TimerId> timer;
  };

  void ask(const Key& key, Record& record);
  void on_answer(const Key& key, std::uint64_t generation, const Result<api::Json>& answer, Now now);

  AgentContext& context_;
  Rng rng_;
  std::function<void(const Key&, Now)> listener_;
  std::map<Key, Record> records_;
  std::uint64_t last_generation_ = 0;
};

}  // namespace spillway::agent
