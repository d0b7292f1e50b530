list(APPEND policy_sources
  cel/addresses.cc cel/arithmetic.cc cel/authorization.cc cel/checker.cc cel/compile_text.cc cel/conversions.cc cel/environment.cc cel/evaluator.cc
  cel/expression.cc cel/formats.cc cel/functions.cc cel/lexer.cc cel/lists.cc cel/optionals.cc cel/parser.cc cel/pattern.cc cel/quantities.cc cel/self_expression.cc cel/sets.cc cel/text_forms.cc cel/texts.cc cel/times.cc cel/type.cc cel/url_parts.cc cel/urls.cc
  cel/value.cc)
list(APPEND policy_headers
  cel/access.h cel/checker.h cel/compile_text.h cel/environment.h cel/evaluator.h cel/expression.h cel/functions.h cel/lexer.h cel/node.h
  cel/parser.h cel/pattern.h cel/self_expression.h cel/text_forms.h cel/times.h cel/type.h cel/url_parts.h cel/value.h)
