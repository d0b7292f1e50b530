// Parses rows of vectors/admission, and formats answers as the rows do.
#pragma once

#include "api/json/json.h"
#include "api/object/pod.h"
#include "policy/admission/answer.h"
#include "policy/admission/predicates.h"
#include "policy/fit.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::admission {

/// The member `name` of `in`; ends the test if it is no pod.
api::Pod pod_at(const api::Json& in, std::string_view name = "pod");
/// Empty if absent.
std::vector<api::Pod> pods_at(const api::Json& in, std::string_view name = "pods");
std::vector<const api::Pod*> pointers_to(const std::vector<api::Pod>& pods);
std::vector<std::string> strings_at(const api::Json& in, std::string_view name);
bool flag_at(const api::Json& in, std::initializer_list<std::string_view> path, bool otherwise = false);
std::int64_t number_at(const api::Json& in, std::string_view name);

/// {"admit": …, "reason": …, "message": …}.
api::Json result_of(const Answer& answer);
/// Amounts as integers; scalar resources only if there are any.
api::Json amounts_json(const policy::Amounts& amounts, std::int64_t pods);
/// {"type": "insufficient", …} or {"type": "predicate", …}.
api::Json failures_json(const std::vector<Failure>& failures);
api::Json preempting_event(std::string_view key, const std::string& name);

}  // namespace spillway::admission
