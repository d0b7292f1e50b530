// Events of both groups: v1 accepts nearly everything, events.k8s.io requires all fields and forbids changes. Objects
// have the form of v1 here, and errors name its fields.
#include "api/text/names.h"
#include "apiserver/kinds/core/core_kinds.h"
#include "apiserver/kinds/core/core_tables.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/groups.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/resource/event_view.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::size_t kTextBytesMax = 128;
constexpr std::size_t kEventMessageBytesMax = 1024;
constexpr std::int64_t kSeriesCountMin = 2;

void require_namespace(const Json& event, bool fits, FieldErrors& errors) {
  if (fits) return;
  errors.invalid("involvedObject.namespace", value_of(value_of(event, "involvedObject"), "namespace"),
                 "does not match event.namespace");
}

void require_short_text(const Json& event, std::string_view key, FieldErrors& errors) {
  const std::string_view value = text(event, key);
  if (value.empty()) errors.required(key);
  if (value.size() > kTextBytesMax) {
    errors.invalid(key, "", fmt::format("can have at most {} characters", kTextBytesMax));
  }
}

/// An event with an eventTime has the form of events.k8s.io, and needs all of its other fields.
void validate_new_form(const Json& event, std::string_view controller_field, FieldErrors& errors) {
  const std::string_view ns = event.string_at({"metadata", "namespace"});
  const std::string_view about = event.string_at({"involvedObject", "namespace"});
  require_namespace(event, !about.empty() || ns == "default" || ns == "kube-system", errors);
  const std::string_view controller = text(event, "reportingComponent");
  if (controller.empty()) errors.required(controller_field);
  require_valid(api::qualified_name_errors(controller), value_of(event, "reportingComponent"), controller_field,
                errors);
  for (const std::string_view key : {"reportingInstance", "action", "reason"}) require_short_text(event, key, errors);
  if (text(event, "message").size() > kEventMessageBytesMax) {
    errors.invalid("message", "", fmt::format("can have at most {} characters", kEventMessageBytesMax));
  }
}

void validate_any_event(const Json& event, std::string_view controller_field, FieldErrors& errors) {
  if (has(event, "eventTime")) return validate_new_form(event, controller_field, errors);
  const std::string_view ns = event.string_at({"metadata", "namespace"});
  const std::string_view about = event.string_at({"involvedObject", "namespace"});
  require_namespace(event, about.empty() ? ns == "default" : about == ns, errors);
}

void validate_event(const Json& event, FieldErrors& errors) {
  validate_any_event(event, "reportingComponent", errors);
}

void validate_event_update(const Json& event, const Json&, Endpoint, FieldErrors& errors) {
  validate_event(event, errors);
}

void validate_series(const Json& event, FieldErrors& errors) {
  const Json& series = value_of(event, "series");
  if (!series.is_object()) return;
  if (integer(series, "count").value_or(0) < kSeriesCountMin) {
    errors.invalid("series.count", "", "should be at least 2");
  }
  if (!has(series, "lastObservedTime")) errors.required("series.lastObservedTime");
}

void validate_new_event(const Json& event, FieldErrors& errors) {
  validate_any_event(event, "reportingController", errors);
  validate_series(event, errors);
  if (!has(event, "eventTime")) errors.required("eventTime");
  if (text(event, "type") != "Normal" && text(event, "type") != "Warning") {
    errors.invalid("type", "", fmt::format("has invalid value: {}", text(event, "type")));
  }
  for (const std::string_view key : {"firstTimestamp", "lastTimestamp"}) {
    if (has(event, key)) errors.invalid(key, "", "needs to be unset");
  }
  if (integer(event, "count").value_or(0) != 0) errors.invalid("count", "", "needs to be unset");
  const Json& source = value_of(event, "source");
  if (!text(source, "component").empty() || !text(source, "host").empty()) {
    errors.invalid("source", "", "needs to be unset");
  }
}

struct FixedField {
  std::string_view key;
  std::string_view shown;
};

/// All members but the series are fixed. Upstream checks the reason twice.
constexpr FixedField kFixed[] = {{"involvedObject", "involvedObject"},
                                 {"reason", "reason"},
                                 {"reason", "reason"},
                                 {"message", "message"},
                                 {"source", "source"},
                                 {"firstTimestamp", "firstTimestamp"},
                                 {"lastTimestamp", "lastTimestamp"},
                                 {"count", "count"},
                                 {"type", "type"},
                                 {"eventTime", "eventTime"},
                                 {"action", "action"},
                                 {"related", "related"},
                                 {"reportingComponent", "reportingController"},
                                 {"reportingInstance", "reportingInstance"}};

void validate_new_event_update(const Json& event, const Json& old, Endpoint, FieldErrors& errors) {
  validate_any_event(event, "reportingController", errors);
  if (value_of(event, "series") != value_of(old, "series")) validate_series(event, errors);
  for (const FixedField& field : kFixed) {
    const Json& value = value_of(event, field.key);
    if (value != value_of(old, field.key)) errors.invalid(field.shown, value, kImmutable);
  }
}

std::string source_component(const api::Json& event) {
  const std::string_view component = event.string_at({"source", "component"});
  return std::string(component.empty() ? event.string_at({"reportingComponent"}) : component);
}

constexpr std::array kEventFields{SelectableField{"involvedObject.kind"},
                                  SelectableField{"involvedObject.namespace"},
                                  SelectableField{"involvedObject.name"},
                                  SelectableField{"involvedObject.uid"},
                                  SelectableField{"involvedObject.apiVersion"},
                                  SelectableField{"involvedObject.resourceVersion"},
                                  SelectableField{"involvedObject.fieldPath"},
                                  SelectableField{"reason"},
                                  SelectableField{"reportingComponent"},
                                  SelectableField{"source", source_component},
                                  SelectableField{"type"}};

constexpr std::array kEventViewFields{SelectableField{"regarding.kind"},
                                      SelectableField{"regarding.namespace"},
                                      SelectableField{"regarding.name"},
                                      SelectableField{"regarding.uid"},
                                      SelectableField{"regarding.apiVersion"},
                                      SelectableField{"regarding.resourceVersion"},
                                      SelectableField{"regarding.fieldPath"},
                                      SelectableField{"reason"},
                                      SelectableField{"reportingController"},
                                      SelectableField{"source", source_component},
                                      SelectableField{"type"}};

static_assert(kEventFields.size() == kEventViewFields.size());

}  // namespace

Resource event_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"ev"};
  const TableDefinition table = event_table();
  static const KindHooks kHooks{.validate_create = validate_event,
                                .validate_update = validate_event_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.version = "v1",
          .plural = "events",
          .singular = "event",
          .kind = "Event",
          .verbs = kAllVerbs,
          .storage = below("events"),
          .short_names = kShortNames,
          .fields = kEventFields,
          .put_creates = true,
          .metadata = kNoOwnChecks,
          .hooks = &kHooks};
}

Resource new_event_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"ev"};
  const TableDefinition table = event_table();
  static const KindHooks kHooks{.validate_create = validate_new_event,
                                .validate_update = validate_new_event_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.group = "events.k8s.io",
          .version = "v1",
          .plural = "events",
          .singular = "event",
          .kind = "Event",
          .verbs = kAllVerbs,
          .storage = below("events"),
          .short_names = kShortNames,
          .fields = kEventViewFields,
          .put_creates = true,
          .metadata = kChangeOnly,
          .view = {event_from_view, event_to_view},
          .hooks = &kHooks};
}

std::vector<Resource> events_kinds() {
  return {new_event_kind()};
}

}  // namespace spillway::apiserver::kinds
