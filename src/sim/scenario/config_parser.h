// The member `config` of a scenario, or a file that is one. Thread: any (pure).
#pragma once

#include "sim/scenario/document.h"
#include "sim/scenario/parser.h"
#include "yaml/place.h"

namespace spillway::sim {

/// The beginning of a part of the document: its path, and the document with the places of its values.
struct DocumentPart {
  const std::string& file;
  const yaml::Document& document;
  std::string path;  // "config"; empty: the document is the configuration
};

/// `base`: the values of absent members.
Result<ScenarioConfig> parse_config(const yaml::Place& config, const DocumentPart& part, const ReadText& read,
                                    ScenarioConfig base = {});

/// The options that its `agents` gives a node with that memory; nullopt: it has no such member. The other members are
/// not read.
Result<std::optional<agent::AgentOptions>> parse_agents_of(const yaml::Place& config, const DocumentPart& part,
                                                           const ReadText& read, Bytes node_memory);

/// The options of agents with these members of a KubeletConfiguration.
Result<agent::AgentOptions> agent_options_of(const api::Json& members);

}  // namespace spillway::sim
