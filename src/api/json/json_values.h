// Gets values of a document by their path, for code that knows the expected types. Thread: any.
#pragma once

#include "api/json/json.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// `absent` if there is nothing, or no integer.
std::int64_t integer_at(const Json& document, std::initializer_list<std::string_view> path, std::int64_t absent);
/// Bytes that the document takes beside its own value, about: lists, members, long texts, with 8 bytes of the allocator
/// for each block. Parts that other documents share are counted as well. Costs a visit of every value.
std::size_t tree_bytes(const Json& document);
/// The elements of a list; elements that are no strings are empty. Empty: there is no list.
std::vector<std::string> strings_at(const Json& document, std::initializer_list<std::string_view> path);

}  // namespace spillway::api
