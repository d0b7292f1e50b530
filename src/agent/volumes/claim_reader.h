// Reads the claims of pods that start, and the volumes that these are bound to: both as the API server has them at that
// moment, never from a cache. Thread: loop. Bounds: one record per claim that a pod of this node mounts, one call at a
// time for each. Source: spec "Pod lifecycle", 7.6.
#pragma once

#include "agent/contract/context.h"
#include "api/object/pod.h"
#include "api/object/storage.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace spillway::agent {

class ClaimReader {
 public:
  using VolumePtr = std::shared_ptr<const api::PersistentVolume>;

  explicit ClaimReader(AgentContext& context) : context_(context) {}

  /// Called after every answer.
  void when_answered(std::function<void(const std::string& uid, Now now)> listener) { listener_ = std::move(listener); }

  /// The pod mounts the claim: it is read now.
  void hold(const api::Pod& pod, const std::string& claim);
  void release(const std::string& uid);
  /// Reads those of the pod that are not being read.
  void ask_again(const std::string& uid);

  bool is_answered(const std::string& uid, const std::string& claim) const;
  /// The volume that the claim and it are bound to; errors are upstream's. Only once it is answered.
  Result<VolumePtr> volume(const std::string& uid, const std::string& claim) const;

 private:
  using Key = std::pair<std::string, std::string>;  // uid of the pod, claim

  struct Record {
    std::string ns;
    std::uint64_t call = 0;  // id of the call whose answer counts; 0: none is in flight
    std::optional<Result<VolumePtr>> answer;
  };

  void ask(const Key& key, Record& record);
  void on_claim(const Key& key, std::uint64_t call, const Result<api::Json>& answer, Now now);
  void ask_for_volume(const Key& key, std::uint64_t call, const std::string& name,
                      const std::shared_ptr<const api::PersistentVolumeClaim>& claim);
  static Result<VolumePtr> claimed_volume(const std::string& name, const api::PersistentVolumeClaim& claim,
                                          const Result<api::Json>& answer);
  void end(const Key& key, std::uint64_t call, Result<VolumePtr> answer, Now now);

  AgentContext& context_;
  std::function<void(const std::string&, Now)> listener_;
  std::map<Key, Record> records_;
  std::uint64_t last_call_ = 0;
};

}  // namespace spillway::agent
