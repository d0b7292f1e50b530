// The highest cost of an expression over self, before any value is known: computed from the sizes that its schema
// allows. Sums and products end at the largest number. Thread: any (pure). Source: Kubernetes docs, "Extend the
// Kubernetes API with CustomResourceDefinitions", resource use by validation functions.
#pragma once

#include "policy/cel/node.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace spillway::cel {

/// The largest sizes of values of a type: characters of texts, elements of lists, entries of maps.
struct Sizes {
  std::uint64_t elements_max = 0;
  std::uint64_t bytes_min = 0;                // for a value in JSON
  std::shared_ptr<const Sizes> element = {};  // for lists, and the values of maps
  std::shared_ptr<const Sizes> key = {};
  std::map<std::string, std::shared_ptr<const Sizes>, std::less<>> fields = {};
};

/// A size or a cost, between two bounds.
struct Estimate {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

/// Units of a request that is as long as one may be: what is without bounds is as long as that at most.
inline constexpr std::uint64_t kRequestBytesMax = 3U << 20U;

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b);

/// The cost of a checked tree that was not planned. `self`: the sizes of the variables self and oldSelf.
Estimate estimate_cost(const Node& root, const Sizes& self);

}  // namespace spillway::cel
