#include "agent/starts/env_reader.h"

#include "agent/contract/ports.h"
#include "client/api_client.h"

#include <utility>

namespace spillway::agent {
namespace {

std::size_t size_of(const api::StringMap& values) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : values) bytes += key.size() + value.size();
  return bytes;
}

}  // namespace

void EnvReader::read(const std::string& uid, const std::string& ns, const std::set<DataReference>& references,
                     const std::set<EnvFile>& files, Done done) {
  const auto reading = std::make_shared<Reading>();
  reading->left = references.size() + files.size();
  reading->done = std::move(done);
  for (const DataReference& each : references) {
    context_.api.get(
        client::object_path("v1", plural_of(each.kind), ns, each.name),
        [reading, each](const Result<api::Json>& answer, Now now) { on_object(*reading, each, answer, now); });
  }
  for (const EnvFile& each : files) {
    files_.emplace(++last_id_, File{each, reading});
    context_.host_commands.emplace_back(ReadVolumeFile{uid, last_id_, each.first, each.second});
  }
}

void EnvReader::on_object(Reading& reading, const DataReference& reference, const Result<api::Json>& answer, Now now) {
  std::size_t bytes = 0;
  if (answer) {
    auto source = env_source_of(reference.kind, *answer);
    if (source) {
      bytes = size_of(*source);
      reading.read.sources.emplace(reference, *std::move(source));
    } else {
      reading.read.error = source.error();
    }
  } else if (answer.error().code != ErrorCode::kNotFound) {
    reading.read.error = answer.error();
  }
  take(reading, bytes, now);
}

void EnvReader::on_file(const VolumeFileRead& event, Now now) {
  const auto asked = files_.extract(event.id);
  if (asked.empty()) return;
  Reading& reading = *asked.mapped().reading;
  std::size_t bytes = 0;
  if (event.text) {
    bytes = event.text->size();
    reading.read.files.emplace(asked.mapped().file, *event.text);
  } else if (event.text.error().code != ErrorCode::kNotFound) {
    reading.read.error = event.text.error();
  }
  take(reading, bytes, now);
}

/// One part has been read; with the last one the reading is over.
void EnvReader::take(Reading& reading, std::size_t bytes, Now now) {
  reading.bytes += bytes;
  if (reading.bytes > kEnvironmentWrittenMax) {
    reading.read.sources.clear();
    reading.read.files.clear();
    reading.read.error = invalid({}, "the ConfigMaps, Secrets and files of its environment hold more than {} bytes",
                                 kEnvironmentWrittenMax);
  }
  if (--reading.left == 0) reading.done(reading.read, now);
}

}  // namespace spillway::agent
