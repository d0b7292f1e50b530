// The records of a recording. Every segment of it begins with RunState, the engine's state at that time, so that a
// replay may begin there. The records after an InputReceived, up to the next one that is not nested, are its results.
// Thread: any (pure). Bounds: a decoded value has no more elements than its record has bytes.
// Source: docs/adr/0024-recordings.md.
#pragma once

#include "agent/contract/options.h"
#include "agent/eviction/eviction_witness.h"
#include "api/object/pod.h"
#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway::agent {

/// Identity of the recorded engine: it does not change within a run of a process.
struct RecordedNode {
  std::string name;
  std::string program;  // "agent", "companion"
  bool acts = true;     // no shadow
  bool reacts = false;  // a thread of the machine carried plans out
  Bytes memory;         // the machine's
  EvictionOptions options;
};

struct RunState {
  std::uint64_t run = 0;      // start of the process, in microseconds
  std::uint64_t segment = 0;  // within the run, from 0
  bool after_gap = false;     // records were lost before it
  Now at{};
  RecordedNode node;
  EvictionSnapshot snapshot;
  std::vector<api::Pod> pods;  // the engine sees them in this order
};

struct InputReceived {
  Now at{};
  bool nested = false;  // the input arrived during the one before
  EngineInput input;
};

/// The pods the engine sees from here on.
struct PodsSeen {
  std::vector<std::string> uids;  // all, in order
  std::vector<api::Pod> changed;  // the new ones and those that have changed
};

struct Claimed {
  bool claimed = false;
};

struct Decided {
  std::string line;  // as of to_line()
};

struct ConditionsChanged {
  eviction::ConditionSet conditions;
};

/// A pod's end was ordered.
struct Ending {};

using Record = std::variant<RunState, InputReceived, PodsSeen, Claimed, Decided, ConditionsChanged, Ending>;

std::string encode_record(const Record& record);
/// Encodes an InputReceived without a copy of the input.
std::string encode_input(const EngineInputRef& input, bool nested, Now at);
/// kInvalid: not written by these functions.
Result<Record> decode_record(std::string_view record);

/// The pod with only the members that its eviction depends on.
api::Pod stripped(const api::Pod& pod);
/// `pod`: stripped. Equal texts mean that the pod has not changed.
std::string encode_pod(const api::Pod& pod);
/// Equal texts mean that two engines have the same state.
std::string encode_snapshot(const EvictionSnapshot& snapshot);

}  // namespace spillway::agent
