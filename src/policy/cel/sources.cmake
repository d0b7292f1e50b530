list(APPEND policy_sources
  cel/addresses.cc cel/arithmetic.cc cel/authorization.cc cel/checker.cc cel/compile_text.cc cel/conversions.cc cel/costs.cc cel/environment.cc cel/estimate.cc cel/evaluator.cc
  cel/format_string.cc cel/macros.cc cel/planner.cc cel/unification.cc
  cel/expression.cc cel/formats.cc cel/functions.cc cel/lexer.cc cel/lists.cc cel/optionals.cc cel/parser.cc cel/pattern.cc cel/quantities.cc cel/self_expression.cc cel/sets.cc cel/text_forms.cc cel/texts.cc cel/times.cc cel/type.cc cel/url_parts.cc cel/urls.cc
  cel/value.cc)
list(APPEND policy_headers
  cel/access.h cel/checker.h cel/compile_text.h cel/costs.h cel/environment.h cel/estimate.h cel/evaluator.h cel/expression.h cel/functions.h cel/format_string.h cel/lexer.h cel/macros.h cel/node.h
  cel/parser.h cel/pattern.h cel/planner.h cel/self_expression.h cel/text_forms.h cel/times.h cel/type.h cel/unification.h cel/url_parts.h cel/value.h)
