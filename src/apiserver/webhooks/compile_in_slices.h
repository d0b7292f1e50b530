// Compiles the expressions of a stored object in slices, between other requests: clients can make them long.
// Thread: loop.
#pragma once

#include "apiserver/read/core.h"

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace spillway::apiserver {

/// Computes `compile(document)`, then calls `then` with the result: before this returns if one slice is enough. `then`
/// is not called if the object has been changed or deleted meanwhile: that event compiles anew.
template <std::invocable<const api::Json&> Compile,
          std::invocable<std::invoke_result_t<Compile, const api::Json&>> Then>
void compile_in_slices(const Core& core, const ResourceCache& cache, const ObjectPtr& object, Compile compile,
                       Then then) {
  auto compiled = std::make_shared<std::optional<std::invoke_result_t<Compile, const api::Json&>>>();
  const std::uint64_t number = core.compilations->begin();
  core.in_slices([compiled, compile, document = object->document()] { *compiled = compile(document); },
                 [compiled, &cache, key = object->key, revision = object->revision, then,
                  compilations = core.compilations, number]() mutable {
                   const ObjectPtr current = cache.find(key);
                   if (current != nullptr && current->revision == revision) then(**std::move(compiled));
                   compilations->end(number);
                 });
}

}  // namespace spillway::apiserver
