// Compiles the expressions of a stored object in slices, between other requests: clients can make them long.
// Thread: loop.
#pragma once

#include "apiserver/read/core.h"

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace spillway::apiserver {

/// Computes `compile(document)` of the object with that key when its turn has come, then calls `then` with the result:
/// before this returns if no other compilation runs and one slice is enough. `then` is not called if the object is
/// changed or deleted meanwhile: that event compiles anew. `core` and `cache` must outlive the compilation.
template <std::invocable<const api::Json&> Compile,
          std::invocable<std::invoke_result_t<Compile, const api::Json&>> Then>
void compile_in_slices(const Core& core, const ResourceCache& cache, const std::string& key, Compile compile,
                       Then then) {
  auto start = [&core, &cache, key, compile, then](Compilations::Then ended) {
    const ObjectPtr object = cache.find(key);
    if (object == nullptr) return ended();
    auto compiled = std::make_shared<std::optional<std::invoke_result_t<Compile, const api::Json&>>>();
    core.in_slices([compiled, compile, document = object->document()] { *compiled = compile(document); },
                   [compiled, &cache, object, then, ended = std::move(ended)]() mutable {
                     const ObjectPtr current = cache.find(object->key);
                     if (current != nullptr && current->revision == object->revision) then(**std::move(compiled));
                     ended();
                   });
  };
  core.compilations->add(std::string(cache.resource().storage) + key, std::move(start));
}

}  // namespace spillway::apiserver
