list(APPEND policy_sources
  structural/default_rules.cc structural/embedded_rules.cc structural/field_place.cc structural/formats.cc
  structural/go_number.cc structural/json_path.cc structural/list_keys.cc structural/list_rules.cc structural/node.cc
  structural/object_rules.cc structural/object_shape.cc structural/open_api.cc structural/printer_columns.cc structural/rule_check.cc structural/rule_reader.cc
  structural/rule_sizes.cc structural/rule_types.cc structural/rule_values.cc structural/schema_patterns.cc structural/schema_rules.cc structural/structural_schema.cc structural/value_rules.cc)
list(APPEND policy_headers
  structural/default_rules.h structural/embedded_rules.h structural/field_place.h structural/formats.h
  structural/go_number.h structural/json_path.h structural/list_keys.h structural/list_rules.h structural/node.h structural/object_rules.h
  structural/object_shape.h structural/open_api.h structural/printer_columns.h structural/rule.h structural/rule_check.h structural/rule_reader.h
  structural/rule_sizes.h structural/rule_types.h structural/rule_values.h structural/schema_members.h structural/schema_patterns.h structural/schema_rules.h structural/structural_schema.h
  structural/value_path.h structural/value_rules.h)
