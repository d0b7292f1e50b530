// A configuration that classifies requests, and never changes: the schemas of a request are found by its user, its
// groups and its account, so that a schema about other clients costs nothing. Heartbeats of nodes (schema.h) belong to
// their own schema whatever the others say. Thread: any (immutable). Bounds: kSchemasMax schemas; a request is compared
// with kWordsMax words at most.
#pragma once

#include "policy/flow/schema.h"

#include <bitset>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::flow {

class FlowTable {
 public:
  /// Precondition: kSchemasMax + 1 schemas at most (the last one is for heartbeats or for all requests).
  explicit FlowTable(Configuration configuration);

  const Configuration& configuration() const { return configuration_; }

  /// The place of the first schema that matches; of the last one if none does. Allocates nothing.
  std::size_t classify(const Asked& asked) const;

 private:
  using Places = std::bitset<kSchemasMax + 2>;
  using Index = std::map<std::string, Places, std::less<>>;

  void add(const Subject& subject, std::size_t place);
  /// The schemas with a subject that is, or may be, the client.
  Places candidates(const Asked& asked) const;

  Configuration configuration_;
  std::size_t heartbeats_ = 0;  // position of the schema of heartbeats; of the last schema, if there is none
  Places everybody_;            // schemas with a subject "*"
  Index users_;
  Index groups_;
  Index accounts_;  // by "namespace:name", or "namespace:" for all of a namespace
};

}  // namespace spillway::flow
