// Adds the OpenAPI v2 definitions of other servers to those of this one. As upstream's aggregator does, a path that is
// there already stays; of two definitions of one name the later becomes NAME_v2, with the references to it, unless both
// say the same, apart from the kinds that they belong to. Thread: any. Bound: a slice of work at a time; kNamesTried.
// Source: Kubernetes docs, "Kubernetes API Aggregation Layer".
#pragma once

#include "apiserver/request/remote_schemas.h"
#include "apiserver/resource/slice_queue.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {

class OpenApiMerge {
 public:
  using Texts = RemoteSchemas::Texts;

  /// Names that are tried for a definition whose own is taken; a document with one that finds none is left out. There
  /// are at most 200 group versions of other servers, each with one definition of a name.
  static constexpr std::size_t kNamesTried = 256;

  /// `sources`: the more important first.
  explicit OpenApiMerge(std::vector<RemoteSchemasPtr> sources) : sources_(std::move(sources)) {}

  /// Continues to add to `definitions`, which are those of this server at first. True: it is done, and
  /// later calls do nothing.
  bool advance(Texts& definitions, SliceBudget& budget);

  Texts& parameters() { return parameters_; }

  Texts& paths() { return paths_; }

 private:
  using Names = std::map<std::string, std::string, std::less<>>;
  enum class Step : std::uint8_t { kNameDefinitions, kNameParameters, kDefinitions, kParameters, kPaths };

  /// Calls `visit` with each member of a map until it returns false, where the next slice continues. True: with all.
  template <typename Map, typename Visit>
  bool each(const Map& map, const Visit& visit);
  bool run(Step step, const RemoteSchemas& source, Texts& definitions, SliceBudget& budget);
  /// A name for what is called `name` in the source: the first that is free or stands for the same. Empty: there is
  /// none.
  template <typename Map, typename IsSame>
  static std::string new_name(std::string_view name, const Texts& taken, const Map& source, const IsSame& is_same,
                              SliceBudget& budget);
  bool name_definitions(const RemoteSchemas& source, const Texts& definitions, SliceBudget& budget);
  bool name_parameters(const RemoteSchemas& source, SliceBudget& budget);
  bool add_definitions(const RemoteSchemas& source, Texts& definitions, SliceBudget& budget);
  bool add_texts(const Texts& from, const Names& names, Texts& to, SliceBudget& budget);
  bool add_kinds(Texts& definitions, SliceBudget& budget);
  /// The text with the references of the present source by their new names.
  std::string renamed(std::string_view text) const;
  void end_source();

  std::vector<RemoteSchemasPtr> sources_;
  std::size_t source_ = 0;
  Step step_ = Step::kNameDefinitions;
  std::string next_;       // the member of a map at which the step continues
  bool is_begun_ = false;  // false: at the first one
  bool is_without_names_ = false;
  bool is_done_ = false;
  Names definition_names_;  // new names of definitions of the present source
  Names parameter_names_;
  Texts parameters_;
  Texts paths_;
  // Kinds of the definitions that came from other servers.
  std::map<std::string, std::set<std::string>, std::less<>> kinds_;
};

}  // namespace spillway::apiserver
