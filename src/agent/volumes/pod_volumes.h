// The volumes of the pods of this node: reads their sources, lets the machine make them, and updates their files when
// the source objects change, as long as the pod runs. A pod waits until its volumes exist. Thread: loop. Bounds: one
// record per pod, one command in flight for each. Source: spec "Pod
// lifecycle", 7; Kubernetes docs, "Volumes".
#pragma once

#include "agent/contract/context.h"
#include "agent/volumes/claim_reader.h"
#include "agent/volumes/data_reader.h"
#include "agent/volumes/pod_tokens.h"
#include "agent/volumes/volume_plan.h"
#include "api/json/json.h"
#include "base/back_off.h"
#include "base/rng.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::agent {

class PodVolumes {
 public:
  PodVolumes(AgentContext& context, Rng rng, api::ResourceList allocatable);

  /// Called when the volumes of a pod are all there, for the first time.
  void when_ready(std::function<void(const std::string& uid, Now now)> listener) { on_ready_ = std::move(listener); }

  /// Sets the source of this node's labels, which volumes may use.
  void use_node(std::function<api::ObjectMeta()> node) { node_ = std::move(node); }

  /// The pod has been created on the machine. `memory_limit`: all its containers have one, their sum.
  void add(const std::shared_ptr<const api::Pod>& pod, std::optional<Bytes> memory_limit, Now now);
  /// The pod's metadata may have changed, and its containers may mount more of its volumes.
  void update(const std::shared_ptr<const api::Pod>& pod, Now now);
  /// The pod is being ended: its volumes are not updated any more.
  void remove(const std::string& uid);

  /// True also for a pod that mounts none, and for one that was not added.
  bool is_ready(const std::string& uid) const;

  /// Resources that the node offers to pods.
  const api::ResourceList& allocatable() const { return allocatable_; }

  void on_set_up(const VolumesSetUp& event, Now now);

  /// State for people and /debug/spillway: no contract.
  api::Json state() const;

 private:
  struct Volume {
    const api::Volume* spec = nullptr;  // within Record::spec_source
    VolumeSetup setup;
    bool has_payload = false;
    std::optional<std::string> claim;                      // name of the claim; the volume is the one bound to it
    std::shared_ptr<const api::PersistentVolume> claimed;  // the bound volume, once it is known
    bool asked = false;                                    // the volume is part of the command under way
    bool made = false;
    bool current = false;        // equal to the last request
    bool held_back = false;      // the machine could not make it: not before the next try
    std::optional<Error> error;  // the reason why the volume is missing or out of date
  };

  struct Record {
    std::shared_ptr<const api::Pod> pod;
    std::shared_ptr<const api::Pod> spec_source;
    std::optional<Bytes> memory_limit;
    std::vector<Volume> volumes;
    std::set<DataReader::Key> references;
    std::uint64_t command = 0;  // under way; 0: none
    bool ready = false;
    BackOff back_off{milliseconds(500), seconds(122)};  // as upstream
    std::optional<client::ApiClient::TimerId> timer;
  };

  /// Adds the pod's mounted volumes that are not in the record yet. False: there were none.
  bool add_mounted(Record& record, Now now);
  static bool follow_spec(Record& record);
  bool is_read(const Record& record, const api::Volume& volume) const;
  void fill(Record& record, Volume& volume, Now now);
  /// Reads the volume that is bound to the claim, as far as it is known.
  void resolve(Record& record, Volume& volume, Now now);
  static std::string failure_text(const Record& record, const Volume& volume);
  /// Executes every step that is possible now.
  void advance(Record& record, Now now);
  void fail(Record& record, Volume& volume, Error error, Now now);
  void check_ready(Record& record, Now now);
  void retry(const std::string& uid, Now now);

  AgentContext& context_;
  api::ResourceList allocatable_;
  DataReader data_;
  PodTokens tokens_;
  ClaimReader claims_;
  std::function<api::ObjectMeta()> node_;
  std::function<void(const std::string&, Now)> on_ready_;
  std::map<std::string, Record> records_;  // by uid
  std::uint64_t last_command_ = 0;
};

}  // namespace spillway::agent
