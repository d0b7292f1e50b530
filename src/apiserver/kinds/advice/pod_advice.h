// Advice about pods, about templates of pods, and about the requests of claims that they contain.
// Thread: any (pure). Source: as advice.h.
#pragma once

#include "api/json/json.h"
#include "apiserver/kinds/advice/advice_list.h"

#include <string>
#include <string_view>

namespace spillway::apiserver::kinds {

/// Advice about a pod (`at` empty), or about the template of one at that path ("spec.template").
void advise_on_pod(const api::Json& pod, std::string_view at, AdviceList& advice);

/// Advice about the spec of a claim at that path.
void advise_on_claim_spec(const api::Json* spec, const std::string& at, AdviceList& advice);

/// Advice about one term of a node selector at that path.
void advise_on_node_term(const api::Json& term, const std::string& at, AdviceList& advice);

/// Advice about the members of a volume, or of the spec of a PersistentVolume, that name a plug-in out of use.
void advise_on_volume_source(const api::Json& volume, const std::string& at, AdviceList& advice);

/// Adds a warning if the amount has a fraction of a byte; `at` names the field. Null: absent.
void advise_on_bytes(const api::Json* amount, const std::string& at, AdviceList& advice);

/// Names the replacement of a deprecated label of nodes. Empty: the label is in use.
std::string_view deprecated_node_label(std::string_view key);

}  // namespace spillway::apiserver::kinds
