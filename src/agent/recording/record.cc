#include "agent/recording/record.h"

#include "agent/recording/record_fields.h"

#include <type_traits>
#include <utility>

namespace spillway::agent {

void describe(auto& io, Is<RecordedNode> auto& n) {
  io(n.name, n.program, n.acts, n.reacts, n.memory, n.options);
}

void describe(auto& io, Is<RunState> auto& r) {
  io(r.run, r.segment, r.after_gap, r.at, r.node, r.snapshot, r.pods);
}

void describe(auto& io, Is<InputReceived> auto& t) {
  io(t.at, t.nested, t.input);
}

void describe(auto& io, Is<PodsSeen> auto& p) {
  io(p.uids, p.changed);
}

void describe(auto& io, Is<Claimed> auto& c) {
  io(c.claimed);
}

void describe(auto& io, Is<Decided> auto& d) {
  io(d.line);
}

void describe(auto& io, Is<ConditionsChanged> auto& c) {
  io(c.conditions);
}

void describe(auto&, Is<Ending> auto&) {}

namespace {

std::vector<api::Container> stripped(const std::vector<api::Container>& containers) {
  std::vector<api::Container> kept;
  for (const api::Container& each : containers) {
    api::Container& made = kept.emplace_back();
    made.name = each.name;
    made.resources = each.resources;
    made.restart_policy = each.restart_policy;
  }
  return kept;
}

}  // namespace

api::Pod stripped(const api::Pod& pod) {
  api::Pod kept;
  kept.metadata.ns = pod.metadata.ns;
  kept.metadata.name = pod.metadata.name;
  kept.metadata.uid = pod.metadata.uid;
  for (const auto& [key, value] : pod.metadata.annotations) {
    if (key == api::kConfigSourceAnnotation || key == api::kConfigMirrorAnnotation)
      kept.metadata.annotations[key] = value;
  }
  kept.spec.containers = stripped(pod.spec.containers);
  kept.spec.init_containers = stripped(pod.spec.init_containers);
  for (const api::Volume& each : pod.spec.volumes) {
    api::Volume& made = kept.spec.volumes.emplace_back();
    made.name = each.name;
    made.source = each.source;
    made.empty_dir = each.empty_dir;
  }
  kept.spec.overhead = pod.spec.overhead;
  kept.spec.resources = pod.spec.resources;
  kept.spec.priority = pod.spec.priority;
  kept.spec.priority_class_name = pod.spec.priority_class_name;
  return kept;
}

std::string encode_record(const Record& record) {
  RecordWriter writer;
  writer(record);
  return writer.take();
}

std::string encode_pod(const api::Pod& pod) {
  RecordWriter writer;
  writer(pod);
  return writer.take();
}

std::string encode_snapshot(const EvictionSnapshot& snapshot) {
  RecordWriter writer;
  writer(snapshot);
  return writer.take();
}

std::string encode_input(const EngineInputRef& input, bool nested, Now at) {
  constexpr std::uint64_t kIndex = 1;  // its number among the records
  static_assert(std::is_same_v<std::variant_alternative_t<kIndex, Record>, InputReceived>);
  RecordWriter writer;
  writer(kIndex, at, nested, std::uint64_t{input.index()});
  std::visit(
      [&writer](const auto& given) {
        if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(given)>>) {
          writer(*given);
        } else {
          writer(given);
        }
      },
      input);
  return writer.take();
}

Result<Record> decode_record(std::string_view record) {
  RecordReader reader(record);
  Record made;
  reader(made);
  if (!reader.is_done()) return make_error(ErrorCode::kInvalid, "a record of the recording cannot be read");
  return made;
}

}  // namespace spillway::agent
